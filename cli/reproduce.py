"""``cusim reproduce``: a paper's claims beside what the model says of them."""

from __future__ import annotations

from pathlib import Path

import click

from cli.exits import FAILED
from cli.options import FILE, quiet_option


@click.command(name="reproduce", short_help="Put a paper's claims beside what the model says of them.")
@click.argument("paper", metavar="[PAPER]", required=False)
@click.option("--json", "form", flag_value="json", help="One JSON document (cusim.reproduce/1).")
@click.option("--md", "form", flag_value="md", help="A Markdown table.")
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="FILE",
    help="Write to FILE (.json .md .txt). Without --json or --md, stdout still gets the table.",
)
@quiet_option
@click.pass_context
def command(ctx: click.Context, paper: str | None, form: str | None, output: Path | None, quiet: bool) -> None:
    """Compute each claim of PAPER anew and put it beside the printed value and the simplest rival's.

    \b
    cusim reproduce                   which papers there are
    cusim reproduce cusync            every claim, and why some differ
    cusim reproduce cusync --json -o claims.json

    Exit code 1 when a claim fails to compute; a claim that differs is an answer, and exits 0.
    """
    from cli.reproducing import print_claims, print_papers

    if paper is None:
        print_papers(form, output)
    elif print_claims(paper, form, output, quiet=quiet):
        ctx.exit(FAILED)
