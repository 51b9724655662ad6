"""Which blocks find the panels of their operands in L2: those that load soon after a block that loaded the same ones.

Blocks that load together read a shared panel in step, so HBM delivers it once. One that comes later follows behind; it
still finds the panel in L2 as long as HBM has not filled half of L2 anew in between (either half keeps copies of what
its own SMs ask for). This is what tile order and staggered starts, behind semaphores, do to memory
(:mod:`cusim.engine.reuse` is the same for blocks in whole waves).
"""

from __future__ import annotations

from cusim.engine.reuse import stays_in_l2
from cusim.machine.machine import Machine
from cusim.program.kernel import DTYPE_BYTES, Gemm, Kernel

#: Parts of what a block loads: from HBM, and across the link between the halves of L2.
Shares = tuple[float, float]


class _Operand:
    """One operand of a GEMM in panels: who asked for each last, and how many TPCs have since it came from HBM."""

    __slots__ = ("_asked", "_stays", "width")

    def __init__(self, width: int, stays: bool) -> None:
        self.width = width
        self._stays = stays
        self._asked: dict[int, tuple[int, int, int]] = {}

    def ask(self, panel: int, tpc: int, at: int, window_ps: int) -> Shares:
        """A block on *tpc* that starts at *at* reads the panel: the shares of it that come from HBM and cross."""
        before = self._asked.get(panel)
        if before is None or at - before[0] > window_ps:
            self._asked[panel] = (at, 1, tpc)
            return (0.0 if before is not None and self._stays else 1.0), 0.5
        _, askers, last = before
        if last == tpc:
            self._asked[panel] = (at, askers, tpc)
            return 0.0, 0.0
        self._asked[panel] = (at, askers + 1, tpc)
        return 0.0, 0.5 ** (askers + 1)


class Panels:
    """The panels of both operands of one kernel."""

    __slots__ = ("_a", "_b", "_slices", "_total", "_window_ps")

    def __init__(self, kernel: Kernel, gemm: Gemm, machine: Machine) -> None:
        halves = 2 if gemm.prologue == "swiglu" else 1
        elem, capacity = DTYPE_BYTES[gemm.dtype], machine.rates.l2_capacity_bytes
        self._a = _Operand(kernel.tile[0] * halves, stays_in_l2(gemm.m * gemm.k * halves * elem, capacity))
        self._b = _Operand(kernel.tile[1], stays_in_l2(gemm.n * gemm.k * elem, capacity))
        self._slices = kernel.grid[2]
        self._total = self._a.width + self._b.width
        self._window_ps = round(capacity / 2 / machine.rates.hbm_bytes_per_s * 1e12)

    def shares(self, row: int, col: int, slice_: int, tpc: int, at: int) -> Shares:
        """What of its loads the block of a tile, started on *tpc* at *at*, gets from HBM and across the link."""
        a, b = self._a, self._b
        hbm_a, link_a = a.ask(row * self._slices + slice_, tpc, at, self._window_ps)
        hbm_b, link_b = b.ask(col * self._slices + slice_, tpc, at, self._window_ps)
        return (
            (hbm_a * a.width + hbm_b * b.width) / self._total,
            (link_a * a.width + link_b * b.width) / self._total,
        )
