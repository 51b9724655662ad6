"""The error band of a machine, from dev rows alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cusim.calibrate.errors import dev_errors, errors_pct
from tests.recordings import CHAIN, timed

ROWS = [timed(replace(CHAIN, m=128 * place), 1_000_000) for place in range(1, 12)]
#: 0, 1, ... 10 per cent too slow, and as much too fast for every other row.
SAID = [1_000_000_000 + (-1) ** place * place * 10_000_000 for place in range(11)]


def test_errors_are_predicted_over_measured_less_one() -> None:
    assert errors_pct(ROWS[:2], [1_500_000_000, 500_000_000]) == pytest.approx([50.0, -50.0])
    assert errors_pct(ROWS[:2], [None, 1_000_000_000]) == [0.0]


def test_the_band_holds_nine_rows_of_ten_and_is_rounded_up() -> None:
    found = dev_errors(ROWS, SAID)
    assert found is not None
    assert (found.rows, found.mape_pct, found.percentile_pct) == (11, pytest.approx(5.0), pytest.approx(9.0))
    assert found.band_pct == 9
    wider = dev_errors(ROWS, [said - 1_000_000 * (said < 1_000_000_000) for said in SAID])
    assert wider is not None
    assert (wider.percentile_pct, wider.band_pct) == (pytest.approx(9.1), 10)
    assert dev_errors(ROWS, [None] * 11) is None
