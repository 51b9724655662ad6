"""The comparison as one JSON document (schema ``cusim.predict/1``); times are whole nanoseconds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from cusim.machine.machine import Machine
from cusim.program.program import Program
from cusim.report.result import Report, Row
from cusim.report.shape import dtype_of, m_of
from cusim.report.summary import footnotes
from cusim.report.text import verdicts
from cusim.report.version import cusim_version
from cusim.report.why import why_json

SCHEMA = "cusim.predict/1"


def document(reports: Sequence[Report]) -> dict[str, Any]:
    """The document of all reports; ``program`` and ``machine`` describe the first; rows name their own."""
    first = reports[0]
    why = {"why": why_json(first.why)} if first.why is not None else {}
    return {
        "schema": SCHEMA,
        "program": _program(first.program),
        "machine": machine_json(first.machine),
        "machines": _machines(reports),
        "rows": [row_json(report, row) for report in reports for row in report.rows],
        "kernels": _kernels(reports),
        "verdict": verdicts(reports),
        "footnotes": footnotes(reports),
        **why,
        "notes": list(dict.fromkeys(note for report in reports for note in report.notes)),
        "provenance": _provenance(reports),
    }


def json_text(reports: Sequence[Report]) -> str:
    """The document as text, indented, with a final newline; never NaN, which JSON lacks."""
    return json.dumps(document(reports), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def row_json(report: Report, row: Row) -> dict[str, Any]:
    """A row as a flat object: its fields, and what the report around it fixes."""
    around = {
        "program": report.program.name,
        "machine": report.machine.name,
        "gpu": report.machine.gpu,
        "overrides": list(report.machine.overrides),
        "dispatch": report.dispatch,
        "seed": report.seed,
    }
    return {**asdict(row), **around}


def machine_json(machine: Machine) -> dict[str, Any]:
    """What a reader needs to know which machine this was; the numbers are named by the digest."""
    return {
        "name": machine.name,
        "gpu": machine.gpu,
        "sms": machine.limits.sms,
        "state": machine.state,
        "band_pct": machine.band_pct,
        "digest": machine.digest,
        "overrides": list(machine.overrides),
    }


def _machines(reports: Sequence[Report]) -> list[dict[str, Any]]:
    """Every distinct machine, in the order of the rows."""
    return list({report.machine.digest: machine_json(report.machine) for report in reports}.values())


def _program(program: Program) -> dict[str, Any]:
    return {
        "name": program.name,
        "digest": program.digest,
        "m": m_of(program),
        "dtype": dtype_of(program),
        "kernels": [kernel.name for kernel in program.kernels],
    }


def _kernels(reports: Sequence[Report]) -> list[dict[str, Any]]:
    """Every distinct kernel row with the machine it stands for."""
    found: list[dict[str, Any]] = []
    for report in reports:
        for row in report.kernels:
            kernel: Mapping[str, Any] = {
                **asdict(row),
                "grid": list(row.grid),
                "machine": report.machine.name,
                "sms": report.machine.limits.sms,
            }
            if kernel not in found:
                found.append(dict(kernel))
    return found


def _provenance(reports: Sequence[Report]) -> dict[str, Any]:
    """Everything needed to make the same document again."""
    programs = {program.digest: program.name for report in reports for program in report.programs}
    return {
        "cusim_version": cusim_version(),
        "kind": "predicted",
        "spread": "none: the same input gives the same bytes",
        "machines": _machines(reports),
        "program_digests": list(programs),
        "overrides": list(dict.fromkeys(s for report in reports for s in report.machine.overrides)),
        "dispatch": list(dict.fromkeys(report.dispatch for report in reports)),
        "seed": list(dict.fromkeys(report.seed for report in reports)),
    }
