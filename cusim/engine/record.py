"""From the records of a finished or stuck run to a Trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from cusim.engine.run import KernelRun
from cusim.trace.trace import EVENT_COLUMNS, NONE, WAIT_COLUMNS, Trace, column_table


def make_trace(
    runs: Sequence[KernelRun],
    wait_rows: Sequence[tuple[int, int, int, int, int, int]],
    dependences: tuple[str, ...],
    meta: Mapping[str, Any],
    stood_still_ps: int | None = None,
) -> Trace:
    """The Trace of every block that has left its slot, kernel after kernel in ticket order.

    With *stood_still_ps*, the moment of a deadlock, blocks that wait in their slots are in it too: they end then, have
    posted nothing, and their wait is open to that moment.
    """
    if stood_still_ps is not None:
        wait_rows = [*wait_rows, *(row for run in runs for row in _open_waits(run, stood_still_ps))]
    parts = [_kernel_tiles(run, stood_still_ps) for run in runs]
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
    events = [(run.index, run.enqueue_ps, *_event_times(run)) for run in runs]
    return Trace(
        kernels=tuple(run.kernel.name for run in runs),
        tiles=tiles,
        events=column_table(events, EVENT_COLUMNS),
        waits=column_table(waits, WAIT_COLUMNS),
        dependences=dependences,
        meta=meta,
    )


def _event_times(run: KernelRun) -> tuple[int, int, int]:
    """Arrival, first block and end of a kernel; NONE for what did not happen."""
    return run.arrive_ps, run.placed[0] if run.next_ticket else NONE, run.done_ps


def _standing(run: KernelRun) -> list[int]:
    """Tickets of blocks that are in their slots and have not ended."""
    return [ticket for ticket in range(run.next_ticket) if run.ended[ticket] < 0]


def _open_waits(run: KernelRun, now: int) -> Iterator[tuple[int, int, int, int, int, int]]:
    for ticket in _standing(run):
        lane = run.lane[ticket]
        _, sems, first, last, target, _ = lane.waits.entries[lane.stop_at]
        missing = sems.first_missing(first, last, target)
        yield run.index, ticket, lane.waited_from, now, sems.dependence, missing


def _kernel_tiles(run: KernelRun, stood_still_ps: int | None) -> dict[str, np.ndarray[Any, np.dtype[np.int64]]]:
    ended = np.asarray(run.ended, dtype=np.int64)
    stuck = _standing(run) if stood_still_ps is not None else []
    ended[stuck] = stood_still_ps or 0
    done = np.flatnonzero(ended >= 0)
    placed = np.asarray(run.placed, dtype=np.int64)[done]
    posts = bool(run.outgoing) or run.kernel.grid[2] > 1
    ready = placed + run.overheads.entry_ps
    first_load = np.minimum(placed + run.first_load_ps, ended[done])
    wait_total = np.zeros_like(ready)
    place = {int(ticket): row for row, ticket in enumerate(done)}
    for ticket, (loaded, total) in run.late.items():
        if ticket in place:
            row = place[ticket]
            first_load[row], wait_total[row] = max(loaded, int(first_load[row])), total
    for ticket in stuck:
        row, lane = place[ticket], run.lane[ticket]
        wait_total[row] += ended[ticket] - lane.waited_from
    left = ended[done] - run.overheads.post_ps
    posted = ended[done] if posts else np.full(len(done), NONE, dtype=np.int64)
    standing = [place[ticket] for ticket in stuck]
    left[standing], posted[standing] = ended[stuck], NONE
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
        "end": left, "posted": posted,
        "wait_total": wait_total,
    }  # fmt: skip
