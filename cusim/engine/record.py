"""From the records of a finished or stuck run to a Trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cusim.engine.run import KernelRun
from cusim.trace.trace import EVENT_COLUMNS, NONE, WAIT_COLUMNS, Trace, column_table


def make_trace(
    runs: Sequence[KernelRun],
    wait_rows: Sequence[tuple[int, int, int, int, int, int]],
    dependences: tuple[str, ...],
    meta: Mapping[str, Any],
) -> Trace:
    """The Trace of every block that has left its slot, kernel after kernel in ticket order."""
    parts = [_kernel_tiles(run) for run in runs]
    tiles = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    row_of: dict[tuple[int, int], int] = {}
    kernels, tickets = tiles["kernel"].tolist(), tiles["ticket"].tolist()
    if wait_rows:
        row_of = {key: row for row, key in enumerate(zip(kernels, tickets, strict=True))}
    waits = [
        (row_of[run, ticket], begin, end, dep, semaphore)
        for run, ticket, begin, end, dep, semaphore in wait_rows
        if (run, ticket) in row_of
    ]
    events = [(run.index, run.enqueue_ps, run.arrive_ps, _launched(run), run.done_ps) for run in runs]
    return Trace(
        kernels=tuple(run.kernel.name for run in runs),
        tiles=tiles,
        events=column_table(events, EVENT_COLUMNS),
        waits=column_table(waits, WAIT_COLUMNS),
        dependences=dependences,
        meta=meta,
    )


def _launched(run: KernelRun) -> int:
    """When the kernel's first block started; its arrival where none has."""
    return run.placed[0] if run.next_ticket else run.arrive_ps


def _kernel_tiles(run: KernelRun) -> dict[str, np.ndarray[Any, np.dtype[np.int64]]]:
    ended = np.asarray(run.ended, dtype=np.int64)
    done = np.flatnonzero(ended >= 0)
    placed = np.asarray(run.placed, dtype=np.int64)[done]
    posts = bool(run.outgoing) or run.kernel.grid[2] > 1
    ready = placed + run.overheads.entry_ps
    first_load, wait_total = ready.copy(), np.zeros_like(ready)
    place = {int(ticket): row for row, ticket in enumerate(done)}
    for ticket, (loaded, total) in run.late.items():
        if ticket in place:
            row = place[ticket]
            first_load[row], wait_total[row] = max(loaded, int(first_load[row])), total
    lanes = [run.lane[ticket] for ticket in done]
    return {
        "kernel": np.full(len(done), run.index, dtype=np.int64),
        "r": run.table[done, 0], "c": run.table[done, 1], "z": run.table[done, 2],
        "ticket": done.astype(np.int64),
        "epoch": np.zeros(len(done), dtype=np.int64),
        "block": done.astype(np.int64),
        "sm": np.asarray([lane.sm.index if lane else NONE for lane in lanes], dtype=np.int64),
        "lane": np.asarray([lane.slot if lane else NONE for lane in lanes], dtype=np.int64),
        "placed": placed, "ready": ready, "first_load": first_load,
        "end": ended[done] - run.overheads.post_ps,
        "posted": ended[done] if posts else np.full(len(done), NONE, dtype=np.int64),
        "wait_total": wait_total,
    }  # fmt: skip
