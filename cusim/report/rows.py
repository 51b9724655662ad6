"""Contenders compared: one row a plan, one row a kernel, the best stream order as the reference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from cusim.engine.result import Deadlock, Prediction
from cusim.machine.check import WARP_SIZE
from cusim.machine.machine import Machine
from cusim.policies.legality import legality
from cusim.policies.plan import Plan
from cusim.program.program import Program
from cusim.report.advice import advise
from cusim.report.choice import recommended_row
from cusim.report.kernels import KernelRow, kernel_rows, kernels_used
from cusim.report.plausible import kernel_notes
from cusim.report.result import (
    DEADLOCKS,
    IF_ARRIVAL,
    STREAM_BEST,
    Contender,
    Dispatch,
    Footnote,
    Outcome,
    Predict,
    Report,
    Row,
)
from cusim.report.shape import m_of, split_of, tile_of, uniform
from cusim.report.stream_best import nothing_better, stream_best
from cusim.trace.metrics import MachineShape, metrics

__all__ = ["DEADLOCKS", "Contender", "Dispatch", "KernelRow", "Outcome", "Predict", "Report", "Row", "compare"]

_PS_PER_NS = 1000


def compare(
    contenders: Iterable[Contender | tuple[str, Program, Plan]],
    machine: Machine,
    *,
    dispatch: Dispatch = "arrival",
    seed: int = 0,
    predict: Predict | None = None,
    best_stream: bool = False,
) -> Report:
    """Predicts every contender, and stream order at each of their tile orders if none is a stream plan.

    *predict* stands in for the engine. With *best_stream* one more row, ``stream-best``, has stream order at its own
    best tile, order and split-K, and only what beats it too is recommended. Raises InputError where a plan or a block
    cannot run on *machine*.
    """
    chosen = with_stream([Contender(*contender) for contender in contenders])
    run = predict or _engine()
    outcomes = [run(c.program, machine, c.plan, dispatch=dispatch, seed=seed) for c in chosen]
    reference = _best_stream(chosen, outcomes)
    programs = _distinct([c.program for c in chosen])
    kernels = kernels_used([(c.program, c.label) for c in chosen], machine)
    flags = [f"flag {text}" for c in chosen for text in flag_warnings(c, machine, c.label)]
    odd = [text for program in programs for text in kernel_notes(program, machine, run)]
    least: int | None = None
    footnotes: tuple[Footnote, ...] = ()
    if best_stream and reference is not None:
        place, rival, outcome, footnotes = _rival(chosen, outcomes, machine, run, dispatch, seed)
        chosen.insert(place, rival)
        outcomes.insert(place, outcome)
        programs = _distinct([*programs, rival.program])
        least = min(reference, outcome.total_ps)
    pairs = zip(chosen, outcomes, strict=True)
    rows = tuple(row_of(c, o, machine, reference, least) for c, o in pairs)
    report = Report(
        programs, machine, dispatch, seed, rows, kernels,
        notes=_distinct([*odd, *flags]), footnotes=footnotes, contenders=tuple(chosen),
    )  # fmt: skip
    return advise(report, _held(report, chosen, run))


def _rival(
    chosen: Sequence[Contender],
    outcomes: Sequence[Outcome],
    machine: Machine,
    run: Predict,
    dispatch: Dispatch,
    seed: int,
) -> tuple[int, Contender, Prediction, tuple[Footnote, ...]]:
    """The strongest stream order: its place after the stream rows, its contender, its outcome, and its footnote."""
    streams = [
        (outcome.total_ps, place, outcome)
        for place, outcome in enumerate(outcomes)
        if isinstance(outcome, Prediction) and not chosen[place].plan.overlapped
    ]
    least, place, reference = min(streams, key=lambda stream: stream[:2])
    last = max(place for _, place, _ in streams)
    rival, note = stream_best(chosen[place], machine)
    outcome = run(rival.program, machine, rival.plan, dispatch=dispatch, seed=seed)
    if isinstance(outcome, Prediction) and outcome.total_ps <= least:
        return last + 1, rival, outcome, (note,)
    same = chosen[place]._replace(label=STREAM_BEST)
    return last + 1, same, reference, (nothing_better(),)


def with_stream(contenders: Sequence[Contender]) -> list[Contender]:
    """The contenders, led by a stream plan for each program and order among them if there is none yet."""
    if any(not c.plan.overlapped for c in contenders):
        return list(contenders)
    plans = _distinct([(c.program, dict(c.plan.order)) for c in contenders])
    return [Contender("stream", program, Plan(order=order)) for program, order in plans] + list(contenders)


def _held(report: Report, contenders: Sequence[Contender], run: Predict) -> Row | None:
    """The recommended row under launch ``wait-all``, where its own launch relies on the order of arrival."""
    row = recommended_row(report)
    if row is None or row.deadlock != IF_ARRIVAL or row.launch == "wait-all":
        return None
    label, program, plan = contenders[[other is row for other in report.rows].index(True)]
    held = Contender(label, program, replace(plan, launch="wait-all"))
    outcome = run(program, report.machine, held.plan, dispatch=report.dispatch, seed=report.seed)
    return row_of(held, outcome, report.machine, None)


def row_of(
    contender: Contender,
    outcome: Outcome,
    machine: Machine,
    reference_ps: int | None,
    strongest_ps: int | None = None,
) -> Row:
    """The row of one outcome; *reference_ps* is the best of the stream rows, *strongest_ps* of stream-best too."""
    label, program, plan = contender
    total, span, rounds, waits, deadlock = None, None, None, None, DEADLOCKS
    speedup: float | None = None
    best_speedup: float | None = None
    if isinstance(outcome, Prediction):
        total, span = outcome.total_ps // _PS_PER_NS, outcome.span_ps // _PS_PER_NS
        rounds, waits, deadlock = outcome.rounds, outcome.waits, outcome.verdict.status
        speedup = reference_ps / outcome.total_ps if reference_ps and outcome.total_ps else None
        best_speedup = strongest_ps / outcome.total_ps if strongest_ps and outcome.total_ps else None
    working, waiting, empty = _shares(outcome, shape_of(program, machine))
    return Row(
        policy=label,
        order=uniform({k.name: plan.order_of(k.name).name for k in program.kernels}),
        flags=uniform({k.name: str(plan.flags_of(k.name)) for k in program.kernels}),
        launch=plan.launch,
        scheduler=plan.scheduler,
        m=m_of(program),
        tile=tile_of(program),
        split_k=split_of(program),
        total_ns=total,
        span_ns=span,
        speedup_vs_stream=None if speedup is None else round(speedup, 4),
        rounds=rounds,
        waits=waits,
        working_pct=working,
        waiting_pct=waiting,
        empty_pct=empty,
        deadlock=deadlock,
        reason=_reason(outcome),
        warnings=tuple(flag_warnings(contender, machine)),
        speedup_vs_best_stream=None if best_speedup is None else round(best_speedup, 4),
    )


def flag_warnings(contender: Contender, machine: Machine, label: str = "") -> list[str]:
    """What is to be said of the flags that the plan sets: only warnings, since refusals stop a plan before.

    Each begins with the flag, then *label* where one is given, then the dependence or kernel.
    """
    program, plan = contender.program, contender.plan
    slots = {row.name: row.slots for row in kernel_rows(program, machine)}
    if not any(str(plan.flags_of(name)) != "-" for name in slots) or not all(slots.values()):
        return []
    given = {letter for name in slots for letter in str(plan.flags_of(name))}
    found = legality(program, plan, slots)
    warned = [v for v in found if v.flag in given and v.status != "legal"]
    return [f"{', '.join(filter(None, (v.flag, label, v.where)))}: {v.reason}" for v in warned]


def shape_of(program: Program, machine: Machine) -> MachineShape:
    """What the program's traces need to know of the machine to be read."""
    room = {row.name: row.blocks_per_sm for row in kernel_rows(program, machine)}
    warps = {kernel.name: -(-kernel.block.threads // WARP_SIZE) for kernel in program.kernels}
    return MachineShape(machine.limits.sms, machine.limits.warps_per_sm, room, warps)


def _engine() -> Predict:
    from cusim.engine.predict import predict

    return predict


def _shares(outcome: Outcome, shape: MachineShape) -> tuple[float | None, float | None, float | None]:
    """Working, waiting and empty percent of the SMs' time; rounded so that the three sum to 100."""
    if isinstance(outcome, Deadlock):
        return None, None, None
    found = metrics(outcome.trace, shape)
    working, waiting = round(found.working_pct, 2), round(found.waiting_pct, 2)
    return working, waiting, round(100.0 - working - waiting, 2)


def _best_stream(contenders: Sequence[Contender], outcomes: Sequence[Outcome]) -> int | None:
    totals = [
        outcome.total_ps
        for contender, outcome in zip(contenders, outcomes, strict=True)
        if isinstance(outcome, Prediction) and not contender.plan.overlapped
    ]
    return min(totals, default=None)


def _reason(outcome: Outcome) -> str:
    if isinstance(outcome, Prediction):
        return outcome.verdict.reason
    left = f"{outcome.unfinished_blocks} blocks never finish"
    return f"{left}: {' -> '.join(outcome.cycle)}" if outcome.cycle else left


def _distinct(items: Sequence[Any]) -> tuple[Any, ...]:
    """The items without repeats, in order; compared by equality, since plans hold mappings."""
    found: list[Any] = []
    for item in items:
        if item not in found:
            found.append(item)
    return tuple(found)
