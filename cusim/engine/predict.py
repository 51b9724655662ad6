"""The front door of the engine: what a plan would do for a program on a machine."""

from __future__ import annotations

from typing import Any

from cusim.engine.anchor import anchored_costs
from cusim.engine.deadlock import waiting_cycle
from cusim.engine.dispatcher import Rule
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
    """Simulates one run of *program* under *plan* on *machine*.

    *dispatch* is ``arrival`` (kernels place blocks in the order in which they arrive), ``random`` or ``adversarial``
    (any order, or the worst, that no documented rule forbids); *seed* settles ties and draws. The same arguments give
    the same result, byte for byte. Raises InputError for a block that fits no SM and a plan that does not fit.
    """
    check_runnable(program, machine, plan)
    costs = anchored_costs(program, machine, plan)
    finished = simulate(program, machine, plan, costs, dispatch, seed)
    slots = slots_of(program, machine)
    judged = verdict(program, plan, machine, slots)
    names = tuple(dep.name for dep in finished.setup.deps)
    meta = _meta(program, machine, plan, dispatch, seed, finished)
    trace = make_trace(finished.setup.runs, finished.wait_rows, names, meta)
    if finished.unfinished:
        return Deadlock(waiting_cycle(finished), finished.now_ps, finished.unfinished, judged, trace)
    waits = sum(wait_count(plan.sync[dep.name], dep) for dep in finished.setup.deps)
    return Prediction(finished.total_ps, trace.span_ps, rounds(program, plan, slots), waits, judged, trace)


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
