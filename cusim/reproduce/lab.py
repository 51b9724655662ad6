"""Runs what claims ask for: every simulation once, on shipped machines, by whatever engine it is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil
from typing import TypeAlias

from cusim.engine.dispatcher import Rule
from cusim.engine.predict import predict
from cusim.engine.result import Deadlock, Prediction
from cusim.engine.setup import slots_of
from cusim.errors import CusimError
from cusim.machine.load import load_machine
from cusim.machine.machine import Machine
from cusim.policies.plan import Plan
from cusim.policies.plan_serial import plan_digest
from cusim.policies.registry import build_plan
from cusim.program.program import Program
from cusim.report.rows import shape_of
from cusim.trace.metrics import Metrics, metrics
from cusim.workloads import Choice, Workload, build_workload

Outcome: TypeAlias = Prediction | Deadlock
#: As :func:`cusim.engine.predict.predict`.
Predict: TypeAlias = Callable[..., Outcome]


class Lab:
    """*predict* stands in for the engine and *machines* for the shipped ones, so that tests can plant mistakes."""

    def __init__(self, predict: Predict = predict, machines: Mapping[str, Machine] | None = None) -> None:
        self._predict = predict
        self._machines = dict(machines or {})
        self._outcomes: dict[tuple[str, str, str, str], Outcome] = {}
        self._workloads: dict[tuple[str, str, int | None, str | None], Workload] = {}

    def machine(self, name: str) -> Machine:
        """The machine of that name."""
        if name not in self._machines:
            self._machines[name] = load_machine(name)
        return self._machines[name]

    @property
    def machines(self) -> tuple[Machine, ...]:
        """Every machine used so far, by name."""
        return tuple(machine for _, machine in sorted(self._machines.items()))

    def workload(self, name: str, machine: str, m: int | None = None, contender: str | None = None) -> Workload:
        """The workload as *machine* runs it; *contender* as in :func:`cusim.workloads.build_workload`."""
        key = (name, machine, m, contender)
        if key not in self._workloads:
            self._workloads[key] = build_workload(name, machine, m=m, contender=contender)
        return self._workloads[key]

    def outcome(self, program: Program, machine: Machine, plan: Plan, dispatch: Rule = "arrival") -> Outcome:
        """One simulated run."""
        key = (program.digest, machine.digest, plan_digest(plan), dispatch)
        if key not in self._outcomes:
            self._outcomes[key] = self._predict(program, machine, plan, dispatch=dispatch)
        return self._outcomes[key]

    def finished(self, program: Program, machine: Machine, plan: Plan) -> Prediction:
        """A run in order of arrival that must finish; CusimError where it deadlocks."""
        found = self.outcome(program, machine, plan)
        if isinstance(found, Deadlock):
            raise CusimError(f"{program.name} deadlocks under {plan.label}: {' -> '.join(found.cycle)}")
        return found

    def total_us(self, program: Program, machine: Machine, plan: Plan) -> float:
        """Event to event, in us."""
        return self.finished(program, machine, plan).total_ps / 1e6

    def shares(self, program: Program, machine: Machine, plan: Plan) -> Metrics:
        """Where the SM time of a run went."""
        return metrics(self.finished(program, machine, plan).trace, shape_of(program, machine))


def plan_of(choice: Choice, policy: str, *, flags: str | None = None, launch: str | None = None) -> Plan:
    """The plan of a workload's choice: its order and, unless *flags* says otherwise, its flags."""
    letters = choice.flags if flags is None else flags
    order = choice.order
    if policy == "stream":
        return build_plan(choice.program, policy=policy, order=order)
    return build_plan(choice.program, policy=policy, order=order, flags=letters, launch=launch)


def waves_of(program: Program, machine: Machine) -> tuple[float, ...]:
    """Tiles over slots of each kernel."""
    slots = slots_of(program, machine)
    return tuple(kernel.blocks / slots[kernel.name] for kernel in program.kernels)


def rounds_in_order(waves: tuple[float, ...]) -> int:
    """Whole waves of kernels that run one after the other: the closed form of the papers."""
    return sum(ceil(round(wave, 9)) for wave in waves)


def grid_text(program: Program) -> str:
    """``1x48x4, 1x96x2``: rows x columns x split-K slices of each kernel, as the paper prints grids."""
    return ", ".join("x".join(map(str, kernel.grid)) for kernel in program.kernels)
