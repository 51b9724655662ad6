"""``cusim plot``: a trace as a timeline of blocks, a prediction as bars, or a sweep over m as lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cli.options import FILE, quiet_option


@click.command(name="plot", short_help="Draw a trace as a timeline, or a prediction as bars.")
@click.argument("source", metavar="TRACE|REPORT.json", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="FILE",
    help="Picture to write, .png or .svg.  [default: beside the input, .png]",
)
@click.option(
    "--kind",
    type=click.Choice(["timeline", "time", "gain"]),
    help="timeline of a trace; time or gain of a report.  [default: what fits the input]",
)
@click.option("--sm", metavar="A:B", help="Only SMs A to B - 1 of a timeline, such as 0:16.")
@click.option("--title", default=None, help="Title of the picture.")
@quiet_option
def command(source: Path, **given: Any) -> None:
    """Draw a trace (.npz, .csv) as a timeline of blocks, or a report (.json) as bars.

    A report that sweeps m is drawn as lines over m: time above, gain below, or what --kind says.

    \b
    cusim run gpt3-mlp --m 768 --policy row -o row.npz && cusim plot row.npz --sm 0:16
    cusim predict gpt3-mlp --m 768 -o gpt3.json && cusim plot gpt3.json --kind gain

    The path of the picture goes to stdout.
    """  # fmt: skip
    from cli.pictures import draw

    click.echo(draw(source, **given))
