"""How much of what tiles load comes from HBM rather than L2, and how much crosses between the halves of L2, by order.

Tiles that run at the same time and share a row or a column of the grid share the panel of operand A or B. A panel
counts as loaded from HBM once for every stretch of co-resident tickets that touches it, unless the whole operand
stays in L2 from one stretch to the next. It is assumed to where it fits half of the capacity: the other half holds
what streams by meanwhile, and either partition of an L2 (A100 and newer) may keep a copy of what all SMs read.

Each address belongs to one half of L2. SMs of the other half get it across the link between the two, once for all of
them while they run together: so what many SMs share costs the link least, and neighbouring SMs (a TPC, which the
dispatcher gives two tickets in a row) lie in one half.
"""

from __future__ import annotations

import numpy as np

from cusim.program.expr import IntArray
from cusim.program.kernel import Gemm, Kernel


def hbm_share(kernel: Kernel, gemm: Gemm, table: IntArray, slots: int, l2_bytes: int, elem_bytes: int) -> float:
    """Bytes from HBM over bytes loaded by all tiles, for tickets that run *slots* at a time in the order of *table*.

    *table* has shape (blocks, 3); the result lies in (0, 1].
    """
    a_width = 2 if gemm.prologue == "swiglu" else 1
    panel_a = kernel.tile[0] * a_width  # elements of A for each element of k
    panel_b = kernel.tile[1]
    operand_a = gemm.m * gemm.k * a_width * elem_bytes
    operand_b = gemm.n * gemm.k * elem_bytes
    rows, cols = kernel.grid[:2]
    loads = len(table) * (panel_a + panel_b)
    from_hbm = _panel_loads(table[:, 0], table[:, 2], rows, slots, stays_in_l2(operand_a, l2_bytes)) * panel_a
    from_hbm += _panel_loads(table[:, 1], table[:, 2], cols, slots, stays_in_l2(operand_b, l2_bytes)) * panel_b
    return min(1.0, from_hbm / loads)


def stays_in_l2(operand_bytes: int, l2_bytes: int) -> bool:
    """True for an operand of which every later use is served by L2."""
    return operand_bytes <= l2_bytes // 2


def _panel_loads(panel: IntArray, slice_: IntArray, count: int, slots: int, stays: bool) -> int:
    """Times that a panel is brought in: once if the operand stays in L2, else once a stretch that touches it."""
    key = slice_ * count + panel
    if stays:
        return len(np.unique(key))
    stretch = np.arange(len(key)) // max(slots, 1)
    return len(np.unique(stretch * (int(key.max()) + 1) + key))


def link_share(kernel: Kernel, gemm: Gemm, table: IntArray, slots: int) -> float:
    """Bytes that cross between the halves of L2 over bytes loaded by all tiles; arguments as for :func:`hbm_share`.

    A panel that pairs of SMs ask for, *q* of them, is wanted in both halves but for 2 of 2^q placements, and half of
    its addresses lie in the other half for whoever asks: so it crosses 1 - 2^-q times.
    """
    a_width = 2 if gemm.prologue == "swiglu" else 1
    panel_a, panel_b = kernel.tile[0] * a_width, kernel.tile[1]
    crossing = 0.0
    for panel, width in ((table[:, 0], panel_a), (table[:, 1], panel_b)):
        crossing += width * _crossings(table[:, 2] * (int(panel.max()) + 1) + panel, slots)
    return float(min(1.0, crossing / (len(table) * (panel_a + panel_b))))


def _crossings(panel: IntArray, slots: int) -> float:
    """How often panels cross the link, in whole panels."""
    ticket = np.arange(len(panel))
    stretch, pair = ticket // max(slots, 1), ticket // 2
    asked = np.unique(np.stack([stretch, panel, pair]), axis=1)
    _, pairs = np.unique(asked[:2], axis=1, return_counts=True)
    return float(np.sum(1.0 - 0.5**pairs))
