"""What a trace says of the machine's time: working, waiting, empty, occupancy, waves, rounds and tails.

Utilisation is working time: a block that waits for a semaphore holds its place and does nothing (design,
section 2).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cusim.errors import Problems
from cusim.trace.columns import Column
from cusim.trace.intervals import Spans, covered, shares, spans_of, stretches
from cusim.trace.trace import Trace

#: What a whole SM weighs at most: millions of blocks of that weight still sum to less than 64 bits.
_MOST_WEIGHT = 2**40


@dataclass(frozen=True, slots=True)
class MachineShape:
    """As much of a machine as a trace needs to be read: plain numbers, none below 1.

    *sms* and *warps_per_sm* are limits of the GPU; *blocks_per_sm* (how many blocks of a kernel fit an SM by
    themselves) and *warps_per_block* are by kernel name.
    """

    sms: int
    warps_per_sm: int
    blocks_per_sm: Mapping[str, int]
    warps_per_block: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class KernelMetrics:
    """One kernel of a trace: blocks, waves (blocks over blocks per SM times SMs), first start and last end.

    The times are None for a kernel of which no block ran.
    """

    name: str
    tiles: int
    waves: float
    start_ps: int | None
    end_ps: int | None


@dataclass(frozen=True, slots=True)
class Metrics:
    """Where the SM time of a trace went, between its first block's start and its last block's leave.

    *working_pct*, *waiting_pct* and *empty_pct* sum to 100; a block weighs one over the blocks of its kernel
    that fit an SM. *achieved_occupancy* is active warps over the most warps, averaged over time, from 0 to 1
    (ACE's figure); *sms_in_use* the mean number of SMs that hold a block.
    """

    start_ps: int
    end_ps: int
    working_pct: float
    waiting_pct: float
    empty_pct: float
    achieved_occupancy: float
    sms_in_use: float
    kernels: tuple[KernelMetrics, ...]

    @property
    def span_ps(self) -> int:
        """First block's start to last block's leave."""
        return self.end_ps - self.start_ps


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a kernel, when no block of it is left to place: its last round drains, slots fall empty."""

    kernel: str
    begin_ps: int
    end_ps: int


def metrics(trace: Trace, shape: MachineShape) -> Metrics:
    """The :class:`Metrics` of *trace* on a machine of *shape*.

    Raises InputError where the trace needs more SMs than the shape has, or kernels that the shape does not
    know.
    """
    check_shape(trace, shape)
    spans = resident(trace)
    kernels = _kernels(trace, shape, spans)
    if not trace.blocks or int(spans[:, 1].max()) == int(spans[:, 0].min()):
        start = int(spans[:, 0].min()) if trace.blocks else 0
        return Metrics(start, start, 0.0, 0.0, 100.0, 0.0, 0.0, kernels)
    start, end = int(spans[:, 0].min()), int(spans[:, 1].max())
    sm = trace.tiles["sm"]
    capacity = shape.sms * (end - start)
    held = shares(sm, spans, *slot_weights(trace, shape))
    durations = np.maximum(spans[:, 1] - spans[:, 0], 1)
    still = held * np.minimum(trace.tiles["wait_total"] / durations, 1.0)
    resident_pct = min(100.0 * float(held.sum()) / capacity, 100.0)
    waiting_pct = min(100.0 * float(still.sum()) / capacity, resident_pct)
    warps = shares(sm, spans, _by_kernel(trace, shape.warps_per_block), shape.warps_per_sm)
    in_use = sum(covered(spans[sm == number]) for number in np.unique(sm))
    return Metrics(
        start_ps=start,
        end_ps=end,
        working_pct=resident_pct - waiting_pct,
        waiting_pct=waiting_pct,
        empty_pct=100.0 - resident_pct,
        achieved_occupancy=min(float(warps.sum()) / capacity, 1.0),
        sms_in_use=in_use / (end - start),
        kernels=kernels,
    )


def resident(trace: Trace) -> Spans:
    """When each block holds its slot, in picoseconds: from its placement until it has ended and posted."""
    tiles = trace.tiles
    return spans_of(tiles["placed"], np.maximum(tiles["end"], tiles["posted"]))


def tails(trace: Trace) -> tuple[Tail, ...]:
    """For each kernel that ran, in issue order: from its last block's placement to its last leave."""
    spans = resident(trace)
    found = []
    for number, name in enumerate(trace.kernels):
        mine = spans[trace.tiles["kernel"] == number]
        if len(mine):
            found.append(Tail(name, int(mine[:, 0].max()), int(mine[:, 1].max())))
    return tuple(found)


def round_ends(trace: Trace, shape: MachineShape) -> tuple[int, ...]:
    """When each round ends, in ps: the last leave among as many blocks, in order of placement, as fit.

    Rounds start afresh where a kernel begins after all before it have ended, so that their number is the sum
    of ceil(tiles / slots) over the stretches between barriers (cuSync, Fig. 1: 4 against 3).
    """
    check_shape(trace, shape)
    if not trace.blocks:
        return ()
    spans, stretch = resident(trace), stretch_of(trace)
    weights, full = slot_weights(trace, shape)
    ends: list[int] = []
    for number in range(int(stretch.max()) + 1):
        rows = np.flatnonzero(stretch == number)
        rows = rows[np.argsort(spans[rows, 0], kind="stable")]
        ahead = np.cumsum(weights[rows]) - weights[rows]
        turn = ahead // (full * shape.sms)
        last = [int(spans[rows[turn == which], 1].max()) for which in np.unique(turn)]
        # A round is over when those before it are, however long one of their blocks waited.
        ends += itertools.accumulate(last, max)
    return tuple(ends)


def stretch_of(trace: Trace) -> Column:
    """For each block the number of its kernel's stretch, from 0: between two stretches lies a barrier."""
    spans, kernel = resident(trace), trace.tiles["kernel"]
    present = np.unique(kernel)
    hulls = [(spans[kernel == k, 0].min(), spans[kernel == k, 1].max()) for k in present]
    return stretches(np.array(hulls, np.int64).reshape(-1, 2))[np.searchsorted(present, kernel)]


def check_shape(trace: Trace, shape: MachineShape, source: str = "machine shape") -> None:
    """Raises InputError, with everything at once and *source* as its name, where *shape* does not fit *trace*."""
    problems = Problems(source)
    for key in ("sms", "warps_per_sm"):
        if getattr(shape, key) < 1:
            problems.add(key, getattr(shape, key), "must be 1 or more")
    used = len(np.unique(trace.tiles["sm"]))
    if used > shape.sms:
        problems.add("sms", shape.sms, f"must be at least {used}: the trace has blocks on that many SMs")
    for key in ("blocks_per_sm", "warps_per_block"):
        given: Mapping[str, int] = getattr(shape, key)
        for name in trace.kernels:
            if name not in given:
                problems.add(f"{key}.{name}", None, "is missing")
            elif given[name] < 1:
                problems.add(f"{key}.{name}", given[name], "must be 1 or more")
    problems.raise_if_any()


def _by_kernel(trace: Trace, values: Mapping[str, int]) -> Column:
    table = np.array([values[name] for name in trace.kernels], dtype=np.int64)
    return table[trace.tiles["kernel"]] if len(table) else np.empty(0, np.int64)


def slot_weights(trace: Trace, shape: MachineShape) -> tuple[Column, int]:
    """What each block weighs of an SM, and what a whole SM weighs: integers, so that full is exactly full.

    Where so many sorts of blocks share an SM that this takes too large numbers, blocks weigh up to one more.
    """
    full = min(math.lcm(*(shape.blocks_per_sm[name] for name in trace.kernels)), _MOST_WEIGHT)
    return -(-full // _by_kernel(trace, shape.blocks_per_sm)), full


def _kernels(trace: Trace, shape: MachineShape, spans: Spans) -> tuple[KernelMetrics, ...]:
    found = []
    for number, name in enumerate(trace.kernels):
        rows = trace.tiles["kernel"] == number
        # A trace may hold several runs of the same program; each is an epoch with all of the kernel's tiles.
        runs = max(len(np.unique(trace.tiles["epoch"][rows])), 1)
        tiles = int(rows.sum()) // runs
        waves = tiles / (shape.blocks_per_sm[name] * shape.sms)
        start = int(spans[rows, 0].min()) if tiles else None
        end = int(spans[rows, 1].max()) if tiles else None
        found.append(KernelMetrics(name, tiles, waves, start, end))
    return tuple(found)
