"""``cusim export``: a trace as a file for a trace viewer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cli.options import FILE, quiet_option


@click.command(name="export", short_help="Export a trace for a trace viewer such as Perfetto.")
@click.argument("source", metavar="TRACE", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="FILE",
    help="File to write, .json or .json.gz.  [default: beside the trace, .json.gz]",
)
@click.option(
    "--format", "form", metavar="NAME", default="chrome", help="chrome: Chrome-trace JSON.  [default: chrome]"
)
@click.option("--window", metavar="A:B", help="Only blocks that run between A and B us of run time, such as 100:150.")
@click.option("--sample", metavar="N|FRACTION", help="Only N blocks, or a part of them such as 0.1, spread over time.")
@click.option("--check", is_flag=True, help="Check the file written; or TRACE itself, where it is .json or .json.gz.")
@quiet_option
def command(source: Path, **given: Any) -> None:
    """Export a trace (.npz, .csv) to Chrome-trace JSON, which ui.perfetto.dev opens.

    \b
    cusim run gpt3-mlp --m 768 --policy row -o row.npz && cusim export row.npz
    cusim export row.npz -o part.json --window 250:300
    cusim export part.json --check

    Every slot of an SM is a track; waits stand inside their blocks, arrows lead from the post that
    ended a wait to its end. The path of the file goes to stdout.
    """  # fmt: skip
    from cli.exporting import export

    click.echo(export(source, **given))
