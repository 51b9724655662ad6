"""``cusim validate``: how far predictions are from measured times, beside what simple rules achieve."""

from __future__ import annotations

from typing import Any

import click

from cli.exits import GATE_MISSED
from cli.options import FILE, quiet_option


@click.command(name="validate", short_help="Judge predictions against measured times, beside simple rules.")
@click.argument("names", metavar="SET|FILE.csv|FOLDER...", nargs=-1)
@click.option("--machine", metavar="NAME|FILE", help="The machine to be judged on recordings, by name or file.")
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="What-if: a number of that machine.")
@click.option("--timelines", type=FILE, metavar="FOLDER", help="Judge that machine on measured traces (.npz) instead.")
@click.option("--gate", type=FILE, metavar="FILE.toml", help="Limits to be kept (cusim.gate/1); exit code 4 if not.")
@click.option("--json", "form", flag_value="json", help="One JSON document (cusim.validate/1).")
@click.option("--md", "form", flag_value="md", help="Markdown tables.")
@click.option("--rows", "every_row", is_flag=True, help="Also every row; of published sets, those whose aims are met.")
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="FILE",
    help="Write to FILE (.json .md .txt). Without --json or --md, stdout still gets the tables.",
)
@quiet_option
@click.pass_context
def command(ctx: click.Context, /, names: tuple[str, ...], **given: Any) -> None:
    """Judge the model against measured times: errors, ranking and regret, beside rivals that need no simulator.

    With --machine, FILE.csv are recordings of one's own GPU (cusim.recording/1; a FOLDER stands for every .csv in it).
    Sealed, dev and calibrate rows are judged apart. Rows that fixed the machine's numbers are not judged: calibrate
    rows are shown as fitted on, and a machine that was fitted on dev or sealed rows given is refused.

    With --timelines the blocks of every measured trace in FOLDER (or of a file) are held against the prediction of the
    same program and plan: errors of starts, ends and durations by kernel, with --rows by round; and what cancels.

    Else SET is a shipped set of published times; FILE.csv one in the same form (its first line says cusim.published/1).

    \b
    cusim validate --machine h200 traces/h200
    cusim validate --machine mine.toml a.csv b.csv --gate gates.toml
    cusim validate --machine h200 --timelines traces/h200/timelines
    cusim validate published/gpt3-mlp --rows --md -o validation.md

    A gate names a table and a limit; --gate prints which are missed:

    \b
    schema = "cusim.gate/1"
    [[gate]]
    set = "dev"                # sealed, dev or calibrate
    kind = "chain"             # single-seen, single-unseen, chain or chain-any-tile
    metric = "mape_pct"        # any figure of the summary in --json
    at_most = 4.0              # or at_least
    """
    from cli.validating import print_validation

    if print_validation(names, given):
        ctx.exit(GATE_MISSED)
