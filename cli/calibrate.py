"""``cusim calibrate``: a machine file from recordings of a GPU, each number with its standard error."""

from __future__ import annotations

from typing import Any

import click

from cli.options import DEFAULT_MACHINE, FILE, quiet_option


@click.command(name="calibrate", short_help="Fit a machine to recordings of a GPU.")
@click.argument("recordings", metavar="RECORDING.csv ...", nargs=-1, type=FILE)
@click.option(
    "--micro", type=FILE, metavar="FILE", multiple=True,
    help="Micro-benchmarks of the same GPU (cusim.micro/1); of several days, give several.",
)  # fmt: skip
@click.option("--measure", is_flag=True, help="Take the micro-benchmarks on the GPU at hand first, into --micro FILE.")
@click.option(
    "--machine", default=DEFAULT_MACHINE, show_default=True, metavar="BASE",
    help="Machine to begin with, by name or file; what nothing fixes stays as it is there.",
)  # fmt: skip
@click.option("--fit", metavar="KEY,...", multiple=True, help="Fit these numbers instead of the usual ones.")
@click.option("--json", "form", flag_value="json", help="One JSON document (cusim.calibrate/1).")
@click.option("-o", "--output", type=FILE, metavar="FILE", help="Write the machine to FILE.toml.")
@quiet_option
@click.pass_context
def command(ctx: click.Context, /, recordings: tuple[Any, ...], **given: Any) -> None:
    """Turn single-kernel timings and micro-benchmarks of one GPU into a machine file.

    Numbers that a micro-benchmark gives are read: its median, with the median's standard error. The others are fitted
    to the rows labelled calibrate, by bounded robust least squares over the model's own predictions. Rows labelled dev
    fix no number; they set the error band. Sealed rows are ignored. A warning names every number that the data do not
    fix. Recordings may be files or folders of them.

    \b
    cusim calibrate traces/h200/occasion-1.csv --micro traces/h200/micro.json -o mine.toml
    cusim show mine.toml --diff h200
    cusim predict gpt3-mlp --m 768 --machine mine.toml

    Exit code 3 when --measure finds no usable GPU. Needs the extra `calibrate` (SciPy).
    """
    if not recordings:
        raise click.UsageError("Name a recording: a .csv file that begins with `# cusim.recording/1`, or a folder.")
    if given["measure"] and len(given["micro"]) != 1:
        raise click.UsageError("--measure needs one --micro FILE: the place to keep what it measures.")
    from cli.calibrating import print_calibration

    ctx.exit(print_calibration(recordings, given))
