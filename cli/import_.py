"""``cusim import``: a profiler's report as a program file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cli.options import FILE, quiet_option


@click.command(name="import", short_help="Turn a profiler's report into a program file.")
@click.option("--ncu", metavar="REPORT.csv", type=click.Path(path_type=Path), help="CSV of Nsight Compute.")
@click.option("-o", "--output", type=FILE, metavar="FILE", help="Program to write, .toml.  [default: stdout]")
@click.option(
    "--measured-on",
    metavar="NAME|FILE",
    help="Machine that the times were taken on.  [default: the preset of the report's GPU]",
)
@click.option("--process", metavar="ID", help="Which process, where the report holds kernels of several.")
@quiet_option
def command(ncu: Path | None, **given: Any) -> None:
    """Turn a report of Nsight Compute into a program: grids, block resources and times of its kernels.

    \b
    ncu --csv --page raw --section LaunchStats --metrics gpu__time_duration.sum PROGRAM > report.csv
    cusim import --ncu report.csv --measured-on h200 -o program.toml
    cusim predict program.toml --machine h200

    A profiler does not see which tiles a kernel reads: fill in the needs, a line for each kernel is there.
    """
    if ncu is None:
        raise click.UsageError("Name a report: cusim import --ncu REPORT.csv")
    from cli.importing import import_ncu

    import_ncu(ncu, **given)
