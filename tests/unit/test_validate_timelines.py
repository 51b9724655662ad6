"""Recorded timelines judged: planted errors come out with their size, luck is told, strangers are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import cusim
from cusim.errors import InputError
from cusim.machine.calibration import Calibration, Used, file_digest
from cusim.recording.cells import Cell, program_of
from cusim.report.line import WIDTH
from cusim.trace.formats import write_trace
from cusim.trace.trace import Trace
from cusim.validate.parts import markdown_of, text_of
from cusim.validate.timelines import document, judge_timelines, summary_of
from cusim.validate.timelines_text import timeline_parts

MACHINE = cusim.load_machine("h200")
US = 1_000_000


def simulated(m: int = 256, policy: str = "stream") -> Trace:
    """What the model says of a run, passed off as measured: the perfect measurement."""
    program, plan = program_of(Cell("", "", "gpt3-mlp", m, "", "1", "wait-first", policy, "row", None), "h200")
    trace = cusim.predict(program, MACHINE, plan).trace
    facts = {"kind": "measured", "machine": "NVIDIA H200", "launch": plan.launch, "label": "dev"}
    return replace(trace, meta={**trace.meta, **facts, "stamped_samples_ns": [trace.meta["total_ns"] + 2000] * 3})


def stretched(trace: Trace, up_us: int, down_us: int) -> Trace:
    """The trace with every block of up and down so much longer, down later by what up takes longer."""
    tiles = {name: column.copy() for name, column in trace.tiles.items()}
    down = tiles["kernel"] == 1
    for name in ("placed", "ready", "first_load", "end"):
        tiles[name][down] += up_us * US
    tiles["end"][~down] += up_us * US
    tiles["end"][down] += down_us * US
    return replace(trace, tiles=tiles)


def write(folder: Path, name: str, trace: Trace) -> Path:
    path = folder / f"{name}.npz"
    write_trace(trace, path)
    return path


def test_a_perfect_measurement_has_no_error(tmp_path: Path) -> None:
    write(tmp_path, "stream", simulated())
    write(tmp_path, "row", simulated(policy="row"))
    heard: list[str] = []
    judged = judge_timelines(tmp_path, MACHINE, heard.append)
    assert heard == [each.name for each in judged] == ["row", "stream"]
    summary = summary_of(judged)
    assert summary["total_mape_pct"] == pytest.approx(0, abs=0.001)
    assert summary["round_mape_pct"] == pytest.approx(0, abs=0.01)  # files hold whole ns
    for each in judged:
        assert np.abs(each.found.tiles.end).max() <= 2000
        assert each.found.stamped_ns == (each.found.measured_ns or 0) + 2000


def test_a_total_that_is_right_by_luck_is_told(tmp_path: Path) -> None:
    path = write(tmp_path, "lucky", stretched(simulated(), 9, -9))
    (judged,) = judge_timelines(path, MACHINE)
    assert judged.lucky
    assert judged.total_error_pct == pytest.approx(0, abs=0.001)
    assert [round(each.error_ps / US) for each in judged.found.kernels] == [-9, 9]
    assert judged.found.cancelled_pct > 99
    text = "\n".join(line.text for line in text_of(timeline_parts([judged], MACHINE, every_round=False), WIDTH))
    assert "right by luck, 1 of" in text
    assert "\nlucky: " in text or "  lucky: " in text
    assert "up -9.0, down +9.0 us" in text
    assert summary_of([judged])["lucky"] == ["lucky"]


def test_errors_that_add_up_are_no_luck(tmp_path: Path) -> None:
    (judged,) = judge_timelines(write(tmp_path, "late", stretched(simulated(), 9, 9)), MACHINE)
    assert not judged.lucky
    assert judged.found.cancelled_pct < 1
    assert round(judged.found.span.error_ps / US) == -18


def test_the_document_holds_totals_kernels_rounds_and_tiles(tmp_path: Path) -> None:
    judged = judge_timelines(write(tmp_path, "mine", stretched(simulated(), 9, 3)), MACHINE)
    whole = json.loads(document(judged, MACHINE, every_tile=True))
    assert whole["schema"] == "cusim.timelines/1"
    assert whole["machine"] == {"name": "h200", "digest": MACHINE.digest, "state": MACHINE.state}
    (found,) = whole["timelines"]
    assert (found["workload"], found["m"], found["policy"], found["order"]) == ("gpt3-mlp", 256, "stream", "row")
    assert [kernel["kernel"] for kernel in found["kernels"]] == ["up", "down"]
    for kernel, late in zip(found["kernels"], (-9000, -3000), strict=True):
        assert kernel["duration_error"]["median_ns"] == pytest.approx(late, abs=2)
        assert kernel["predicted_ns"] - kernel["measured_ns"] == pytest.approx(late, abs=2)
    assert [each["round"] for each in found["rounds"]] == list(range(1, len(found["rounds"]) + 1))
    assert sum(part["tiles"] for each in found["rounds"] for part in each["kernels"]) == judged[0].timeline.trace.blocks
    errors = [each["predicted_ns"] - each["measured_ns"] for each in found["rounds"]]
    assert sum(errors) == pytest.approx(
        found["span"]["predicted_ns"] - found["span"]["measured_ns"], abs=len(errors) + 1
    )
    assert {len(column) for column in found["tiles"].values()} == {judged[0].timeline.trace.blocks}
    assert "tiles" not in json.loads(document(judged, MACHINE))["timelines"][0]


def test_tables_have_rounds_where_they_are_asked_for(tmp_path: Path) -> None:
    judged = judge_timelines(write(tmp_path, "mine", stretched(simulated(), 9, 3)), MACHINE)
    few, all_of_it = (list(timeline_parts(judged, MACHINE, every_round=every)) for every in (False, True))
    assert len(all_of_it) == len(few) + 1
    assert [part.heading for part in all_of_it][2] == "tiles by round, us"
    assert sum(int(row[4]) for row in all_of_it[2].rows) == judged[0].timeline.trace.blocks
    assert "| mine | up |" in "\n".join(markdown_of(few))


def test_another_gpu_and_what_the_machine_was_fitted_on_are_refused_together(tmp_path: Path) -> None:
    trace = simulated()
    write(tmp_path, "a100", replace(trace, meta={**trace.meta, "machine": "NVIDIA A100-SXM4-40GB"}))
    seen = write(tmp_path, "seen", trace)
    used = Used("seen.npz", file_digest(seen.read_bytes()), ("dev",), 1)
    with pytest.raises(InputError) as refused:
        judge_timelines(tmp_path, replace(MACHINE, calibration=Calibration("2026-12-01", (used,))))
    assert [problem.key for problem in refused.value.problems] == ["a100: machine", "seen"]
    assert "was calibrated on it" in str(refused.value)


def test_a_measurement_with_other_tiles_is_refused(tmp_path: Path) -> None:
    trace = simulated()
    tiles = {name: column.copy() for name, column in trace.tiles.items()}
    for name in ("r", "c"):
        tiles[name][0] = tiles[name][1]
    with pytest.raises(InputError, match="order"):
        judge_timelines(write(tmp_path, "twice", replace(trace, tiles=tiles)), MACHINE)
