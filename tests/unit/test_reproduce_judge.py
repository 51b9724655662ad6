"""When a value agrees with a printed one: what prints as it, and no more."""

from __future__ import annotations

import pytest

from cusim.reproduce.judge import judged, numbers, printed_range, words


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [("4", 3.5, 4.5), ("0.4", 0.35, 0.45), ("5-6", 4.5, 6.5), ("2.1-4.1", 2.05, 4.15), ("-0.6", -0.65, -0.55)],
)
def test_a_printed_number_stands_for_what_rounds_to_it(text: str, low: float, high: float) -> None:
    assert printed_range(text) == pytest.approx((low, high))


@pytest.mark.parametrize("text", ["", "about 4", "4 %", "1-2-3"])
def test_other_text_is_no_number(text: str) -> None:
    with pytest.raises(ValueError, match="neither a number nor a range"):
        printed_range(text)


@pytest.mark.parametrize(
    ("ours", "low", "high", "same"),
    [(0.45, None, None, True), (0.46, None, None, False), (0.5, 0.44, 0.6, True), (0.3, 0.2, 0.34, False)],
)
def test_the_band_of_ours_must_meet_what_is_printed(
    ours: float, low: float | None, high: float | None, same: bool
) -> None:
    assert (numbers("0.4", ours, low=low, high=high).status == "same") is same


@pytest.mark.parametrize(
    ("points", "why", "status"),
    [
        (False, "", "differs: ours is 50 % more; unexplained"),
        (False, "the moon", "differs: ours is 50 % more; the moon"),
        (True, "the moon", "differs: ours is 10.0 points more; the moon"),
    ],
)
def test_a_difference_has_a_size_and_a_reason(points: bool, why: str, status: str) -> None:
    assert numbers("20", 30.0, points=points, why=why).status == status


def test_values_are_rounded_after_they_are_judged_and_zero_has_no_sign() -> None:
    found = numbers("1", 1.46, low=-0.04, high=1.5, baseline=2)
    assert (found.ours, found.low, found.high, found.baseline) == (1.5, 0.0, 1.5, 2)
    assert str(found.low) == "0.0"
    assert numbers("1", 1.51).status != "same"


def test_words_are_the_same_or_not() -> None:
    assert words("finishes", "finishes", why="never said").status == "same"
    assert words("finishes", "deadlocks").status == "differs: unexplained"
    assert judged(True, "0.45, 0.9").status == "same"
