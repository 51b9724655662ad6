"""The work of ``cusim calibrate``: what it reads, what it measures first, and where the answer goes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from cli.checkup import gpu_advice
from cli.exits import NO_GPU, OK
from cli.output import Progress, answer, check_place, columns, note, write_text, wrote
from cusim.calibrate.calibrate import Calibrated, calibrate
from cusim.calibrate.document import json_text
from cusim.calibrate.material import gather
from cusim.calibrate.pool import read_pool
from cusim.calibrate.text import text_lines
from cusim.machine.load import load_machine
from cusim.machine.machine import Machine
from cusim.machine.write import machine_to_toml

#: No part of the micro-benchmarks begins after so long; all of them take a few seconds.
_MEASURE_S = 130.0


def print_calibration(recordings: Sequence[Path], given: Mapping[str, Any]) -> int:
    """Calibrates, writes the machine, prints what changed; the exit code."""
    output, micro, quiet = given["output"], given["micro"], given["quiet"]
    check_place(output, (".toml",), [given["machine"], *recordings])
    base = load_machine(given["machine"])
    if given["measure"]:
        (place,) = micro
        check_place(place, (".json",))
        why = gpu_advice("Without --measure, --micro FILE takes the micro-benchmarks of an earlier run.")
        if why:
            click.echo(f"cusim: {why}", err=True)
            return NO_GPU
        _measure(place, quiet=quiet)
    found = _calibrated(recordings, base, given)
    if given["form"] == "json":
        click.echo(json_text(found), nl=False)
    else:
        answer(text_lines(found, columns()))
    notes = list(found.warnings)
    if output is None:
        notes.append("the machine was not kept; -o FILE.toml keeps it")
    else:
        write_text(output, machine_to_toml(found.machine))
        wrote(output, quiet=quiet)
    note(notes, quiet=quiet)
    return OK


def _calibrated(recordings: Sequence[Path], base: Machine, given: Mapping[str, Any]) -> Calibrated:
    micro = read_pool(given["micro"], base) if given["micro"] else None
    asked = tuple(part.strip() for text in given["fit"] for part in text.split(",") if part.strip())
    progress = Progress(None, quiet=given["quiet"])
    try:
        material = gather(recordings, base)
        date = time.strftime("%Y-%m-%d", time.gmtime())
        return calibrate(material, base, date, micro, asked, watch=progress.step)
    finally:
        progress.close()


def _measure(path: Path, *, quiet: bool) -> None:
    """Takes the micro-benchmarks on the GPU at hand and keeps them at *path*."""
    from backend_gpu.micro_record import write_findings
    from backend_gpu.microbench import measure

    findings, provenance = measure(_MEASURE_S)
    write_findings(path, findings, provenance)
    wrote(path, quiet=quiet)
    note((f"not measured: {name} ({why})" for name, why in findings.dropped.items()), quiet=quiet)
