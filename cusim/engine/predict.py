"""The front door of the engine: what a plan would do for a program on a machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cusim.engine.anchor import anchored_costs
from cusim.engine.cost import BlockCost
from cusim.engine.deadlock import waiting_cycle
from cusim.engine.dispatcher import Rule
from cusim.engine.power import clock_share, slowed
from cusim.engine.record import make_trace
from cusim.engine.result import Deadlock, Prediction
from cusim.engine.rounds import rounds
from cusim.engine.setup import check_runnable, slots_of
from cusim.engine.simulate import Finished, simulate
from cusim.engine.verdict import verdict
from cusim.machine.machine import Machine
from cusim.policies.plan import Plan
from cusim.policies.plan_serial import plan_digest
from cusim.policies.semaphores import wait_count
from cusim.program.program import Program


def predict(
    program: Program, machine: Machine, plan: Plan, *, dispatch: Rule = "arrival", seed: int = 0
) -> Prediction | Deadlock:
    """Simulates one run of *program* under *plan* on *machine*: a Prediction, or a Deadlock where it hangs.

    *dispatch* is ``arrival`` (kernels place blocks in the order in which they arrive), ``random``, or ``adversarial``
    (the latest kernel first: a bad order that no documented rule forbids, not always the worst); *seed* settles ties
    and draws. The same arguments give the same result, byte for byte. Raises InputError for a block that fits no SM and
    a plan that does not fit.
    """
    check_runnable(program, machine, plan)
    costs = anchored_costs(program, machine, plan)
    finished = simulate(program, machine, plan, costs, dispatch, seed)
    if not finished.unfinished:
        finished = _within_power(finished, program, machine, plan, costs, dispatch, seed)
    slots = slots_of(program, machine)
    judged = verdict(program, plan, machine, slots)
    names = finished.dependences
    meta = _meta(program, machine, plan, dispatch, seed, finished)
    runs, wait_rows = finished.setup.runs, finished.wait_rows
    if finished.unfinished:
        cycle = waiting_cycle(finished)
        trace = make_trace(runs, wait_rows, names, {**meta, "deadlock": True, "cycle": list(cycle)}, finished.last_ps)
        return Deadlock(cycle, finished.last_ps, finished.unfinished, judged, trace)
    trace = make_trace(runs, wait_rows, names, meta)
    waits = sum(wait_count(plan.sync[dep.name], dep) for dep in finished.setup.deps)
    return Prediction(finished.total_ps, trace.span_ps, rounds(program, plan, slots), waits, judged, trace)


def _within_power(
    finished: Finished,
    program: Program,
    machine: Machine,
    plan: Plan,
    costs: Mapping[str, BlockCost],
    dispatch: Rule,
    seed: int,
) -> Finished:
    """The run again at the clock that its power leaves; measured kernels were measured at stream order's clock."""
    measured = 1.0
    if costs and plan.overlapped:
        stream = simulate(program, machine, replace(plan, sync={}, launch="stream"), costs)
        measured = clock_share(stream, machine)
    elif costs:
        measured = clock_share(finished, machine)
    share = clock_share(finished, machine)
    if share == 1.0 and measured == 1.0:
        return finished
    return simulate(program, machine, plan, slowed(finished, share, measured), dispatch, seed)


def _meta(
    program: Program, machine: Machine, plan: Plan, dispatch: Rule, seed: int, finished: Finished
) -> dict[str, Any]:
    """Where the figures come from: everything that must be equal for two traces to be equal."""
    return {
        "kind": "predicted",
        "program": program.name,
        "program_digest": program.digest,
        "machine": machine.name,
        "machine_digest": machine.digest,
        "machine_state": machine.state,
        "overrides": list(machine.overrides),
        "plan": plan.label,
        "plan_digest": plan_digest(plan),
        "dispatch": dispatch,
        "seed": seed,
        "total_ns": finished.total_ps // 1000 if finished.total_ps >= 0 else None,
        "clock_hz": machine.rates.clock_hz,
        "sms": machine.limits.sms,
        "warps_per_sm": machine.limits.warps_per_sm,
        "samples": 1,
        "stamped": False,
        "posts": {
            dep.name: [str(post.index) for post in plan.sync[dep.name].posts(dep)] for dep in finished.setup.deps
        },
    }
