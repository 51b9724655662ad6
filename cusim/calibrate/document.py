"""A calibration as one JSON document (schema ``cusim.calibrate/1``)."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from cusim.calibrate.calibrate import Calibrated
from cusim.machine.quantity import Quantity
from cusim.report.version import cusim_version

SCHEMA = "cusim.calibrate/1"
_DECIMALS = 3


def json_text(found: Calibrated) -> str:
    """The document as text, indented, with a final newline; never NaN, which JSON lacks."""
    return json.dumps(document(found), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def document(found: Calibrated) -> dict[str, Any]:
    """Parameters before and after, errors by tile and over the dev rows, warnings, and the machine that was made."""
    return {
        "schema": SCHEMA,
        "parameters": [_parameter(found, place) for place in range(len(found.fixed))],
        "unfixed": found.unfixed,
        "calibrate": [_rounded(asdict(errors)) for errors in found.tiles],
        "dev": None if found.dev is None else _rounded(asdict(found.dev)),
        "band_pct": found.machine.band_pct,
        "warnings": list(found.warnings),
        "machine": found.machine.to_json(),
        "provenance": {"cusim": cusim_version(), "base": found.base.name, "base_digest": found.base.digest},
    }


def _parameter(found: Calibrated, place: int) -> dict[str, Any]:
    fixed = found.fixed[place]
    before, after = found.base.provenance[fixed.path], found.machine.provenance[fixed.path]
    return {
        "path": fixed.path,
        "before": _value(before),
        "after": _value(after),
        "stderr": after.stderr,
        "unit": after.unit,
        "by": fixed.by,
        "source": after.source,
    }


def _value(quantity: Quantity) -> object:
    return list(quantity.value) if isinstance(quantity.value, tuple) else quantity.value


def _rounded(numbers: dict[str, Any]) -> dict[str, Any]:
    return {name: round(value, _DECIMALS) if isinstance(value, float) else value for name, value in numbers.items()}
