"""``cusim validate``: how far predictions are from measured times, beside what simple rules achieve."""

from __future__ import annotations

from typing import Any

import click

from cli.options import FILE, quiet_option


@click.command(name="validate", short_help="Judge predictions against published times, beside simple rules.")
@click.argument("name", metavar="SET|FILE.csv", required=False)
@click.option("--json", "form", flag_value="json", help="One JSON document (cusim.validate/1).")
@click.option("--md", "form", flag_value="md", help="Markdown tables.")
@click.option("--rows", "every_row", is_flag=True, help="Also the rows of tables whose aims are met.")
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="FILE",
    help="Write to FILE (.json .md .txt). Without --json or --md, stdout still gets the tables.",
)
@quiet_option
def command(name: str | None, **given: Any) -> None:
    """Judge the model against measured times: errors, ranking and regret, beside rivals that need no simulator.

    SET is a shipped set of published times; FILE.csv one in the same form (its first line says cusim.published/1).

    \b
    cusim validate published/gpt3-mlp
    cusim validate published/gpt3-mlp --rows --md -o validation.md
    cusim validate published/gpt3-mlp --json
    """
    from cli.validating import print_validation

    print_validation(name, given)
