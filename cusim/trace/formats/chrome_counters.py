"""Counters over time: SMs on which some block works, and blocks that wait."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from cusim.trace.columns import Column
from cusim.trace.intervals import Spans
from cusim.trace.trace import Trace

_PS_PER_NS = 1000


def working_sms(trace: Trace, spans_ns: Spans) -> tuple[Column, Column]:
    """Times in ns, rising, and from each on the number of SMs that hold a block which is not waiting."""
    waits = _waits_ns(trace)
    tile_sm = trace.tiles["sm"]
    wait_sm = tile_sm[trace.waits["tile"]]
    sm = np.concatenate([tile_sm, tile_sm, wait_sm, wait_sm])
    time = np.concatenate([spans_ns[:, 0], spans_ns[:, 1], waits[:, 1], waits[:, 0]])
    # A block counts from its placement and after every wait; it stops at its leave and at every wait.
    change = np.repeat(
        np.array([1, -1, 1, -1], dtype=np.int8), [len(tile_sm), len(tile_sm), len(wait_sm), len(wait_sm)]
    )
    order = np.lexsort((time, sm))
    sm, time, level = sm[order], time[order], np.cumsum(change[order], dtype=np.int64)
    if not len(time):
        return time, level
    settled = _last_of_runs(sm, time)
    busy = (level[settled] > 0).astype(np.int64)
    # The first change of an SM starts from idle, since all of an earlier SM's blocks have left.
    fresh = np.concatenate([[True], np.diff(sm[settled]) != 0])
    step = busy - np.where(fresh, 0, np.concatenate([[0], busy[:-1]]))
    return _summed(time[settled], step)


def waiting_tiles(trace: Trace) -> tuple[Column, Column]:
    """Times in ns, rising, and from each on the number of blocks that wait."""
    waits = _waits_ns(trace)
    step = np.repeat(np.array([1, -1], dtype=np.int64), len(waits))
    return _summed(np.concatenate([waits[:, 0], waits[:, 1]]), step)


def within(series: tuple[Column, Column], window_ns: tuple[int, int] | None) -> Iterator[tuple[int, int]]:
    """The (time, value) pairs of a series, or those of a window, led by the value at its start."""
    time, value = series
    if window_ns is not None:
        start, stop = window_ns
        first = int(np.searchsorted(time, start, side="right"))
        last = int(np.searchsorted(time, stop, side="left"))
        yield start, int(value[first - 1]) if first else 0
        time, value = time[first:last], value[first:last]
    for begin in range(0, len(time), 4096):
        part = slice(begin, begin + 4096)
        yield from zip(time[part].tolist(), value[part].tolist(), strict=True)


def _waits_ns(trace: Trace) -> NDArray[np.int64]:
    return np.stack([trace.waits["begin"], trace.waits["end"]], axis=1) // _PS_PER_NS


def _last_of_runs(*keys: Column) -> NDArray[np.int64]:
    """The places of the last of each run of rows in which all *keys* agree."""
    changes = np.any([np.diff(key) != 0 for key in keys], axis=0)
    return np.flatnonzero(np.concatenate([changes, [True]]))


def _summed(time: Column, step: Column) -> tuple[Column, Column]:
    """Steps at times as a level: one entry for each time at which the level changes."""
    order = np.argsort(time, kind="stable")
    time, level = time[order], np.cumsum(step[order])
    if not len(time):
        return time, level
    last = _last_of_runs(time)
    time, level = time[last], level[last]
    moved = np.concatenate([[True], np.diff(level) != 0])
    return time[moved], level[moved]
