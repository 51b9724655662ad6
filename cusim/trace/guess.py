"""Where the waits of a measured block lie, as far as its stamps say: how long it waited is known, not when."""

from __future__ import annotations

import dataclasses

import numpy as np

from cusim.trace.columns import NONE, WAIT_COLUMNS
from cusim.trace.trace import Trace, column_table


def with_waits_before_load(trace: Trace) -> Trace:
    """A trace without a table of waits gets one: blocks wait from when they are ready, and load at once afterwards.

    So it is where a block waits once, as with row semaphores. Blocks that waited for longer than they took to begin to
    load waited later too, nobody knows when: they get no wait. A trace that has waits stays as it is.
    """
    tiles = trace.tiles
    if len(trace.waits["tile"]) or not trace.blocks:
        return trace
    still = tiles["wait_total"]
    rows = np.flatnonzero((still > 0) & (tiles["ready"] + still <= tiles["first_load"]))
    waits = [(row, tiles["ready"][row], tiles["ready"][row] + still[row], NONE, NONE) for row in rows.tolist()]
    return dataclasses.replace(trace, waits=column_table(waits, WAIT_COLUMNS))
