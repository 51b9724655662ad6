"""From the stamps of a run to a Trace of kind ``measured``: the same columns that the simulator writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend_gpu.abi import STAMPS
from backend_gpu.device import Loaded
from cusim.policies.orders import order_table
from cusim.policies.plan import Plan
from cusim.program.depends import dependences
from cusim.program.program import Program
from cusim.trace.trace import EVENT_COLUMNS, NONE, WAIT_COLUMNS, Trace, column_table

_PS_PER_NS = 1000
_LIFE = ("placed", "ready", "first_load", "end", "posted")


def make_trace(
    program: Program,
    plan: Plan,
    loaded: Sequence[Loaded],
    stamps: Sequence[NDArray[np.uint64]],
    meta: Mapping[str, Any],
    epoch: int = 0,
) -> Trace:
    """The Trace of one stamped run; *stamps* by kernel, as they lie on the device.

    Times count from the first block's start and are as fine as the GPU's timer; ``meta.timer_clamped`` counts stamps
    that it put before the one that precedes them. A block's waits are known in sum, not one by one, so the table of
    waits is empty. Blocks that share an SM get lanes, lowest first, by when they were there.
    """
    rows = [np.ascontiguousarray(each).view(STAMPS) for each in stamps]
    zero = min(int(each["placed"].min()) for each in rows)
    posting = {dep.producer for dep in dependences(program)} if plan.overlapped else set()
    parts, clamped = [], 0
    for place, (kernel, each) in enumerate(zip(program.kernels, rows, strict=True)):
        times, late = _in_order({name: each[name].astype(np.int64) - zero for name in _LIFE})
        clamped += late
        table = order_table(plan.order_of(kernel.name), kernel.grid)
        where = each["where"]
        count = len(each)
        posted = times["posted"] * _PS_PER_NS if kernel.name in posting else np.full(count, NONE, np.int64)
        parts.append({
            "kernel": np.full(count, place, np.int64),
            "r": table[:, 0], "c": table[:, 1], "z": table[:, 2],
            "ticket": np.arange(count, dtype=np.int64),
            "epoch": np.full(count, epoch, np.int64),
            "block": (where >> np.uint64(32)).astype(np.int64),
            "sm": (where & np.uint64(0xFFFFFFFF)).astype(np.int64),
            **{name: times[name] * _PS_PER_NS for name in _LIFE[:-1]},
            "posted": posted,
            "wait_total": each["waited"].astype(np.int64) * _PS_PER_NS,
        })  # fmt: skip
    tiles = {name: np.concatenate([part[name] for part in parts]).astype(np.int64) for name in parts[0]}
    tiles["lane"] = lanes(tiles["sm"], tiles["placed"], np.maximum(tiles["end"], tiles["posted"]))
    return Trace(
        kernels=tuple(kernel.name for kernel in program.kernels),
        tiles=tiles,
        events=column_table([_events(place, tiles) for place in range(len(loaded))], EVENT_COLUMNS),
        waits=column_table([], WAIT_COLUMNS),
        dependences=tuple(dep.name for dep in dependences(program)) if plan.overlapped else (),
        meta={**meta, "timer_clamped": clamped},
    )


def lanes(sm: NDArray[np.int64], begin: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each block the lowest lane of its SM that no block holds which is still there when it begins."""
    found = np.zeros(len(sm), np.int64)
    held: dict[int, list[int]] = {}
    for row in np.lexsort((end, begin)).tolist():
        until = held.setdefault(int(sm[row]), [])
        lane = next((number for number, time in enumerate(until) if time <= begin[row]), len(until))
        if lane == len(until):
            until.append(0)
        until[lane] = int(end[row])
        found[row] = lane
    return found


def stamped_all(stamps: Sequence[NDArray[np.uint64]]) -> bool:
    """True when every ticket of every kernel has been stamped."""
    return all(bool((each.view(STAMPS)["placed"] > 0).all()) for each in stamps)


def _in_order(times: dict[str, NDArray[np.int64]]) -> tuple[dict[str, NDArray[np.int64]], int]:
    """The times with those that precede an earlier one put level with it, and how many were."""
    late = 0
    for early, name in pairwise(_LIFE):
        late += int((times[name] < times[early]).sum())
        times[name] = np.maximum(times[name], times[early])
    return times, late


def _events(place: int, tiles: Mapping[str, NDArray[np.int64]]) -> tuple[int, int, int, int, int]:
    """A kernel's events: enqueue and arrival are not seen, its launch is its first block, done its last end."""
    mine = tiles["kernel"] == place
    done = np.maximum(tiles["end"], tiles["posted"])[mine].max()
    return place, NONE, NONE, int(tiles["placed"][mine].min()), int(done)
