"""Traces of two runs on one clock: each from its own first block's start on."""

from __future__ import annotations

import dataclasses

import numpy as np

from cusim.trace.columns import EVENT_COLUMNS, NONE
from cusim.trace.trace import Trace, column_table


def aligned(trace: Trace) -> Trace:
    """The trace with all times of its blocks counted from the first block's start; events are left out."""
    zero = int(trace.tiles["placed"].min()) if trace.blocks else 0
    times = {name: trace.tiles[name] - zero for name in ("placed", "ready", "first_load", "end")}
    posted = np.where(trace.tiles["posted"] == NONE, NONE, trace.tiles["posted"] - zero)
    waits = {name: trace.waits[name] - zero for name in ("begin", "end")}
    return dataclasses.replace(
        trace,
        tiles={**trace.tiles, **times, "posted": posted},
        waits={**trace.waits, **waits},
        events=column_table([], EVENT_COLUMNS),
    )
