"""Predictions of recorded rows: the engine's own, once a cell, alike on any number of processes."""

from __future__ import annotations

from dataclasses import replace

import pytest

import cusim
from cusim.engine.result import Deadlock
from cusim.recording.cells import cell_of, program_of
from cusim.recording.rows import Row
from cusim.validate.recorded import CUBLAS, DEADLOCK, FEW, Outcome, outcomes_of, predict_rows

MACHINE = cusim.load_machine("h200")
ROW = Row(
    "single", "dev", "gemm-256x512x256", 256, "128x128x64", "1", "stream", "row", "default", "wait-first", 0,
    9000, 8900, 9100, (8900, 9000, 9100), 1,
)  # fmt: skip


def single(m: int, n: int, order: str = "row", **changed: object) -> Row:
    return replace(ROW, workload=f"gemm-{m}x{n}x256", m=m, order=order, **changed)  # type: ignore[arg-type]


def test_a_row_is_predicted_as_the_front_door_predicts_it() -> None:
    rows = [ROW, replace(ROW, workload="gpt3-mlp", m=128, policy="row", order="group:2", tile="128x256x64")]
    for row, found in zip(rows, predict_rows(rows, MACHINE), strict=True):
        program, plan = program_of(cell_of(row), "h200")
        result = cusim.predict(program, MACHINE, plan)
        assert isinstance(result, cusim.Prediction)
        assert found == result.total_ps


def test_processes_change_nothing_and_a_cell_is_predicted_once() -> None:
    rows = [single(128 * (1 + i % FEW), 512, occasion=i // FEW) for i in range(2 * FEW)]
    heard: list[str] = []
    alone = predict_rows(rows, MACHINE, workers=1, watch=heard.append)
    assert len(heard) == FEW
    assert predict_rows(rows, MACHINE, workers=2) == alone
    assert alone[:FEW] == alone[FEW:]
    assert len(set(alone)) > FEW // 2  # rows got their own predictions, not each other's


def test_what_has_no_prediction_says_why() -> None:
    rows = [replace(ROW, policy="cublas-stream"), single(256, 512, tile="1024x1024x64"), ROW]
    library, tile, right = outcomes_of(rows, MACHINE)
    assert (library.total_ps, library.reason) == (None, CUBLAS)
    assert tile.total_ps is None
    assert "1024x1024x64" in tile.reason
    assert right.total_ps is not None
    assert right.reason == ""


def test_a_deadlock_is_an_outcome_not_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    program, plan = program_of(cell_of(ROW), "h200")
    trace = cusim.predict(program, MACHINE, plan).trace
    hung = Deadlock(("up[0, 0]", "down[0, 0]"), 1, 1, cusim.Verdict("can deadlock", "planted"), trace)

    monkeypatch.setattr("cusim.validate.recorded.predict", lambda *_: hung)
    assert outcomes_of([ROW], MACHINE) == [Outcome(None, DEADLOCK)]


def test_a_machine_of_another_name_takes_the_blocks_of_its_gpu() -> None:
    assert predict_rows([ROW], replace(MACHINE, name="mine")) == predict_rows([ROW], MACHINE)


@pytest.mark.parametrize("workers", [1, 2])
def test_no_rows_no_predictions(workers: int) -> None:
    assert predict_rows([], MACHINE, workers=workers) == []
