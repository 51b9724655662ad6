"""Where a plan's time goes: parts that sum to its total, found by taking one cause away after the other.

Each cause is removed from the machine or the program, those before it stay removed, and the run is predicted again:
what the time falls by is that cause's part. What is left at the end is all blocks' work, spread evenly over the slots.
A part can be negative: taking a delay away may reorder blocks for the worse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from cusim.engine.bounds import even_ps
from cusim.engine.predict import predict
from cusim.engine.result import Deadlock, Prediction
from cusim.machine.machine import Machine
from cusim.policies.plan import Plan
from cusim.program.program import Program

#: More bytes a second than any run draws.
_UNLIMITED = 1 << 62


@dataclass(frozen=True, slots=True)
class Part:
    """One cause and the time that it costs, in ps."""

    cause: str
    ps: int


@dataclass(frozen=True, slots=True)
class Breakdown:
    """A plan's total and its parts, which sum to it, largest causes of the design first."""

    total_ps: int
    parts: tuple[Part, ...]


def breakdown(program: Program, machine: Machine, plan: Plan) -> Breakdown | None:
    """The parts of the plan's predicted total; None where it deadlocks, as it is or with a cause taken away."""
    try:
        return _breakdown(program, machine, plan)
    except _HangsError:
        return None


class _HangsError(Exception):
    """A run that deadlocks has no total; delays may be all that keeps consumers behind their producers."""


def _breakdown(program: Program, machine: Machine, plan: Plan) -> Breakdown:
    real = _run(program, machine, plan)
    parts: list[Part] = []
    total = real.total_ps
    for cause, remove in _CAUSES:
        machine, plan = remove(machine, plan)
        then = _total(program, machine, plan)
        parts.append(Part(cause, total - then))
        total = then
    if plan.overlapped:
        then = _total(_independent(program), machine, replace(plan, sync={}, launch="none"))
        parts += _by_dependence(real, total - then)
        total = then
    even = even_ps(program, machine, plan)
    parts += [
        Part("last rounds that do not fill the slots", total - even),
        Part("work, spread evenly over the slots", even),
    ]
    return Breakdown(real.total_ps, tuple(reversed(parts)))


def _total(program: Program, machine: Machine, plan: Plan) -> int:
    return _run(program, machine, plan).total_ps


def _run(program: Program, machine: Machine, plan: Plan) -> Prediction:
    result = predict(program, machine, plan)
    if isinstance(result, Deadlock):
        raise _HangsError
    return result


def _without_power_limit(machine: Machine, plan: Plan) -> tuple[Machine, Plan]:
    return _changed(machine, rates=replace(machine.rates, sustained_share=1.0)), plan


def _without_contention(machine: Machine, plan: Plan) -> tuple[Machine, Plan]:
    rates = replace(
        machine.rates, l2_bytes_per_s=_UNLIMITED, l2_link_bytes_per_s=_UNLIMITED, hbm_bytes_per_s=_UNLIMITED
    )
    return _changed(machine, rates=rates), plan


def _without_droop(machine: Machine, plan: Plan) -> tuple[Machine, Plan]:
    return _changed(machine, rates=replace(machine.rates, clock_droop=0.0)), plan


def _without_semaphores(machine: Machine, plan: Plan) -> tuple[Machine, Plan]:
    sync = replace(
        machine.sync, post_ps=0, post_store_ps=0, visible_ps=0, visible_store_ps=0, satisfied_ps=0, same_address_ps=0
    )
    flags = {name: replace(flag, R=True) for name, flag in plan.flags.items()}
    return _changed(machine, sync=sync, block=replace(machine.block, ticket_ps=0)), replace(plan, flags=flags)


def _without_launches(machine: Machine, plan: Plan) -> tuple[Machine, Plan]:
    launch = replace(
        machine.launch,
        gap_ps=0,
        graph_gap_ps=0,
        early_ps=0,
        early_wait_ps=0,
        event_ps=0,
        wait_kernel_ps=0,
        wait_value_ps=0,
    )
    return _changed(machine, launch=launch, dispatch=replace(machine.dispatch, block_ps=0, refill_ps=0)), plan


def _changed(machine: Machine, **parts: object) -> Machine:
    """The machine without a cause; measured times stay those of the machine at hand."""
    return replace(machine, base=machine.base or machine, **parts)  # type: ignore[arg-type]


_CAUSES: tuple[tuple[str, Callable[[Machine, Plan], tuple[Machine, Plan]]], ...] = (
    ("power limit", _without_power_limit),
    ("clock that falls with busy tensor cores", _without_droop),
    ("contention for L2 and HBM", _without_contention),
    ("semaphores: tickets, posts, satisfied waits", _without_semaphores),
    ("launches and placement", _without_launches),
)


def _independent(program: Program) -> Program:
    """The program with no kernel reading what another writes."""
    return replace(program, kernels=tuple(replace(kernel, reads=()) for kernel in program.kernels))


def _by_dependence(real: Prediction, waited: int) -> list[Part]:
    """The time that waiting costs, shared out by how long blocks stood still for each dependence."""
    names = real.trace.dependences
    stood = _stood_still(real)
    total = sum(stood.values())
    if not total:
        return [Part("waiting: kernels that depend on each other", waited)]
    parts = [Part(f"waiting for {name}", waited * stood[name] // total) for name in names]
    parts[-1] = Part(parts[-1].cause, waited - sum(part.ps for part in parts[:-1]))
    return parts


def _stood_still(real: Prediction) -> Mapping[str, int]:
    waits = real.trace.waits
    lengths = waits["end"] - waits["begin"]
    return {
        name: int(np.sum(lengths[waits["dependence"] == place])) for place, name in enumerate(real.trace.dependences)
    }
