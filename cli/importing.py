"""The work of ``cusim import``: one report in, one program out."""

from __future__ import annotations

from pathlib import Path

import click

from cli.output import check_place, note, write_text, wrote


def import_ncu(report: Path, *, output: Path | None, measured_on: str | None, process: str | None, quiet: bool) -> None:
    """Writes the program of a report of Nsight Compute to *output*, or prints it; InputError writes nothing."""
    from cusim.importers import ncu, ncu_program

    check_place(output, (".toml",))
    found = ncu.load_ncu(report, process)
    machine, remarks = ncu_program.measured_on(found, measured_on, str(report))
    name = output.stem if output is not None else report.stem
    text = ncu_program.program_text(found, name, machine)
    if output is None:
        click.echo(text, nl=False)
    else:
        write_text(output, text)
        wrote(output, quiet=quiet)
    note([*remarks, f"{len(found.launches)} kernels, independent until their needs are filled in"], quiet=quiet)
