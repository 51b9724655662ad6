"""How far an answer carries: the semaphore latency and the problem size at which a gain is gone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from cusim.engine.predict import predict
from cusim.engine.result import Prediction
from cusim.machine.machine import Machine
from cusim.policies.plan import Plan
from cusim.program.program import Program

#: Longest time from a post to its being seen that is tried, ps; longer than any kernel that waits is worth.
LONGEST_PS = 1_000_000_000
#: Bisection ends at this width, ps.
_CLOSE_PS = 10_000


def seen_within_ps(program: Program, machine: Machine, plan: Plan, reference_ps: int) -> int | None:
    """The longest time from the start of a post to its being seen with which *plan* still beats *reference_ps*.

    None where it does not even with posts seen at once; LONGEST_PS where it does with any that is tried.
    """

    def gains(seen_ps: int) -> bool:
        result = predict(program, _seen(machine, seen_ps), plan)
        return isinstance(result, Prediction) and result.total_ps < reference_ps

    least = max(machine.sync.post_ps, machine.sync.post_store_ps)
    if not gains(least):
        return None
    low, high = least, LONGEST_PS
    if gains(high):
        return high
    while high - low > _CLOSE_PS:
        middle = (low + high) // 2
        low, high = (middle, high) if gains(middle) else (low, middle)
    return low


def gain_ends_after(gain_pct: Callable[[int], float], sizes: Sequence[int], least_pct: float) -> int | None:
    """The largest of ascending *sizes* at which the gain is still *least_pct* or more; None if it is nowhere.

    Gains come and go with the fill of last rounds, so every size is tried.
    """
    return max((size for size in sizes if gain_pct(size) >= least_pct), default=None)


def _seen(machine: Machine, seen_ps: int) -> Machine:
    """The machine with a post seen *seen_ps* after it starts; measured times stay those of the machine at hand."""
    sync = machine.sync
    visible = replace(sync, visible_ps=seen_ps - sync.post_ps, visible_store_ps=seen_ps - sync.post_store_ps)
    return replace(machine, sync=visible, base=machine.base or machine)
