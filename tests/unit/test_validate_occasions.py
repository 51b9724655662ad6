"""Pooling occasions: times, and noise from samples and from occasions, against figures worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from cusim.validate.occasions import between_share, pool, within_ps
from cusim.validate.recordings import Recording, Taken
from tests.recordings import CHAIN, SINGLE, timed


def taken(*files: tuple[str, list[object]]) -> list[Taken]:
    found = []
    for name, rows in files:
        recording = Recording(Path(name), "0" * 12, tuple(rows), {})  # type: ignore[arg-type]
        found += [Taken(recording, row) for row in recording.rows]
    return found


ONE = timed(SINGLE, 990, 1000, 1010)
#: The same cell on another day, 2 % slower, with twice the spread.
OTHER = timed(SINGLE, 1000, 1020, 1040)


def test_one_cell_on_two_days_by_hand() -> None:
    found = pool(taken(("a.csv", [ONE]), ("b.csv", [OTHER])))
    (cell,) = found.cells
    assert cell.occasions == {"a.csv#0": 1_000_000, "b.csv#0": 1_020_000}
    assert cell.measured_ps == 1_010_000
    within = ((100 + 100 + 400 + 400) / 4) ** 0.5 * 1000  # four degrees of freedom
    between = 2**0.5 * 10_000 / 1_010_000  # 1010 +- 10 us, one degree of freedom
    assert found.between_pct == pytest.approx(100 * between)
    assert cell.noise_ps == pytest.approx((within**2 / 3 + (between * 1_010_000) ** 2) ** 0.5, abs=1)
    assert found.drift_pct == pytest.approx({"a.csv#0": -100 / 101, "b.csv#0": 100 / 101})


def test_cells_of_one_day_share_what_others_know_of_days() -> None:
    alone = timed(SINGLE, 2000, 2000, 2000, m=512, workload="gemm-512x512x256")
    found = pool(taken(("a.csv", [ONE, alone]), ("b.csv", [OTHER])))
    assert found.repeated == 1
    assert found.between_pct is not None
    assert found.cells[1].noise_ps == pytest.approx(found.between_pct / 100 * 2_000_000, abs=1)


def test_without_a_second_day_noise_is_that_of_the_samples() -> None:
    found = pool(taken(("a.csv", [ONE])))
    assert found.between_pct is None
    assert found.cells[0].noise_ps == pytest.approx(10_000 / 3**0.5, abs=1)


def test_occasions_of_one_file_and_sets_stay_apart() -> None:
    rows = [ONE, timed(SINGLE, 1010, occasion=1), timed(SINGLE, 1200, label="dev")]
    calibrate, dev = pool(taken(("a.csv", rows))).cells
    assert list(calibrate.occasions.values()) == [1_000_000, 1_010_000]
    assert (dev.label, dev.measured_ps) == ("dev", 1_200_000)


def test_rows_without_samples_are_no_cells() -> None:
    refused = CHAIN.__class__(*[getattr(CHAIN, name) for name in CHAIN.__slots__][:11], None, None, None)
    assert pool(taken(("a.csv", [refused]))).cells == ()


def test_spreads_by_hand() -> None:
    assert within_ps([(5,), (7,)]) == 0.0
    assert within_ps([(1, 3)]) == pytest.approx(2**0.5 * 1000)
    assert between_share([{"a": 99, "b": 101}, {"a": 100}]) == pytest.approx(2**0.5 / 100)
    assert between_share([{"a": 99, "b": 101}, {"a": 97, "b": 103}]) == pytest.approx(((2 + 18) / 2) ** 0.5 / 100)
    assert between_share([{"a": 5}]) is None
