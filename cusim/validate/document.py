"""A validation as one JSON document (schema ``cusim.validate/1``); times are whole nanoseconds."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from cusim.report.version import cusim_version
from cusim.validate.aims import aims_of
from cusim.validate.cases import merge
from cusim.validate.machines import settings_of
from cusim.validate.published import PublishedSet
from cusim.validate.readings import CONTEXT, SCORED
from cusim.validate.rivals import best_fixed
from cusim.validate.scores import Scored, decided, error_pct, sign_right
from cusim.validate.tables import BASELINE, RowResult, Table

SCHEMA = "cusim.validate/1"
_PS_PER_NS = 1000
_DECIMALS = 3


@dataclass(frozen=True)
class Validation:
    """Everything of one run: the *name* that was asked for, the sets and the tables made of them."""

    name: str
    sets: tuple[PublishedSet, ...]
    tables: tuple[Table, ...]


def document(validation: Validation) -> dict[str, Any]:
    """The whole validation: tables by prediction and name, and where every number comes from."""
    tables: dict[str, dict[str, Any]] = {}
    for table in validation.tables:
        tables.setdefault(table.prediction, {})[table.name] = table_json(table)
    return {
        "schema": SCHEMA,
        "set": validation.name,
        "tables": tables,
        "machines": {table.machine.name: _machine(table) for table in validation.tables},
        "published": {published.gpu: dict(published.head) for published in validation.sets},
        "context": {published.gpu: context_of(published) for published in validation.sets},
        "provenance": {"cusim": cusim_version()},
    }


def json_text(validation: Validation) -> str:
    """The document as text, indented, with a final newline; never NaN, which JSON lacks."""
    return json.dumps(document(validation), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def table_json(table: Table) -> dict[str, Any]:
    """One table: rows, summary, rivals, policies, aims, and the error with each shape left out of what was fitted."""
    return {
        "rows": [row_json(table, row) for row in table.rows],
        "summary": table.summary.to_json(),
        "above_bound": {"n": (found := table.reachable).n, **_rounded({"mape_pct": found.mape_pct})},
        "rivals": {name: summary.to_json() for name, summary in table.rivals.items()},
        "best_fixed_policy": best_fixed([row.scored for row in table.rows]).policy,
        "by_policy": {policy: _rounded(asdict(found)) for policy, found in table.policies.items()},
        "aims": [aim.to_json(table.summary) for aim in aims_of(table.prediction, table.name)],
        "held_out": None if table.held_out is None else _rounded(asdict(table.held_out)),
    }


def row_json(table: Table, row: RowResult) -> dict[str, Any]:
    """One row as a flat object; ``given`` marks what the prediction was told."""
    scored, kernels = row.scored, row.case.program.kernels
    base = next(other.scored for other in table.rows if _is_base(other.scored, scored))
    error = error_pct(scored)
    assert scored.predicted_ps is not None
    assert base.predicted_ps is not None
    compared = scored.policy != BASELINE
    return {
        "m": row.case.reading.m,
        "policy": scored.policy,
        "flags": row.case.reading.flags,
        "tile": "+".join("x".join(map(str, kernel.tile)) for kernel in kernels),
        "split_k": "+".join(str(kernel.grid[2]) for kernel in kernels),
        "stages": "+".join(str(kernel.stages) for kernel in kernels),
        "changed": list(row.case.changed),
        "measured_ns": scored.measured_ps // _PS_PER_NS,
        "stdev_ns": scored.noise_ps // _PS_PER_NS,
        "predicted_ns": scored.predicted_ps // _PS_PER_NS,
        "given": scored.given,
        "error_pct": None if error is None or scored.given else round(error, _DECIMALS),
        "gain_measured_pct": round(100.0 * (1.0 - scored.measured_ps / base.measured_ps), _DECIMALS),
        "gain_predicted_pct": round(100.0 * (1.0 - scored.predicted_ps / base.predicted_ps), _DECIMALS),
        "decided": decided(scored, base) if compared else None,
        "sign_right": sign_right(scored, base) if compared and decided(scored, base) else None,
        "bound_ns": None if row.bound_ps is None else row.bound_ps // _PS_PER_NS,
        "below_bound": None if row.bound_ps is None else row.below_bound,
        "shape_group": scored.group,
    }


def context_of(published: PublishedSet) -> list[dict[str, Any]]:
    """Published times of every size, contenders that are not scored included, in ns; None where there are none."""
    found = []
    for m in sorted({reading.m for reading in published.readings}):
        line: dict[str, Any] = {"m": m}
        for policy in (*CONTEXT, *SCORED):
            readings = [r for r in published.readings if r.m == m and r.policy == policy]
            line[f"{policy}_ns"] = merge(readings).total_ps // _PS_PER_NS if readings else None
        found.append(line)
    return found


def missed(tables: Iterable[Table]) -> list[tuple[Table, dict[str, Any]]]:
    """Every aim that was not met, with its table."""
    judged = ((table, aim.to_json(table.summary)) for table in tables for aim in aims_of(table.prediction, table.name))
    return [(table, aim) for table, aim in judged if not aim["met"]]


def _is_base(other: Scored, row: Scored) -> bool:
    return other.policy == BASELINE and other.shape == row.shape


def _machine(table: Table) -> dict[str, Any]:
    machine = table.machine
    return {
        "gpu": machine.gpu,
        "digest": machine.digest,
        "state": machine.state,
        "settings": [asdict(setting) for setting in settings_of(machine.name)],
    }


def _rounded(found: dict[str, Any]) -> dict[str, Any]:
    return {name: round(value, _DECIMALS) if isinstance(value, float) else value for name, value in found.items()}
