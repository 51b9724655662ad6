"""What of a trace is exported, and on which process and thread of the viewer each block stands."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cusim.errors import refuse
from cusim.trace.columns import NONE, Column
from cusim.trace.intervals import Spans, lanes
from cusim.trace.metrics import resident
from cusim.trace.trace import Trace

#: SMs that share a process, which the viewer can fold away.
SMS_PER_GROUP = 16
#: The process of kernels and counters, and that of SM 0.
GPU_PID, FIRST_SM_PID = 1, 2
#: Threads are numbered from here, clear of the processes: some viewers take equal numbers for a main thread.
FIRST_TID = 10_000
_PS_PER_NS = 1000


@dataclass(frozen=True, slots=True)
class Threads:
    """One thread for each slot of an SM: *sm* and *slot* by place, and for every tile the *place* of its thread."""

    sm: Column
    slot: Column
    place: Column


def spans_ns(trace: Trace) -> Spans:
    """When each block holds its slot, both ends floored to whole nanoseconds."""
    return resident(trace) // _PS_PER_NS


def threads_of(trace: Trace) -> Threads:
    """A thread for every slot in which a block ran; no two blocks of a thread share an instant.

    Recorded lanes are kept; where they are unknown, or blocks overlap in one (timers of a GPU tick coarsely), every
    block gets the lowest slot of its SM that is free.
    """
    sm, slot = trace.tiles["sm"], trace.tiles["lane"]
    spans = resident(trace)
    if trace.blocks and (slot.min() < 0 or _overlap(sm, slot, spans)):
        slot = lanes(sm, spans)
    pairs = np.stack([sm, slot], axis=1)
    unique, place = np.unique(pairs, axis=0, return_inverse=True)
    return Threads(unique[:, 0], unique[:, 1], place.reshape(-1).astype(np.int64))


def _overlap(sm: Column, slot: Column, spans: Spans) -> bool:
    order = np.lexsort((spans[:, 1], spans[:, 0], slot, sm))
    same = (np.diff(sm[order]) == 0) & (np.diff(slot[order]) == 0)
    return bool(np.any(same & (spans[order[1:], 0] < spans[order[:-1], 1])))


def group_pid(sm: int) -> int:
    """The process of an SM."""
    return FIRST_SM_PID + sm // SMS_PER_GROUP if sm != NONE else GPU_PID


def chosen_rows(
    trace: Trace, spans: Spans, window_ns: tuple[int, int] | None, sample: int | float | None
) -> NDArray[np.int64]:
    """The rows of the tiles to export, by the time of their placement.

    *window_ns* keeps blocks that hold a slot at some instant of it; *sample* keeps that many (an int), or that part
    (a float up to 1) of them, evenly spaced in time. Raises InputError for a window outside the trace or with no
    block in it, and for a sample of nothing.
    """
    rows = np.lexsort((trace.tiles["ticket"], trace.tiles["kernel"], spans[:, 1], spans[:, 0]))
    if window_ns is not None:
        rows = rows[_within(spans, window_ns)[rows]]
    if sample is None:
        return rows
    if isinstance(sample, bool) or not (sample >= 1 if isinstance(sample, int) else 0.0 < sample <= 1.0):
        raise refuse(
            "export", "sample", sample, "allowed: a number of blocks from 1, or a fraction up to 1 such as 0.1"
        )
    keep = min(sample if isinstance(sample, int) else max(1, round(sample * len(rows))), len(rows))
    return rows[np.arange(keep) * len(rows) // max(keep, 1)]


def _within(spans: Spans, window_ns: tuple[int, int]) -> NDArray[np.bool_]:
    start, stop = window_ns
    given = f"{start / 1000:g}:{stop / 1000:g}"
    if not len(spans):
        raise refuse("export", "window", given, "the trace holds no block")
    first, last = int(spans[:, 0].min()), int(spans[:, 1].max())
    if start >= stop:
        raise refuse("export", "window", given, "must be A:B with A < B, in microseconds")
    if start > last or stop <= first:
        why = f"lies outside the trace, whose blocks run from {first / 1000:.3f} to {last / 1000:.3f} us"
        raise refuse("export", "window", given, why)
    inside: NDArray[np.bool_] = (spans[:, 0] < stop) & ((spans[:, 1] > start) | (spans[:, 0] >= start))
    if not inside.any():
        raise refuse("export", "window", given, "no block runs in it")
    return inside
