"""Kernels whose time was measured alone: the cost of a block for which the engine's own run gives that time."""

from __future__ import annotations

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

#: Newton steps at most, and the error that ends them.
_STEPS, _CLOSE_PS = 12, 2_000


def anchored_costs(program: Program, machine: Machine, plan: Plan) -> dict[str, BlockCost]:
    """Block costs of the measured kernels of a program, by name.

    A time measured on another machine keeps its time per round: it is anchored there, then used here. Raises
    InputError where that machine is unknown, or the time is shorter than the fixed costs of its blocks.
    """
    return {
        kernel.name: _anchor(program, kernel, machine, plan)
        for kernel in program.kernels
        if isinstance(kernel.cost, Measured)
    }


def _anchor(program: Program, kernel: Kernel, machine: Machine, plan: Plan) -> BlockCost:
    cost = kernel.cost
    assert isinstance(cost, Measured)
    home = machine if cost.measured_on == machine.name else _machine(program, kernel, cost.measured_on)
    alone = Program((replace(kernel, reads=(), persistent=False),), program.buffers, name=kernel.name)
    order = Plan(order={kernel.name: plan.order_of(kernel.name)})
    per_sm = kernel_occupancy(kernel, home).blocks_per_sm
    if per_sm == 0:
        raise refuse(program.name, f"{kernel.name}.measured_on", cost.measured_on, "no SM of it can hold this block")
    table = order_table(plan.order_of(kernel.name), kernel.grid)
    trial = block_cost(kernel, home, table, per_sm)
    demand = (trial.step_ps, trial.pipe_load, trial.l2_bytes_per_s, trial.hbm_bytes_per_s)
    rounds = -(-kernel.blocks // (per_sm * home.limits.sms)) * kernel.slice_steps
    step = max(1, (cost.time_ps // rounds) - trial.prologue_ps // kernel.slice_steps)
    for _ in range(_STEPS):
        trial = _with_step(trial, step, demand)
        miss = cost.time_ps - simulate(alone, home, order, {kernel.name: trial}).total_ps
        if abs(miss) <= max(_CLOSE_PS, rounds):
            return trial
        step += round(miss / rounds) or (1 if miss > 0 else -1)
        if step < 1:
            fixed = f"{cost.time_ps / 1e6:g} us is shorter than the launch and block overheads of {home.name}"
            raise refuse(program.name, f"{kernel.name}.time_us", cost.time_ps / 1e6, fixed)
    return trial


def _with_step(cost: BlockCost, step: int, demand: tuple[int, int, int, int]) -> BlockCost:
    """The cost with another step time; the work of a step stays, so slower steps ask less of pipe and memory."""
    was, pipe, l2, hbm = demand
    slower = was / step
    return replace(
        cost,
        step_ps=step,
        pipe_load=min(1_000_000, round(pipe * slower)),
        l2_bytes_per_s=round(l2 * slower),
        hbm_bytes_per_s=round(hbm * slower),
    )


def _machine(program: Program, kernel: Kernel, name: str) -> Machine:
    try:
        return load_machine(name)
    except InputError:
        known = f"allowed: the machine at hand or {' '.join(machine_names())}"
        raise refuse(program.name, f"{kernel.name}.measured_on", name, f"unknown machine; {known}") from None
