"""``cusim plot``: a trace as a timeline, two above each other, a prediction as bars, or a sweep over m as lines."""

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
@click.option(
    "--against",
    type=FILE,
    metavar="MEASURED",
    help="Draw the predicted trace above this measured one of the same program and plan, and how far they are apart.",
)
@click.option("--sm", metavar="A:B", help="Only SMs A to B - 1 of a timeline, such as 0:16.")
@click.option("--title", default=None, help="Title of the picture.")
@quiet_option
def command(source: Path, against: Path | None, **given: Any) -> None:
    """Draw a trace (.npz, .csv) as a timeline of blocks, or a report (.json) as bars.

    A report that sweeps m is drawn as lines over m: time above, gain below, or what --kind says.

    \b
    cusim run gpt3-mlp --m 768 --policy row -o row.npz && cusim plot row.npz --sm 0:16
    cusim predict gpt3-mlp --m 768 -o gpt3.json && cusim plot gpt3.json --kind gain
    cusim plot row.npz --against measured.npz -o overlay.png

    The path of the picture goes to stdout.
    """  # fmt: skip
    if against is not None:
        from cli.overlaying import draw_overlay

        click.echo(draw_overlay(source, against, **given))
        return
    from cli.pictures import draw

    click.echo(draw(source, **given))
