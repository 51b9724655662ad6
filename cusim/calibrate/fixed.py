"""A number that measurements fixed, and machines that carry such numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cusim.machine.calibration import Calibration
from cusim.machine.machine import Machine
from cusim.machine.parse import machine_from_json
from cusim.machine.quantity import IDS, Quantity, Status, kind_of

#: Digits of a value, and of its standard error, that a machine file keeps.
_DIGITS, _ERROR_DIGITS = 6, 2


@dataclass(frozen=True, slots=True)
class Fixed:
    """One leaf as measured: *value* and *stderr* in the leaf's internal unit (a stderr of None: the data do not say).

    *by* names in few words what fixed it, *source* says it in full, *record* is the digest of the file or files.
    """

    path: str
    value: float | tuple[int, ...]
    stderr: float | None
    by: str
    source: str
    record: str
    status: Status = "measured"


def with_values(machine: Machine, values: Mapping[str, float]) -> Machine:
    """*machine* with numbers replaced, in internal units; whole ones are rounded. Provenance stays as it was."""
    parts: dict[str, dict[str, Any]] = {}
    for path, value in values.items():
        section, _, leaf = path.rpartition(".")
        parts.setdefault(section, {})[leaf] = value if kind_of(leaf).whole == "real" else round(value)
    return replace(machine, **{name: replace(getattr(machine, name), **leaves) for name, leaves in parts.items()})


def value_of(machine: Machine, path: str) -> float:
    """A leaf of *machine* in its internal unit."""
    section, _, leaf = path.rpartition(".")
    return float(getattr(getattr(machine, section), leaf))


def with_fixed(machine: Machine, fixed: Sequence[Fixed]) -> Machine:
    """*machine* with each leaf of *fixed* and its provenance, values rounded as a file keeps them.

    Raises InputError where the numbers together make no machine.
    """
    document = machine.to_json()
    for each in fixed:
        section, _, leaf = each.path.rpartition(".")
        document[section][leaf] = _leaf(each, machine.provenance[each.path])
    return replace(machine_from_json(document, "calibration"), base=machine.base)


def calibrated(machine: Machine, band: Quantity, calibration: Calibration) -> Machine:
    """*machine* in state ``calibrated``, with its error *band* and the recordings that it rests on."""
    document = machine.to_json()
    document["state"] = "calibrated"
    document["band_pct"] = dataclasses.asdict(band)
    document["calibration"] = calibration.to_json()
    return machine_from_json(document, "calibration")


def _leaf(fixed: Fixed, before: Quantity) -> dict[str, Any]:
    """The leaf as JSON, in the unit in which the machine had it."""
    rest = {"unit": before.unit, "source": fixed.source, "status": fixed.status, "record": fixed.record}
    if isinstance(fixed.value, tuple):
        return {"value": list(fixed.value), "stderr": None, **rest}
    kind = kind_of(fixed.path.rpartition(".")[2])
    assert kind is not IDS
    factor = kind.units[before.unit]
    stderr = None if fixed.stderr is None else rounded(fixed.stderr / factor, _ERROR_DIGITS)
    return {"value": rounded(fixed.value / factor, _DIGITS), "stderr": stderr, **rest}


def rounded(value: float, digits: int) -> int | float:
    """*value* to so many significant digits; a whole number as an int."""
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() else short
