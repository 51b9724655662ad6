"""The memory that all SMs share: a speed for all working blocks, constant between updates (design §6.4).

The factor is 1 until the blocks at work draw more from L2 or HBM than either delivers. It is updated when the draw has
changed by more than a quantum, a short settling time after the change, so that a wave of starts costs one update.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cusim.engine.clock import Clock

#: Relative change of the factor below which blocks are not re-timed; tests hold the totals of this default
#: against the exact form (quantum 0, no settling).
QUANTUM = 0.02
SETTLE_PS = 200_000


class Memory:
    """Draw and speed of L2 and HBM. *retime* is called with no arguments after the factor has changed."""

    __slots__ = (
        "_env",
        "_limits",
        "_pending",
        "_quantum",
        "_retime",
        "_settle",
        "draw_hbm",
        "draw_l2",
        "factor",
        "seen_hbm",
        "seen_l2",
    )

    def __init__(
        self,
        env: Clock,
        limits: tuple[int, int],
        retime: Callable[[], None],
        quantum: float = QUANTUM,
        settle_ps: int = SETTLE_PS,
    ) -> None:
        self._env = env
        self._limits = limits
        self._retime = retime
        self._quantum = quantum
        self._settle = settle_ps
        self._pending = False
        self.draw_l2 = 0
        self.draw_hbm = 0
        self.seen_l2 = 0
        self.seen_hbm = 0
        self.factor = 1.0

    def consider(self) -> None:
        """Called after the draw has changed: schedules an update if the factor is off by more than the quantum."""
        self.seen_l2, self.seen_hbm = self.draw_l2, self.draw_hbm
        if self._pending:
            return
        if abs(self._wanted() - self.factor) > self._quantum * self.factor:
            self._pending = True
            event = self._env.timeout(self._settle)
            event.callbacks.append(self._update)

    def _wanted(self) -> float:
        l2, hbm = self._limits
        return min(
            1.0, l2 / self.draw_l2 if self.draw_l2 > l2 else 1.0, hbm / self.draw_hbm if self.draw_hbm > hbm else 1.0
        )

    def _update(self, event: Any) -> None:
        self._pending = False
        wanted = self._wanted()
        if abs(wanted - self.factor) > self._quantum * self.factor:
            self.factor = wanted
            self._retime()
