"""Values of an option: one, several (``a,b``), or a range (``start:stop:step``, both ends included)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cusim.errors import Problems

#: More values than this on one option is taken for a slip; in a range without a step, more than the second.
MOST_VALUES, MOST_WITHOUT_STEP = 1000, 100
_RANGE = re.compile(r"(-?\d+):(-?\d+)(?::(-?\d+))?")
#: A range of a setting: its numbers may share a unit, which stands at the end.
_UNIT_RANGE = re.compile(r"(-?\d+:-?\d+(?::-?\d+)?)([A-Za-z%/]*)")


def words(texts: Iterable[str]) -> list[str]:
    """The comma-separated words of every use of an option, without repeats; brackets may surround a list."""
    found: list[str] = []
    for text in texts:
        for word in text.strip().removeprefix("[").removesuffix("]").split(","):
            if word.strip() not in found:
                found.append(word.strip())
    return found


def integers(option: str, texts: Iterable[str], problems: Problems, *, least: int = 1) -> list[int]:
    """Whole numbers from words and ranges; what is wrong goes to *problems*."""
    found: list[int] = []
    for word in words(texts):
        match = _RANGE.fullmatch(word)
        values = _range(option, word, match, problems) if match else _one(option, word, problems)
        if values and min(values) < least:
            problems.add(option, word, f"must be {least} or more")
            continue
        found += [value for value in values if value not in found]
    return found


def _one(option: str, word: str, problems: Problems) -> list[int]:
    try:
        return [int(word)]
    except ValueError:
        problems.add(option, word, "allowed: a whole number, a list a,b or a range start:stop:step")
        return []


def _range(option: str, word: str, match: re.Match[str], problems: Problems) -> list[int]:
    start, stop, step = int(match[1]), int(match[2]), int(match[3] or 1)
    if step < 1 or stop < start:
        problems.add(option, word, "a range is start:stop:step with start <= stop and a step of 1 or more")
        return []
    if match[3] is None and (stop - start) // step >= MOST_WITHOUT_STEP:
        wide = start if start > 0 and (stop - start) // start < MOST_WITHOUT_STEP else -(-(stop - start) // 8)
        problems.add(option, word, f"{stop - start + 1} values; step missing? {start}:{stop}:{wide}")
        return []
    if (stop - start) // step >= MOST_VALUES:
        problems.add(option, word, f"more than {MOST_VALUES} values")
        return []
    return list(range(start, stop + 1, step))


def values_of(option: str, text: str, problems: Problems) -> list[str]:
    """Values of one setting, as text: a list ``a,b``, or a range of whole numbers spelled out (``1:5:2us``)."""
    found: list[str] = []
    for word in words([text]):
        numbers, unit = match.groups() if (match := _UNIT_RANGE.fullmatch(word)) else ("", "")
        span = _RANGE.fullmatch(numbers)
        found += [f"{value}{unit}" for value in _range(option, word, span, problems)] if span else [word]
    return found
