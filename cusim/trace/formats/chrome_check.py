"""Checks a written Chrome trace: what a viewer would drop, misplace or draw wrong without a word."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cusim.errors import Problems
from cusim.trace.formats.chrome_read import read_events

Thread: TypeAlias = tuple[int, int]
#: More mistakes than this are counted, not listed.
_MOST = 12
_KNOWN = ("X", "M", "C", "s", "f")


@dataclass(frozen=True, slots=True)
class Checked:
    """What a valid file holds: spans by category, threads that hold spans, counter values and arrows."""

    spans: Mapping[str, int]
    threads: int
    counts: int
    arrows: int


@dataclass(slots=True)
class _Found:
    """What has been read so far, times in nanoseconds."""

    problems: Problems
    begins: dict[Thread, array[int]] = field(default_factory=dict)
    ends: dict[Thread, array[int]] = field(default_factory=dict)
    spans: dict[str, int] = field(default_factory=dict)
    named: set[Thread] = field(default_factory=set)
    last_count: dict[tuple[int, str], int] = field(default_factory=dict)
    counts: int = 0
    arrows: dict[str, dict[object, tuple[Thread, int, str]]] = field(default_factory=lambda: {"s": {}, "f": {}})
    hidden: int = 0

    def wrong(self, key: str, given: object, why: str) -> None:
        if len(self.problems.found) < _MOST:
            self.problems.add(key, given, why)
        else:
            self.hidden += 1


def check_chrome(path: Path | str) -> Checked:
    """Reads *path* (``.json`` or ``.json.gz``) and says what it holds.

    Raises InputError, with the first mistakes and the number of the others, for a file that is cut off or no Chrome
    trace, spans that are not well formed or overlap on a thread without nesting, threads with spans but no name,
    counters whose times fall, and arrows that lack an end, share an id, run backwards or touch no span.
    """
    head: dict[str, Any] = {}
    found = _Found(Problems(str(path)))
    for place, event in enumerate(read_events(Path(path), head)):
        _read(found, f"traceEvents[{place}]", event)
    if head.get("displayTimeUnit") not in ("ns", "ms", None):
        found.wrong("displayTimeUnit", head["displayTimeUnit"], "allowed: ns ms")
    for thread in found.begins:
        _check_nesting(found, thread)
        if thread not in found.named:
            found.wrong(_label(thread), None, "holds spans and has no thread_name")
    _check_arrows(found)
    if found.hidden:
        found.problems.add("and", None, f"{found.hidden} more mistakes")
    found.problems.raise_if_any()
    return Checked(found.spans, len(found.begins), found.counts, len(found.arrows["s"]))


def _read(found: _Found, key: str, event: Any) -> None:
    if not isinstance(event, dict):
        found.wrong(key, None, "must be an object")
        return
    phase = event.get("ph")
    if phase not in _KNOWN:
        found.wrong(f"{key}.ph", phase, f"allowed: {' '.join(_KNOWN)}")
        return
    pid, tid = event.get("pid"), event.get("tid", 0 if phase == "C" else None)
    if type(pid) is not int or type(tid) is not int:
        found.wrong(f"{key}.{'pid' if type(pid) is not int else 'tid'}", None, "must be a whole number")
        return
    name = event.get("name")
    if not isinstance(name, str) or not name:
        found.wrong(f"{key}.name", None, "must be a text that is not empty")
        return
    if phase == "M":
        _read_name(found, key, event, (pid, tid))
        return
    time = _nanoseconds(found, f"{key}.ts", event.get("ts"))
    if time is None:
        return
    if phase == "X":
        _read_span(found, key, event, (pid, tid), time)
    elif phase == "C":
        _read_count(found, key, event, (pid, name), time)
    else:
        _read_arrow_end(found, key, event, (pid, tid), time)


def _nanoseconds(found: _Found, key: str, value: Any) -> int | None:
    """A time or duration in microseconds as whole nanoseconds."""
    if type(value) is int:
        value = Decimal(value)
    if not isinstance(value, Decimal) or not value.is_finite():
        found.wrong(key, None if value is None else str(value), "must be a number of microseconds")
    elif value < 0:
        found.wrong(key, str(value), "must be 0 or more")
    elif (value * 1000) % 1:
        found.wrong(key, str(value), "must have three decimals at most: whole nanoseconds")
    else:
        return int(value * 1000)
    return None


def _read_name(found: _Found, key: str, event: Mapping[str, Any], thread: Thread) -> None:
    args = event.get("args")
    kind = event["name"]
    wanted = "sort_index" if str(kind).endswith("sort_index") else "name"
    if not isinstance(args, dict) or type(args.get(wanted)) is not (int if wanted == "sort_index" else str):
        found.wrong(f"{key}.args", None, f"{kind} must hold {wanted}")
    elif kind == "thread_name":
        found.named.add(thread)


def _read_span(found: _Found, key: str, event: Mapping[str, Any], thread: Thread, begin: int) -> None:
    duration = _nanoseconds(found, f"{key}.dur", event.get("dur"))
    if duration is None:
        return
    found.begins.setdefault(thread, array("q")).append(begin)
    found.ends.setdefault(thread, array("q")).append(begin + duration)
    category = str(event.get("cat", ""))
    found.spans[category] = found.spans.get(category, 0) + 1


def _read_count(found: _Found, key: str, event: Mapping[str, Any], counter: tuple[int, str], time: int) -> None:
    args = event.get("args")
    if not isinstance(args, dict) or not args or not all(type(v) in (int, Decimal) for v in args.values()):
        found.wrong(f"{key}.args", None, "must hold numbers")
    if time < found.last_count.get(counter, 0):
        found.wrong(f"{key}.ts", time / 1000, f"counter {counter[1]} runs backwards")
    found.last_count[counter] = time
    found.counts += 1


def _read_arrow_end(found: _Found, key: str, event: Mapping[str, Any], thread: Thread, time: int) -> None:
    phase, number = event["ph"], event.get("id")
    if type(number) not in (int, str):
        found.wrong(f"{key}.id", None, "must be a whole number or a text")
    elif number in found.arrows[phase]:
        found.wrong(f"{key}.id", number, f"an earlier {phase} has this id")
    else:
        found.arrows[phase][number] = (thread, time, f"{event.get('cat')} {event['name']}")


def _check_nesting(found: _Found, thread: Thread) -> None:
    """Spans of a thread must nest: each lies inside the one that is open when it begins, or after it."""
    begins, ends = _sorted_spans(found, thread)
    open_ends: list[int] = []
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        while open_ends and open_ends[-1] <= begin:
            open_ends.pop()
        if open_ends and end > open_ends[-1]:
            why = f"overlaps a span of this thread that ends at {open_ends[-1] / 1000:.3f}, without nesting in it"
            found.wrong(f"{_label(thread)} at {begin / 1000:.3f} us", None, why)
            continue
        open_ends.append(end)


def _sorted_spans(found: _Found, thread: Thread) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    begins = np.frombuffer(found.begins[thread], dtype=np.int64)
    ends = np.frombuffer(found.ends[thread], dtype=np.int64)
    order = np.lexsort((-ends, begins))
    return begins[order], ends[order]


def _check_arrows(found: _Found) -> None:
    starts, ends = found.arrows["s"], found.arrows["f"]
    for here, there, other in ((starts, ends, "f"), (ends, starts, "s")):
        for number in here.keys() - there.keys():
            found.wrong(f"arrow {number}", None, f"has no {other}")
    for number in starts.keys() & ends.keys():
        (_, begin, what), (_, end, into) = starts[number], ends[number]
        if begin > end:
            found.wrong(f"arrow {number}", None, f"runs backwards, from {begin / 1000:.3f} to {end / 1000:.3f} us")
        if what != into:
            found.wrong(f"arrow {number}", None, f"its ends differ in cat or name: {what}, {into}")
    by_thread: dict[Thread, list[tuple[int, str]]] = {}
    for phase, points in found.arrows.items():
        for number, (thread, time, _) in points.items():
            by_thread.setdefault(thread, []).append((time, f"arrow {number}, its {phase}"))
    for thread, points_here in by_thread.items():
        _check_inside(found, thread, points_here)


def _check_inside(found: _Found, thread: Thread, points: list[tuple[int, str]]) -> None:
    """Every end of an arrow must meet a span that is open at its time, or one of no length there."""
    if thread not in found.begins:
        found.wrong(points[0][1], None, f"{_label(thread)} holds no span")
        return
    begins, ends = _sorted_spans(found, thread)
    reach = np.maximum.accumulate(ends)
    times = np.array([time for time, _ in points], dtype=np.int64)
    last = np.searchsorted(begins, times, side="right") - 1
    inside = (last >= 0) & ((reach[last] > times) | (begins[last] == times))
    for place in np.flatnonzero(~inside).tolist():
        time, what = points[place]
        found.wrong(what, None, f"at {time / 1000:.3f} us lies in no span of {_label(thread)}")


def _label(thread: Thread) -> str:
    return f"pid {thread[0]} tid {thread[1]}"
