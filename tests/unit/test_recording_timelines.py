"""Recorded timelines find the program and plan that were run, and refuse what can no longer be proved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cusim
from cusim.errors import InputError
from cusim.policies.plan_serial import plan_digest
from cusim.recording.cells import Cell, program_of
from cusim.recording.timelines import read_timelines, timeline_of
from cusim.trace.formats import write_trace
from cusim.trace.trace import Trace

MACHINE = cusim.load_machine("h200")


def measured(m: int = 256, policy: str = "row", order: str = "group:2", **meta: Any) -> Trace:
    """A trace as a GPU would have recorded it: the simulator's, said to be measured, with the launch that it had."""
    cell = Cell("", "", "gpt3-mlp", m, "", "1", "wait-first", policy, order, None)
    program, plan = program_of(cell, "h200")
    trace = cusim.predict(program, MACHINE, plan).trace
    return replace(trace, meta={**trace.meta, "kind": "measured", "launch": plan.launch, **meta})


@pytest.mark.parametrize(
    ("m", "policy", "order"),
    [(256, "row", "group:2"), (200, "stream", "row"), (384, "tile", "column"), (384, "batched:2", "group:2")],
)
def test_the_program_and_plan_are_found_again(m: int, policy: str, order: str) -> None:
    trace = measured(m, policy, order)
    found = timeline_of(trace, "mine", "h200", "mine.npz")
    assert (found.cell.m, found.cell.policy) == (m, policy)
    assert found.program.digest == trace.meta["program_digest"]
    assert plan_digest(found.plan) == trace.meta["plan_digest"]
    assert found.program.kernels[0].gemm is not None
    assert found.program.kernels[0].gemm.m == m


def test_every_recorded_timeline_is_found(root: Path) -> None:
    folder = root / "traces" / "h200" / "timelines"
    found = read_timelines(folder, "h200")
    assert [each.name for each in found] == sorted(path.stem for path in folder.glob("*.npz"))
    for each in found:
        assert each.name.startswith(f"{each.program.name}-{each.cell.m}-{each.cell.policy}")


@pytest.mark.parametrize(
    ("meta", "key", "says"),
    [
        ({"program_digest": "0" * 12}, "meta.program_digest", "is of no gpt3-mlp with 2 rows of tiles"),
        ({"plan_digest": "0" * 12}, "meta.plan_digest", "no plan with policy row, launch wait-first and order"),
        ({"plan": "tile"}, "meta.plan_digest", "policy tile"),
        ({"kind": "predicted"}, "meta.kind", "is no measured trace"),
        ({"launch": None}, "meta.kind", "lacks launch"),
        ({"program": "mine"}, "workload", "unknown workload"),
    ],
)
def test_what_cannot_be_proved_is_refused(meta: dict[str, Any], key: str, says: str) -> None:
    with pytest.raises(InputError, match=says) as refused:
        timeline_of(measured(**meta), "mine", "h200", "mine.npz")
    assert refused.value.source == "mine.npz"
    assert [problem.key for problem in refused.value.problems] == [key]


def test_tickets_in_an_order_of_nobody_are_refused() -> None:
    trace = measured()
    tickets = np.random.default_rng(0).permutation(trace.blocks)
    mixed = replace(trace, tiles={**trace.tiles, "ticket": tickets})
    with pytest.raises(InputError, match=r"order +is none of row, column and group:1 to group:64"):
        timeline_of(mixed, "mine", "h200", "mine.npz")


def test_a_folder_is_read_by_name_and_a_file_alone(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no \.npz file"):
        read_timelines(tmp_path, "h200")
    write_trace(measured(256), tmp_path / "b.npz")
    write_trace(measured(384), tmp_path / "a.npz")
    assert [(each.name, each.cell.m) for each in read_timelines(tmp_path, "h200")] == [("a", 384), ("b", 256)]
    assert [each.name for each in read_timelines(tmp_path / "b.npz", "h200")] == ["b"]
