"""Runs a program under a plan on a device: checked numbers, unstamped times, and the trace of a stamped run."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from backend_gpu.bench import SETS, Bench, Fault, Mode
from backend_gpu.checks import Checked, check_runs, compare, raise_if_wrong
from backend_gpu.cover import check_coverage, declared_notes
from backend_gpu.device import Commands, Device
from backend_gpu.numerics import references
from backend_gpu.record import make_trace, stamped_all
from cusim.errors import CusimError
from cusim.machine.machine import Machine
from cusim.policies.plan import Plan
from cusim.policies.plan_serial import plan_digest
from cusim.program.depends import dependences
from cusim.program.program import Program
from cusim.trace.trace import Trace

_PS_PER_NS = 1000
#: How far a stamped run's median may lie from the unstamped one's before the trace is said to be perturbed, percent.
PERTURBED_PCT = 1.0


@dataclass(frozen=True, slots=True)
class Spread:
    """Samples in picoseconds, in the order taken, and what they come to."""

    samples: tuple[int, ...]

    @property
    def median(self) -> int:
        """The middle sample."""
        return round(statistics.median(self.samples))

    @property
    def quartiles(self) -> tuple[int, int]:
        """The lower and the upper quartile."""
        low, high = np.percentile(np.asarray(self.samples), [25, 75])
        return round(low), round(high)

    @property
    def pct(self) -> float:
        """The distance of the quartiles, percent of the median."""
        low, high = self.quartiles
        return 100.0 * (high - low) / self.median if self.median else 0.0


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a device did.

    *total* is event to event behind a busy kernel, less the median of *empty*, the same for a program of no kernels;
    *stamped* likewise of the runs that wrote stamps, None where there were none. *span_ps* and *trace* are those of the
    stamped run nearest their median. *checks* are the check runs; *notes* what a reader should know.
    """

    total: Spread
    empty: Spread
    stamped: Spread | None
    span_ps: int | None
    trace: Trace | None = field(repr=False)
    checks: tuple[Checked, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def total_ps(self) -> int:
        """The median run."""
        return self.total.median

    @property
    def perturbation_pct(self) -> float | None:
        """How much longer stamped runs take, percent of the unstamped median."""
        if self.stamped is None or not self.total.median:
            return None
        return 100.0 * (self.stamped.median / self.total.median - 1)


@dataclass(frozen=True, slots=True)
class Deadlock:
    """A run that was given up: its watchdog found a block that had waited for longer than its budget."""

    text: str
    fault: Fault
    budget_ns: int


class _Samples(NamedTuple):
    """Raw picoseconds by kind of run, and the stamps of each stamped run."""

    plain: list[int]
    empty: list[int]
    stamped: list[int]
    stamps: list[list[NDArray[np.uint64]]]


def run(
    program: Program,
    plan: Plan,
    device: Device,
    *,
    repeats: int = 21,
    stamped: bool = True,
    check: bool = True,
    seed: int = 0,
    machine: Machine | None = None,
    label: str = "",
    budget_ns: int = 1_000_000_000,
) -> Measurement | Deadlock:
    """Measures *program* under *plan* on *device*.

    Fresh random inputs from *seed*, two sets of them in turn; check runs first unless *check* is off; then *repeats*
    interleaved runs, unstamped for the time, stamped for the trace, and the last results checked again. *machine* is
    the model of the device, whose occupancy must be the device's own; *label* says which set the record belongs to.
    Raises InputError for what the device has no code for, CheckFailedError for wrong numbers.
    """
    check_coverage(program, plan, device)
    bench = Bench(device, program, plan, seed=seed, budget_ns=budget_ns)
    notes = declared_notes(program, bench.loaded, machine)
    commands = {mode: [bench.commands(n, mode) for n in range(SETS)] for mode in _modes(stamped)}
    fault = _warm(bench, commands)
    if fault is not None:
        return _deadlock(fault, bench)
    checks: Sequence[Checked] = ()
    if check:
        outcome = check_runs(bench, seed)
        if isinstance(outcome, Fault):
            return _deadlock(outcome, bench)
        checks = outcome
    taken = _sample(bench, commands, repeats)
    fault = bench.fault()
    if fault is not None:
        return _deadlock(fault, bench)
    if check:
        last = [compare(bench, n, f"after the timed runs, inputs {n}", references(bench, n)) for n in range(SETS)]
        raise_if_wrong(last)
        checks = (*checks, *last)
    return _measurement(bench, taken, checks, notes, {"seed": seed, "label": label})


def _modes(stamped: bool) -> tuple[Mode, ...]:
    return (Mode(), Mode(stamped=True)) if stamped else (Mode(),)


def _warm(bench: Bench, commands: Mapping[Mode, Sequence[Commands]]) -> Fault | None:
    """Every prepared run once, so that nothing is loaded or allocated later; the first fault."""
    for each in (command for kind in commands.values() for command in kind):
        fault = bench.run(each)
        if fault is not None:
            return fault
    return None


def _sample(bench: Bench, commands: Mapping[Mode, Sequence[Commands]], repeats: int) -> _Samples:
    """Interleaved runs of every kind, so that drift of the clock touches all alike; inputs alternate."""
    taken = _Samples([], [], [], [])
    for repeat in range(repeats):
        taken.empty.append(bench.empty_ps())
        for mode, kind in commands.items():
            for each in bench.stamps:
                each.fill(0)
            time = bench.timed(kind[repeat % SETS])
            if not mode.stamped:
                taken.plain.append(time)
                continue
            taken.stamped.append(time)
            taken.stamps.append([bench.device.to_host(each) for each in bench.stamps])
            if not stamped_all(taken.stamps[-1]) and bench.fault() is None:
                raise CusimError("a block left no stamps though its run ended: the record would not be whole")
    return taken


def _measurement(
    bench: Bench, taken: _Samples, checks: Sequence[Checked], notes: Sequence[str], more: Mapping[str, Any]
) -> Measurement:
    empty = Spread(tuple(taken.empty))
    total = _less(taken.plain, empty)
    stamped = _less(taken.stamped, empty) if taken.stamped else None
    result = Measurement(total, empty, stamped, None, None, tuple(checks), tuple(notes))
    if stamped is None:
        return result
    best = min(range(len(stamped.samples)), key=lambda place: abs(stamped.samples[place] - stamped.median))
    shift = result.perturbation_pct or 0.0
    if abs(shift) > PERTURBED_PCT:
        notes = (*notes, f"stamping changes the time by {shift:+.1f} %: the trace shows a run that differs by as much")
    meta = {**_meta(bench, result, more), "notes": list(notes), "perturbation_pct": round(shift, 3)}
    trace = make_trace(bench.program, bench.plan, bench.loaded, taken.stamps[best], meta)
    return Measurement(total, empty, stamped, trace.span_ps, trace, tuple(checks), tuple(notes))


def _less(times: Sequence[int], empty: Spread) -> Spread:
    return Spread(tuple(time - empty.median for time in times))


def _deadlock(fault: Fault, bench: Bench) -> Deadlock:
    bench.reset()
    return Deadlock(fault.text, fault, bench.budget_ns)


def _meta(bench: Bench, result: Measurement, more: Mapping[str, Any]) -> dict[str, Any]:
    """Where the figures come from. No number travels without it."""
    program, plan, facts = bench.program, bench.plan, bench.device.facts
    low, high = result.total.quartiles
    now = datetime.now(UTC)
    return {
        "kind": "measured",
        "device": facts.kind,
        "program": program.name,
        "program_digest": program.digest,
        "machine": facts.name,
        "plan": plan.label,
        "plan_digest": plan_digest(plan),
        "launch": plan.launch,
        "total_ns": result.total_ps // _PS_PER_NS,
        "samples": len(result.total.samples),
        "samples_ns": [sample // _PS_PER_NS for sample in result.total.samples],
        "stamped_samples_ns": [sample // _PS_PER_NS for sample in (result.stamped or Spread(())).samples],
        "empty_ns": result.empty.median // _PS_PER_NS,
        "spread_ns": [low // _PS_PER_NS, high // _PS_PER_NS],
        "stamped": True,
        "timer_step_ns": facts.timer_step_ns,
        "l2": "warm: inputs alternate between two sets, caches are not flushed",
        "date": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "occasion": f"{now.strftime('%Y%m%d-%H%M%S')}-{facts.more.get('uuid') or facts.kind}",
        "checked": [each.text() for each in result.checks],
        "sms": facts.sms,
        "warps_per_sm": facts.warps_per_sm,
        "blocks_per_sm": {loaded.kernel: loaded.blocks_per_sm for loaded in bench.loaded},
        "warps_per_block": {loaded.kernel: -(-loaded.threads // 32) for loaded in bench.loaded},
        "registers": {loaded.kernel: loaded.registers for loaded in bench.loaded},
        "smem_bytes": {loaded.kernel: loaded.smem_bytes for loaded in bench.loaded},
        "posts": {
            dep.name: [str(post.index) for post in plan.sync[dep.name].posts(dep)]
            for dep in (dependences(program) if plan.overlapped else ())
        },
        **facts.more,
        **more,
    }  # fmt: skip
