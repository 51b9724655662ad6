"""A validation on recordings as one JSON document (schema ``cusim.validate/1``); times are whole nanoseconds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from cusim.report.version import cusim_version
from cusim.validate.document import SCHEMA
from cusim.validate.gate import Passed
from cusim.validate.judged import BASELINE, Judged
from cusim.validate.judging import BEYOND_PCT
from cusim.validate.occasions import Pooled
from cusim.validate.recorded_tables import ANY_TILE, RecordedTable
from cusim.validate.recorded_validation import RecordedValidation
from cusim.validate.scores import Errors, Scored, decided, error_pct, sign_right

_PS_PER_NS = 1000
_DECIMALS = 3


def recorded_json(validation: RecordedValidation, gates: Sequence[Passed] = ()) -> dict[str, Any]:
    """The whole validation: tables by set and kind, where every number comes from, what was left out and why."""
    tables: dict[str, dict[str, Any]] = {}
    for table in validation.tables:
        tables.setdefault(table.label, {})[table.kind] = recorded_table_json(table)
    machine, found = validation.machine, validation.pool
    return {
        "schema": SCHEMA,
        "machine": {
            "name": machine.name,
            "gpu": machine.gpu,
            "digest": machine.digest,
            "state": machine.state,
            "overrides": list(machine.overrides),
            "calibration": None if machine.calibration is None else machine.calibration.to_json(),
        },
        "recordings": [
            {"file": str(r.path), "digest": r.digest, "rows": len(r.rows), "meta": dict(r.meta)}
            for r in validation.recordings
        ],
        "noise": {
            "between_pct": _rounded(found.between_pct),
            "repeated_cells": found.repeated,
            "drift_pct": {occasion: _rounded(drift) for occasion, drift in found.drift_pct.items()},
        },
        "tables": tables,
        "fitted_on": {file: errors_json(errors) for file, errors in validation.fitted.items()},
        "seen_tiles": sorted(validation.seen),
        "refused": dict(validation.refused),
        "unpredicted": dict(validation.unpredicted),
        "context": [_measured_json(pooled) for pooled in validation.by_cublas],
        "gates": [
            {**asdict(item.gate), "set": item.gate.label, "value": item.value, "met": item.met} for item in gates
        ],
        "provenance": {"cusim": cusim_version()},
    }


def recorded_json_text(validation: RecordedValidation, gates: Sequence[Passed] = ()) -> str:
    """The document as text, indented, with a final newline; never NaN, which JSON lacks."""
    return json.dumps(recorded_json(validation, gates), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def recorded_table_json(table: RecordedTable) -> dict[str, Any]:
    """One table; rows of the choice among all tiles stand with their errors in the table at one tile."""
    return {
        "rows": [] if table.kind == ANY_TILE else rows_json(table),
        "summary": table.summary.to_json(),
        "rivals": {name: summary.to_json() for name, summary in table.rivals.items()},
        "rules": dict(table.rules),
        "by_policy": {
            policy: {"rows": errors_json(own), "best_of_orders": errors_json(best)}
            for policy, (own, best) in table.policies.items()
        },
        "worst": [
            {"workload": g.workload, "policy": g.policy, "cut": g.cut, **errors_json(g.errors)} for g in table.worst
        ],
    }


def rows_json(table: RecordedTable) -> list[dict[str, Any]]:
    """The rows of a table as flat objects, each with its gain over stream order in its own order, where recorded."""
    base = {_like(row.scored): row.scored for row in table.rows if row.scored.policy == BASELINE}
    return [_row_json(row, base.get(_like(row.scored))) for row in table.rows]


def errors_json(errors: Errors) -> dict[str, Any]:
    """Errors as a flat object, rounded."""
    return {name: _rounded(value) for name, value in asdict(errors).items()}


def _row_json(row: Judged, base: Scored | None) -> dict[str, Any]:
    scored = row.scored
    error = error_pct(scored)
    compared = base is not None and scored.policy != BASELINE
    told = compared and base is not None and decided(scored, base, BEYOND_PCT)
    return {
        **_measured_json(row.pooled),
        "predicted_ns": None if scored.predicted_ps is None else scored.predicted_ps // _PS_PER_NS,
        "error_pct": _rounded(error),
        "why_not": row.outcome.reason or None,
        "gain_measured_pct": _gain(scored.measured_ps, base.measured_ps) if compared and base else None,
        "gain_predicted_pct": _gain(scored.predicted_ps, base.predicted_ps) if compared and base else None,
        "decided": told if compared else None,
        "sign_right": sign_right(scored, base) if told and base else None,
        "shape_group": scored.group,
    }


def _measured_json(pooled: Pooled) -> dict[str, Any]:
    cell = pooled.cell
    return {
        "workload": cell.workload,
        "m": cell.m,
        "tile": cell.tile,
        "split_k": cell.split_k,
        "policy": f"cublas-{cell.cublas}" if cell.cublas else cell.policy,
        "order": cell.order,
        "flags": cell.flags,
        "launch": cell.launch,
        "measured_ns": pooled.measured_ps // _PS_PER_NS,
        "noise_ns": pooled.noise_ps // _PS_PER_NS,
        "occasions_ns": {name: time // _PS_PER_NS for name, time in pooled.occasions.items()},
    }


def _like(row: Scored) -> tuple[str, str, str]:
    return row.shape, row.order, row.cut


def _gain(time_ps: int | None, base_ps: int | None) -> float | None:
    return None if time_ps is None or base_ps is None else _rounded(100.0 * (1.0 - time_ps / base_ps))


def _rounded(value: float | None) -> float | None:
    return round(value, _DECIMALS) if isinstance(value, float) else value
