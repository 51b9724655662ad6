"""How limits meet: the time of several that bind at once."""

from __future__ import annotations

from collections.abc import Sequence

#: The order of a norm that stands for a hard maximum.
HARD = 1000


def norm(times: Sequence[float], order: float) -> float:
    """The norm of that order: at least the longest of *times*, their sum at order 1, the longest alone from
    :data:`HARD` on.
    """
    longest = max(times)
    if order >= HARD or longest == 0:
        return longest
    return longest * float(sum((time / longest) ** order for time in times) ** (1.0 / order))
