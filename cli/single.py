"""The work of ``cusim run``: one program, one machine, one plan, one trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cli.inputs import Axes, read_axes
from cli.options import DEFAULT_MACHINE
from cli.output import answer, check_place, note, wrote
from cli.plans import STREAM, PlanWords, contenders_of
from cli.subject import Sizes, Subject, read_subject
from cusim.engine.predict import predict
from cusim.engine.result import Deadlock, Prediction
from cusim.errors import Problems, refuse
from cusim.machine.machine import Machine
from cusim.program.depends import dependences
from cusim.report.rows import Contender, flag_notes, row_of, shape_of
from cusim.report.text import Line
from cusim.report.trace import with_shape
from cusim.report.trace_text import run_lines
from cusim.trace.formats import write_trace

#: Suffixes of trace files.
TRACES = (".npz", ".csv")


def print_run(workload: str, given: Mapping[str, Any]) -> bool:
    """Runs the plan, writes its trace, prints the summary; True when it deadlocked."""
    output, quiet = given["output"], given["quiet"]
    check_place(output, TRACES)
    axes = read_axes(given)
    _check_single(axes)
    setting = axes.machines[0]
    subject = read_subject(workload, setting.machine, Sizes(axes.ms[0], axes.tiles[0], axes.splits[0]))
    contender = _only_plan(subject, PlanWords.of(given))
    machine = setting.apply(subject.overrides)
    outcome = predict(contender.program, machine, contender.plan, dispatch=axes.dispatches[0], seed=axes.seeds[0])
    answer(_summary(contender, outcome, machine))
    if output is not None:
        write_trace(with_shape(outcome.trace, shape_of(contender.program, machine)), output)
        wrote(output, quiet=quiet)
    note(_notes(given, contender, machine), quiet=quiet)
    return isinstance(outcome, Deadlock)


def _check_single(axes: Axes) -> None:
    """Raises InputError that names every option which holds several values."""
    problems = Problems("the command line")
    several = {
        "--m": axes.ms,
        "--tile": axes.tiles,
        "--split-k": axes.splits,
        "--machine, --set": axes.machines,
        "--dispatch": axes.dispatches,
        "--seed": axes.seeds,
    }
    for option, values in several.items():
        if len(values) > 1:
            problems.add(option, None, f"run takes one value, {len(values)} were given; `cusim predict` sweeps")
    problems.raise_if_any()


def _only_plan(subject: Subject, typed: PlanWords) -> Contender:
    """The one plan asked for: row semaphores unless told otherwise, stream order where nothing depends."""
    policy = typed.policy or (("row",) if dependences(subject.program) else (STREAM,))
    found = contenders_of(subject, replace(typed, policy=policy))
    if found.skipped:
        raise found.skipped[0][1]
    wanted = [c for c in found.contenders if c.plan.overlapped == (policy != (STREAM,))]
    if len(wanted) != 1:
        labels = ", ".join(c.label for c in wanted)
        raise refuse("the command line", "plan", None, f"run takes one plan, {len(wanted)} were asked for: {labels}")
    return wanted[0]


def _summary(contender: Contender, outcome: Prediction | Deadlock, machine: Machine) -> Sequence[Line]:
    row = row_of(contender, outcome, machine, None)
    return run_lines(contender.program, machine, row, outcome.trace)


def _notes(given: Mapping[str, Any], contender: Contender, machine: Machine) -> list[str]:
    notes = [] if given["machine"] else [f"machine {DEFAULT_MACHINE}, since --machine names none"]
    if not given["policy"]:
        notes.append(f"policy {contender.label}, since --policy names none")
    if given["output"] is None:
        notes.append("the trace was not kept; -o FILE.npz keeps it, `cusim plot FILE.npz` draws it")
    return notes + flag_notes(contender, machine)
