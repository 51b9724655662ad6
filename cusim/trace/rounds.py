"""Rounds as they are issued: which fill of the GPU a block belongs to, whenever it ran."""

from __future__ import annotations

import numpy as np

from cusim.trace.columns import Column
from cusim.trace.metrics import MachineShape, check_shape, slot_weights, stretch_of
from cusim.trace.trace import Trace


def issue_rounds(trace: Trace, shape: MachineShape) -> Column:
    """For each block of *trace* the round that it is issued in, counted from 1 over the whole run.

    Blocks queue in issue order of their kernels, then by ticket; round k is the k-th time that as many as fit have been
    taken from the queue, and a barrier between kernels begins a new one. In stream order that is ticket // slots of
    each kernel. Times decide nothing but where barriers lie, so a tile of a prediction and of a measurement has one
    round; the rounds that a picture marks (:func:`cusim.trace.metrics.round_ends`) go by placement instead.
    """
    check_shape(trace, shape)
    found = np.zeros(trace.blocks, np.int64)
    stretch = stretch_of(trace)
    weights, full = slot_weights(trace, shape)
    before = 0
    for number in range(int(stretch.max(initial=-1)) + 1):
        rows = np.flatnonzero(stretch == number)
        rows = rows[np.lexsort((trace.tiles["ticket"][rows], trace.tiles["kernel"][rows]))]
        ahead = np.cumsum(weights[rows]) - weights[rows]
        found[rows] = before + 1 + ahead // (full * shape.sms)
        before = int(found[rows].max())
    return found
