"""Rivals on recordings, each by hand: what no figure of theirs may owe to the model."""

from __future__ import annotations

import statistics
from pathlib import Path

from cusim.validate.recorded_validation import validate_recordings
from cusim.validate.recordings import load_recordings
from cusim.validate.timelines import over_pct
from tests.machines import uncalibrated
from tests.recordings import chain_rows, written

MACHINE = uncalibrated()


def test_the_constant_is_the_median_measured_time(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", chain_rows(ms=(128, 256, 1024)))
    (table,) = (
        t for t in validate_recordings(load_recordings([path], MACHINE), MACHINE, workers=1).tables if t.kind == "chain"
    )
    times = [row.scored.measured_ps for row in table.rows]
    middle = statistics.median(times)
    assert statistics.fmean(times) != middle
    wanted = statistics.fmean(abs(middle / time - 1) for time in times) * 100
    assert abs(table.rivals["constant"].errors.mape_pct - wanted) < 1e-3


def test_whole_waves_are_counted_for_stream_order_alone(tmp_path: Path) -> None:
    """In stream order it is the kernels added up; where kernels overlap, waves count as they are, so in less time."""
    whole = chain_rows(ms=(768,))
    alone = [row for row in whole if row.policy == "stream"]
    for name, rows in (("alone", alone), ("whole", whole)):
        recordings = load_recordings([written(tmp_path / f"{name}.csv", rows)], MACHINE)
        (table,) = (t for t in validate_recordings(recordings, MACHINE, workers=1).tables if t.kind == "chain")
        ceil, added = (table.rivals[rival].errors for rival in ("ceil-wave", "sum-of-kernels"))
        if name == "alone":
            assert ceil == added
        else:
            assert ceil.bias_pct is not None
            assert added.bias_pct is not None
            assert ceil.bias_pct < added.bias_pct


def test_an_error_is_predicted_over_measured_less_one() -> None:
    assert over_pct(3, 2) == 50.0
    assert over_pct(1, 2) == -50.0
    assert over_pct(None, 2) is None
    assert over_pct(1, 0) is None
