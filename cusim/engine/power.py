"""The clock that the power budget leaves: a run that keeps more of the tensor pipes busy is clocked down.

Clocks follow power over milliseconds, longer than a run, so it is the average over a run (repeated back to back, as in
measurements) that counts, and one clock holds for all of it. Work that a plan packs into less time therefore pays part
of the gain back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cusim.engine.cost import FULL_PIPE, BlockCost
from cusim.engine.simulate import Finished
from cusim.machine.machine import Machine
from cusim.program.kernel import Measured


def clock_share(finished: Finished, machine: Machine) -> float:
    """The clock that a finished run leaves, as a share of the clock it was simulated with: 1 within the budget.

    A block counts by its activity for as long as it works: what a satisfied wait costs is spent, not idle.
    """
    busy = sum(run.worked_ps * run.cost.activity / FULL_PIPE for run in finished.setup.runs)
    used = busy / (machine.limits.sms * max(finished.total_ps, 1))
    used = min(1.0, used)  # blocks that share an SM count their prologues and tails as busy too
    return min(1.0, machine.rates.sustained_share / used) if used > 0 else 1.0


def slowed(finished: Finished, share: float, measured_share: float) -> Mapping[str, BlockCost]:
    """The costs of all kernels at another clock. Measured kernels were measured at *measured_share* of it already."""
    return {
        run.kernel.name: _at(run.cost, share / measured_share if isinstance(run.kernel.cost, Measured) else share)
        for run in finished.setup.runs
    }


def _at(cost: BlockCost, clock: float) -> BlockCost:
    """The same work at *clock* times the clock: it takes longer and asks less a second of the memory."""
    return replace(
        cost,
        prologue_ps=round(cost.prologue_ps / clock),
        step_ps=max(1, round(cost.step_ps / clock)),
        tail_ps=round(cost.tail_ps / clock),
        l2_bytes_per_s=round(cost.l2_bytes_per_s * clock),
        hbm_bytes_per_s=round(cost.hbm_bytes_per_s * clock),
        link_bytes_per_s=round(cost.link_bytes_per_s * clock),
    )
