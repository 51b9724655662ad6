"""Kernels whose time was measured alone: the cost of a block for which the engine's own run gives that time.

The time is that of the kernel itself, first block start to last block end, as Nsight prints a duration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cusim.engine.cost import BlockCost, block_cost
from cusim.engine.setup import kernel_occupancy
from cusim.engine.simulate import simulate
from cusim.errors import InputError, refuse
from cusim.machine.load import load_machine, machine_names
from cusim.machine.machine import Machine
from cusim.policies.orders import order_table
from cusim.policies.plan import Plan
from cusim.program.kernel import Kernel, Measured
from cusim.program.program import Program


def anchored_costs(program: Program, machine: Machine, plan: Plan) -> dict[str, BlockCost]:
    """Block costs of the measured kernels of a program, by name.

    A time measured on another machine, or before what-if settings, is anchored there; here a k step takes as much
    longer or shorter as the machine models say, or as long where they know no work of the kernel. Raises InputError
    where that machine is unknown, or the time is shorter than the fixed costs of its blocks.
    """
    return {
        kernel.name: _anchor(program, kernel, machine, plan)
        for kernel in program.kernels
        if isinstance(kernel.cost, Measured)
    }


def _anchor(program: Program, kernel: Kernel, machine: Machine, plan: Plan) -> BlockCost:
    cost = kernel.cost
    assert isinstance(cost, Measured)
    here = machine.base or machine
    home = here if cost.measured_on == machine.name else _machine(program, kernel, cost.measured_on)
    order = plan.order_of(kernel.name)
    alone = Program((replace(kernel, reads=(), persistent=False),), program.buffers, name=kernel.name)
    per_sm = kernel_occupancy(kernel, home).blocks_per_sm
    if per_sm == 0:
        raise refuse(
            program.name,
            f"kernel[{program.position(kernel.name)}].measured_on",
            cost.measured_on,
            "no SM of it can hold this block",
        )
    model = block_cost(kernel, home, order_table(order, kernel.grid), per_sm)
    resident = min(kernel.blocks, per_sm * home.limits.sms)

    def miss(step: int) -> int:
        trial = {kernel.name: _with_step(model, step, home, resident)}
        (run,) = simulate(alone, home, Plan(order={kernel.name: order}), trial).setup.runs
        return run.done_ps - run.placed[0] - cost.time_ps

    if miss(1) > 0:
        why = f"shorter than the fixed costs of its blocks on {home.name}"
        raise refuse(program.name, f"kernel[{program.position(kernel.name)}].time_us", cost.time_ps / 1e6, why)
    step = _root(miss, max(2, cost.time_ps // kernel.slice_steps))
    if home is machine:
        return _with_step(model, step, home, resident)
    per_sm = kernel_occupancy(kernel, machine).blocks_per_sm
    moved = block_cost(kernel, machine, order_table(order, kernel.grid), per_sm)
    resident = min(kernel.blocks, per_sm * machine.limits.sms)
    return _with_step(moved, max(1, round(step * moved.step_ps / model.step_ps)), machine, resident)


def _root(miss: Callable[[int], int], top: int) -> int:
    """The step time at which *miss*, which grows with it, is closest to 0: the secant between bounds, else halving."""
    low, high = 1, top
    at_low, at_high = miss(low), miss(high)
    while high - low > 1:
        guess = low - at_low * (high - low) // (at_high - at_low)
        guess = min(max(guess, low + 1), high - 1)
        for step in (guess, (low + high) // 2):
            if low < step < high:
                found = miss(step)
                if found <= 0:
                    low, at_low = step, found
                else:
                    high, at_high = step, found
        if at_low == 0:
            return low
    return low if -at_low <= at_high else high


def _with_step(cost: BlockCost, step: int, machine: Machine, resident: int) -> BlockCost:
    """The cost with another step time. The work of a step stays, so slower steps ask less of pipe and memory.

    Faster steps than the model's do not ask more of the pipe: then it is the pipe that the model underrates. What
    *resident* blocks draw together is at most what the memory delivers, since they did run in the measured time.
    """
    slower = cost.step_ps / step
    return replace(
        cost,
        step_ps=step,
        pipe_load=round(cost.pipe_load * min(1.0, slower)),
        activity=round(cost.activity * min(1.0, slower)),
        l2_bytes_per_s=min(round(cost.l2_bytes_per_s * slower), machine.rates.l2_bytes_per_s // resident),
        hbm_bytes_per_s=min(round(cost.hbm_bytes_per_s * slower), machine.rates.hbm_bytes_per_s // resident),
        link_bytes_per_s=min(round(cost.link_bytes_per_s * slower), machine.rates.l2_link_bytes_per_s // resident),
    )


def _machine(program: Program, kernel: Kernel, name: str) -> Machine:
    try:
        return load_machine(name)
    except InputError:
        known = f"allowed: the machine at hand or {' '.join(machine_names())}"
        raise refuse(
            program.name, f"kernel[{program.position(kernel.name)}].measured_on", name, f"unknown machine; {known}"
        ) from None
