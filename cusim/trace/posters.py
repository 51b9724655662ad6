"""Which tile ended which wait: the far end of every arrow from a producer to a consumer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from cusim.trace.columns import NONE, Column
from cusim.trace.trace import Trace

#: By dependence: for each post of its policy, the semaphore of every row of the trace's tiles (any value for tiles
#: of other kernels).
Semaphores: TypeAlias = Mapping[str, Sequence[Column]]

#: What :func:`posters` does, in a sentence for readers of a file.
RULE = (
    "an arrow starts at the producer tile that posted last, at or before the wait's end, to the semaphore waited for; "
    "where the trace does not say which tiles post to it, at the tile of the producer kernel that posted last"
)


def posters(trace: Trace, semaphores: Semaphores | None = None) -> Column:
    """For every wait the row of the tile whose post ended it; :data:`NONE` where no post came before its end.

    Of the tiles that post to the semaphore, it is the one whose post is the latest at or before the end of the wait;
    of several at one instant, the one with the highest ticket. A dependence that *semaphores* lacks counts as one
    semaphore for the whole producer. A wait for no dependence is a split-K slice's for the slice before it.
    """
    found = np.full(len(trace.waits["tile"]), NONE, dtype=np.int64)
    for number, name in enumerate(trace.dependences):
        mine = np.flatnonzero(trace.waits["dependence"] == number)
        producer = name.partition(">")[0]
        if not len(mine) or producer not in trace.kernels:
            continue
        kernel = trace.kernels.index(producer)
        rows = np.flatnonzero((trace.tiles["kernel"] == kernel) & (trace.tiles["posted"] != NONE))
        found[mine] = _latest(trace, mine, rows, (semaphores or {}).get(name))
    slices = np.flatnonzero((trace.waits["dependence"] == NONE) & (trace.waits["semaphore"] != NONE))
    found[slices] = _slice_before(trace, trace.waits["tile"][slices])
    return found


def _latest(trace: Trace, waits: Column, rows: Column, semaphores: Sequence[Column] | None) -> Column:
    """For each of *waits* the last of *rows* to post to its semaphore, by one sort of posts and waits together."""
    posts = 1 if semaphores is None else len(semaphores)
    posting = np.tile(rows, posts)
    tile = trace.waits["tile"][waits]
    wanted = np.zeros_like(waits) if semaphores is None else trace.waits["semaphore"][waits]
    posted = [np.zeros_like(rows)] if semaphores is None else [column[rows] for column in semaphores]
    semaphore = np.concatenate([*posted, wanted])
    epoch = np.concatenate([trace.tiles["epoch"][posting], trace.tiles["epoch"][tile]])
    time = np.concatenate([trace.tiles["posted"][posting], trace.waits["end"][waits]])
    ticket = np.concatenate([trace.tiles["ticket"][posting], np.zeros_like(waits)])
    is_wait = np.arange(len(time)) >= len(posting)
    order = np.lexsort((ticket, is_wait, time, semaphore, epoch))
    place = np.where(is_wait[order], -1, np.arange(len(order)))
    last = np.maximum.accumulate(place)
    source = order[np.maximum(last, 0)]
    same = (last >= 0) & (semaphore[source] == semaphore[order]) & (epoch[source] == epoch[order])
    answer = np.full(len(time), NONE, dtype=np.int64)
    answer[order] = np.where(same, np.append(posting, NONE)[np.minimum(source, len(posting))], NONE)
    return answer[len(posting) :]


def _slice_before(trace: Trace, tiles: Column) -> Column:
    """The rows of the blocks that compute the slice before each of *tiles*; NONE where there is none."""
    keys = [trace.tiles[name] for name in ("z", "c", "r", "kernel", "epoch")]
    order = np.lexsort(keys)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    before = order[np.maximum(rank[tiles] - 1, 0)]
    steps = [key[tiles] - key[before] for key in keys]
    fits = (steps[0] == 1) & np.all([step == 0 for step in steps[1:]], axis=0)
    return np.where(fits, before, NONE)
