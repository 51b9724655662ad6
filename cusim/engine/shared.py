"""What all SMs share: the clock, L2 with the link between its halves, and HBM. One speed for all working blocks.

A block's work is stated at full speed: at the clock of few busy tensor cores, with the memory to itself. Together they
slow down. The clock falls with the tensor work that is done at once (the voltage gives way within microseconds; power
budgets over milliseconds are another matter, :mod:`cusim.engine.power`), and memory takes its own time whatever the
clock. The limits meet softly, as a norm of the times that each alone would take. The speed is constant between updates:
it is found anew when it is off by more than a quantum, a short settling time after the change, so that a wave of starts
costs one update (design §6.4).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from cusim.engine.clock import Clock
from cusim.engine.cost import FULL_PIPE
from cusim.engine.soft import HARD, norm
from cusim.machine.machine import Machine

#: Relative change of the factor below which blocks are not re-timed; tests hold the totals of this default
#: against the exact form (quantum 0, no settling).
QUANTUM = 0.02
SETTLE_PS = 200_000
#: The power of the busy share with which the clock falls.
DROOP_ORDER = 2
#: Rounds in which clock and time are brought to agree, beginning where they agree without memory.
_ROUNDS = 6

#: Parts of a full pipe, and bytes a second of L2, HBM and the link, that blocks ask for at full speed.
Draw: TypeAlias = tuple[int, int, int, int]


class Shared:
    """Draw and speed. *retime* is called with no arguments after the factor has changed.

    ``drawn`` is what all SMs ask for at full speed, ``factor`` the speed that they get, ``memory`` the part of their
    time that memory adds to what the clock leaves.
    """

    __slots__ = (
        "_clock", "_droop", "_full", "_pending", "_quantum", "_rates", "_retime", "_settle", "_sharpness",
        "drawn", "factor", "memory",
    )  # fmt: skip

    def __init__(
        self,
        clock: Clock,
        machine: Machine,
        retime: Callable[[], None],
        quantum: float = QUANTUM,
        settle_ps: int = SETTLE_PS,
    ) -> None:
        rates = machine.rates
        self._clock = clock
        self._rates = (rates.l2_bytes_per_s, rates.hbm_bytes_per_s, rates.l2_link_bytes_per_s)
        self._droop = rates.clock_droop
        self._sharpness = rates.contention_sharpness
        self._full = machine.limits.sms * FULL_PIPE
        self._retime = retime
        self._quantum = quantum
        self._settle = settle_ps
        self._pending = False
        self.drawn: Draw = (0, 0, 0, 0)
        self.factor = 1.0
        self.memory = 0.0

    def replace(self, before: Draw, now: Draw) -> None:
        """An SM draws *now* where it drew *before*."""
        all_ = self.drawn
        self.drawn = (
            all_[0] + now[0] - before[0], all_[1] + now[1] - before[1],
            all_[2] + now[2] - before[2], all_[3] + now[3] - before[3],
        )  # fmt: skip

    def consider(self) -> None:
        """Schedules an update if the factor is off by a quantum."""
        if not self._pending and self._is_off():
            self._pending = True
            self._clock.timeout(self._settle).callbacks.append(self._update)

    def _wanted(self) -> tuple[float, float]:
        """The speed for what is drawn now, and the part of the time that memory adds."""
        pipe, l2, hbm, link = self.drawn
        rates, droop, sharpness = self._rates, self._droop, self._sharpness
        busy = pipe / self._full
        asked = (l2 / rates[0], hbm / rates[1], link / rates[2])
        # Without memory in the way, slow = 1 / (1 - droop (busy / slow)^2): a root of a square.
        slow = max((1.0 + (1.0 + 4.0 * droop * busy**DROOP_ORDER) ** 0.5) / 2, *asked)
        if sharpness >= HARD or not (droop and busy):
            clock = 1.0
            for _ in range(_ROUNDS if droop and busy else 1):
                clock = 1.0 - droop * (busy / slow) ** DROOP_ORDER
                slow = (slow + norm((1.0 / clock, *asked), sharpness)) / 2
            slow = norm((1.0 / clock, *asked), sharpness)
            return 1.0 / slow, 1.0 - 1.0 / (clock * slow)
        # The same norms with the part that stays taken out of the rounds: this runs at almost every event.
        memory, root = asked[0] ** sharpness + asked[1] ** sharpness + asked[2] ** sharpness, 1.0 / sharpness
        for _ in range(_ROUNDS):
            clock = 1.0 - droop * (busy / slow) ** DROOP_ORDER
            slow = (slow + (clock**-sharpness + memory) ** root) / 2
        slow = (clock**-sharpness + memory) ** root
        return 1.0 / slow, 1.0 - 1.0 / (clock * slow)

    def _is_off(self) -> bool:
        return abs(self._wanted()[0] - self.factor) > self._quantum * self.factor

    def _update(self, event: Any) -> None:
        self._pending = False
        if self._is_off():
            self.factor, self.memory = self._wanted()
            self._retime()
