"""Does a value agree with a printed one? A printed number stands for every value that rounds to it."""

from __future__ import annotations

import re

from cusim.reproduce.claim import DIFFERS, SAME, Answer, Value

_RANGE = re.compile(r"(-?\d+(?:\.\d+)?)(?:-(\d+(?:\.\d+)?))?")
UNEXPLAINED = "unexplained"
#: Room for binary fractions: 1.25 prints as 1.2 or 1.3.
_SLACK = 1e-9


def printed_range(text: str) -> tuple[float, float]:
    """The values that ``0.6`` or ``5-6`` stands for: half a unit of the last digit to either side.

    Raises ValueError for text that is no number and no range.
    """
    match = _RANGE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is neither a number nor a range")
    first, last = match[1], match[2] or match[1]
    return float(first) - _half_unit(first) - _SLACK, float(last) + _half_unit(last) + _SLACK


def numbers(
    printed: str,
    ours: float,
    *,
    baseline: float | None = None,
    low: float | None = None,
    high: float | None = None,
    points: bool = False,
    why: str = "",
    note: str = "",
    digits: int = 1,
) -> Answer:
    """Same where the band of ours, [*low*, *high*] or ours alone, meets what is printed.

    *why* explains a difference, if there is one, after how large it is: in percent, or in *points* where the values
    are percentages themselves; a difference without it is said to be unexplained. Values are rounded to *digits* once
    they have been judged.
    """
    least, most = printed_range(printed)
    bottom, top = ours if low is None else low, ours if high is None else high
    same = bottom <= most and top >= least
    status = SAME if same else _differs(_distance(ours, least, most, points=points), why or UNEXPLAINED)
    return Answer(
        status, _rounded(ours, digits), _rounded(baseline, digits), _rounded(low, digits), _rounded(high, digits), note
    )


def words(printed: str, ours: str, *, baseline: Value | None = None, why: str = "", note: str = "") -> Answer:
    """Same where ours reads as what is printed."""
    return judged(ours == printed, ours, baseline=baseline, why=why, note=note)


def judged(same: bool, ours: str, *, baseline: Value | None = None, why: str = "", note: str = "") -> Answer:
    """For what is neither a number nor plain words: the caller has found whether the two are the *same*."""
    return Answer(SAME if same else _differs(why or UNEXPLAINED), ours, baseline, note=note)


def _differs(*reasons: str) -> str:
    return f"{DIFFERS}: {'; '.join(reasons)}"


def _distance(ours: float, least: float, most: float, *, points: bool) -> str:
    """How far ours is from what is printed, in words."""
    middle = (least + most) / 2
    more = "more" if ours > middle else "less"
    if points:
        return f"ours is {abs(ours - middle):.1f} points {more}"
    if middle == 0:
        return f"ours is {ours:g}"
    return f"ours is {100 * abs(ours / middle - 1):.0f} % {more}"


def _half_unit(number: str) -> float:
    return 0.5 * 10.0 ** -len(number.partition(".")[2])


def _rounded(value: float | None, digits: int) -> float | None:
    if value is None:
        return None
    return round(value, digits) + 0.0 if isinstance(value, float) else value  # + 0.0: never -0
