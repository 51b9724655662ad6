"""The work of ``cusim run``: one program, one machine, one plan, one trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cli.asked import read_asked
from cli.inputs import gathered
from cli.options import DEFAULT_MACHINE
from cli.output import answer, check_place, note, wrote
from cli.plans import STREAM, PlanWords, contenders_of
from cli.subject import Subject, blaming
from cli.sweep import integers, values_of, words
from cusim.engine.predict import predict
from cusim.engine.result import Deadlock, Prediction
from cusim.errors import Problems, refuse
from cusim.machine.machine import Machine
from cusim.machine.unused import unused_notes
from cusim.policies.registry import split_sweep
from cusim.program.depends import dependences
from cusim.report.line import Line
from cusim.report.plausible import kernel_notes
from cusim.report.rows import Contender, flag_warnings, row_of, shape_of
from cusim.report.trace import with_shape
from cusim.report.trace_text import run_lines
from cusim.trace.formats import write_trace

#: Suffixes of trace files.
TRACES = (".npz", ".csv")


def print_run(workload: str, given: Mapping[str, Any]) -> bool:
    """Runs the plan, writes its trace, prints the summary; True when it deadlocked."""
    output, quiet = given["output"], given["quiet"]
    problems = Problems("the command line")
    gathered(problems, check_place, output, TRACES)
    check_single(given, problems)
    asked = read_asked(workload, given, problems)
    setting = asked.axes.machines[0]
    (subject,) = asked.subjects_of(setting, asked.axes.ms[0])
    contender = _only_plan(subject, asked.typed)
    machine = setting.apply(subject.overrides)
    how: Mapping[str, Any] = {"dispatch": asked.axes.dispatches[0], "seed": asked.axes.seeds[0]}
    with blaming(contender.program.name, subject.source):
        outcome = predict(contender.program, machine, contender.plan, **how)
    answer(_summary(contender, outcome, machine))
    if output is not None:
        write_trace(with_shape(outcome.trace, shape_of(contender.program, machine)), output)
        wrote(output, quiet=quiet)
    note(_notes(given, contender, machine), quiet=quiet)
    return isinstance(outcome, Deadlock)


def check_single(given: Mapping[str, Any], problems: Problems) -> None:
    """Records every option that holds several values."""
    aside = Problems("")  # what is wrong with single values is told when they are read
    several: dict[str, Sequence[object]] = {
        "--m": integers("--m", given["m"], aside),
        "--tile": words(given["tile"]),
        "--split-k": words(given["split_k"]),
        "--machine": words(given["machine"]),
        "--dispatch": words(given["dispatch"]),
        "--seed": integers("--seed", given["seed"], aside, least=0),
    }
    for setting in given["settings"]:
        several[f"--set {setting}"] = values_of("--set", setting.partition("=")[2], aside)
    for option, values in several.items():
        if len(values) > 1:
            problems.add(option, None, f"run takes one value, {len(values)} were given; `cusim predict` sweeps")


def _only_plan(subject: Subject, typed: PlanWords) -> Contender:
    """The one plan asked for: row semaphores unless told otherwise, stream order where nothing depends."""
    deps = [dep.name for dep in dependences(subject.program)]
    policies = dict.fromkeys(value for text in typed.policy for value in split_sweep(text, deps))
    if len(policies) > 1:
        why = (
            f"run takes one plan, {len(policies)} policies were given: {', '.join(policies)}; `cusim predict` compares"
        )
        raise refuse("the command line", "--policy", None, why)
    policy = tuple(policies) or (("row",) if deps else (STREAM,))
    found = contenders_of(subject, replace(typed, policy=policy))
    if found.skipped:
        raise found.skipped[0][1]
    launches = words(typed.launch)
    wanted = [
        contender
        for contender in found.contenders
        if contender.plan.overlapped == (policy != (STREAM,))
        and (contender.plan.overlapped or contender.plan.launch in (launches or (STREAM,)))
    ]
    if len(wanted) != 1:
        kinds = "values of --order, --flags or --launch make"
        why = f"run takes one plan, {kinds} {len(wanted)}; `cusim predict` compares them"
        raise refuse("the command line", "plan", None, why)
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
    notes += [*unused_notes(machine), *kernel_notes(contender.program, machine, predict)]
    return notes + [f"flag {text}" for text in flag_warnings(contender, machine, contender.label)]
