"""The memory that all SMs share, L2 and HBM: one speed for all working blocks, constant between updates.

The factor is 1 until the blocks at work draw more than either delivers. It is updated when the draw has
changed by more than a quantum, a short settling time after the change, so that a wave of starts costs one update
(design §6.4).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cusim.engine.clock import Clock
from cusim.machine.machine import Machine

#: Relative change of the factor below which blocks are not re-timed; tests hold the totals of this default
#: against the exact form (quantum 0, no settling).
QUANTUM = 0.02
SETTLE_PS = 200_000


class Shared:
    """Draw and speed. *retime* is called with no arguments after the factor has changed.

    ``l2`` and ``hbm`` (bytes a second) are what all SMs draw at full speed.
    """

    __slots__ = (
        "_clock", "_hbm", "_l2", "_pending", "_quantum", "_retime", "_settle",
        "factor", "hbm", "l2",
    )  # fmt: skip

    def __init__(
        self,
        clock: Clock,
        machine: Machine,
        retime: Callable[[], None],
        quantum: float = QUANTUM,
        settle_ps: int = SETTLE_PS,
    ) -> None:
        self._clock = clock
        self._l2 = machine.rates.l2_bytes_per_s
        self._hbm = machine.rates.hbm_bytes_per_s
        self._retime = retime
        self._quantum = quantum
        self._settle = settle_ps
        self._pending = False
        self.l2 = self.hbm = 0
        self.factor = 1.0

    def replace(self, before: tuple[int, int], now: tuple[int, int]) -> None:
        """An SM draws *now* where it drew *before*: (L2, HBM)."""
        self.l2 += now[0] - before[0]
        self.hbm += now[1] - before[1]

    def consider(self) -> None:
        """Schedules an update if the factor is off by a quantum."""
        if not self._pending and self._is_off():
            self._pending = True
            self._clock.timeout(self._settle).callbacks.append(self._update)

    def _wanted(self) -> float:
        worst = max(self.l2 / self._l2, self.hbm / self._hbm)
        return 1.0 / worst if worst > 1.0 else 1.0

    def _is_off(self) -> bool:
        return abs(self._wanted() - self.factor) > self._quantum * self.factor

    def _update(self, event: Any) -> None:
        self._pending = False
        if self._is_off():
            self.factor = self._wanted()
            self._retime()
