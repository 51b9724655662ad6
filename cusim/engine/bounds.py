"""Times that no plan can beat: all blocks' work spread evenly over the slots."""

from __future__ import annotations

from cusim.engine.anchor import anchored_costs
from cusim.engine.clock import Clock
from cusim.engine.cost import FULL_PIPE
from cusim.engine.setup import kernel_occupancy, prepare
from cusim.machine.machine import Machine
from cusim.policies.plan import Plan
from cusim.program.program import Program


def even_ps(program: Program, machine: Machine, plan: Plan) -> int:
    """The time if no slot were ever empty and no block ever waited: work over slots, each SM as fast as when full.

    The fixed times of *plan* (tickets, posts) are in the blocks' work; launches and memory contention are not.
    """
    setup = prepare(program, machine, plan, Clock(), anchored_costs(program, machine, plan))
    total = 0.0
    for run in setup.runs:
        per_sm = kernel_occupancy(run.kernel, machine).blocks_per_sm
        work = sum(run.work[slice_] for slice_ in run.slices)
        slower = max(1.0, per_sm * run.load_of(run.work[0])[0] / FULL_PIPE)
        total += work * slower / (per_sm * machine.limits.sms)
    return round(total)
