"""What graphs and early starts save, predicted and as recorded on the H200: differences to stream order, not totals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from cusim.engine.predict import predict
from cusim.engine.result import Prediction
from cusim.machine import load_machine
from cusim.policies.plan import Launch
from cusim.recording.cells import cell_of, program_of
from cusim.recording.rows import Row, read_recording

TRACES = Path(__file__).parents[2] / "traces" / "h200"
#: Stream order was recorded minutes before the launches that it is compared with: the medians of the two occasions lie
#: a microsecond apart (graph 0.94 and 1.90 us, PDL 1.47 and 2.29), and single shapes several.
NOISE_NS = 1500
SIZES = (512, 1024, 2048)  # predicted; what is recorded takes all
MACHINE = load_machine("h200")


def recorded(name: str) -> list[Row]:
    return [row for row in read_recording(TRACES / name)[0] if row.total_ns is not None]


def saved_ns(rows: list[Row], launch: str) -> list[int]:
    """Stream order less *launch*, for every shape of the group, at the same tile and order."""
    stream = {
        (row.workload, row.m, row.order): row.total_ns for row in rows if (row.group, row.policy) == ("chain", "stream")
    }
    asked = [row for row in rows if (row.group, row.launch) == ("launches", launch)]
    return [(stream[row.workload, row.m, row.order] or 0) - (row.total_ns or 0) for row in asked]


def predicted_ns(row: Row, launch: Launch) -> int:
    program, plan = program_of(cell_of(row), "h200")
    result = predict(program, MACHINE, replace(plan, launch=launch))
    assert isinstance(result, Prediction)
    return result.total_ps // 1000


def asked(launch: str) -> list[Row]:
    """Recorded rows of one launch, both occasions, at the sizes that are predicted."""
    rows = [*recorded("occasion-1.csv"), *recorded("occasion-2.csv")]
    return [row for row in rows if (row.group, row.launch) == ("launches", launch) and row.m in SIZES]


def test_a_graph_saves_what_the_recordings_save_within_their_noise() -> None:
    occasions = [recorded(f"occasion-{number}.csv") for number in (1, 2)]
    measured = median(saved for rows in occasions for saved in saved_ns(rows, "graph"))
    predicted = median(predicted_ns(row, "stream") - predicted_ns(row, "graph") for row in asked("graph"))
    assert measured > 0
    assert predicted > 0
    assert abs(predicted - measured) < NOISE_NS


@pytest.mark.parametrize("launch", ["graph", "pdl"])
def test_recorded_totals_lie_within_the_machines_band(launch: Launch) -> None:
    """This holds for early starts (PDL) too, whose saving the model misses: it says 0.2 us in the median of these
    sizes, between a loss of 3.8 and a gain of 1.4, where 1.9 was recorded in the median of all.
    """
    rows = asked(launch)
    assert len(rows) >= 2 * len(SIZES)
    for row in rows:
        assert row.total_ns is not None
        assert abs(predicted_ns(row, launch) / row.total_ns - 1) < MACHINE.band_pct / 100, row
