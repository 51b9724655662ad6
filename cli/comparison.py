"""The work of ``cusim predict``: programs and plans for every case, their comparison, and where it is printed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from cli.asked import Asked, read_asked
from cli.forms import form_of, rendered
from cli.inputs import gathered
from cli.options import DEFAULT_MACHINE
from cli.output import Progress, answer, check_place, columns, note, write_text, wrote
from cli.plans import Combinations, contenders_of
from cli.subject import blaming
from cli.why import check_one_case, with_why
from cusim.engine.predict import predict
from cusim.errors import Problems
from cusim.machine.machine import Machine
from cusim.report.advice import wave_notes
from cusim.report.choice import reference_row, strongest_row
from cusim.report.result import STREAM_BEST
from cusim.report.rows import Contender, Dispatch, Outcome, Report, compare
from cusim.report.stream_best import tile_options
from cusim.report.text import text_lines
from cusim.workloads.mlp import MLPS

_MOST_SKIPPED = 6


@dataclass(frozen=True, slots=True)
class Case:
    """One comparison of a sweep: rows of different cases are never compared with each other."""

    contenders: tuple[Contender, ...]
    machine: Machine
    dispatch: Dispatch
    seed: int
    source: str


def print_comparison(workload: str, given: Mapping[str, Any]) -> bool:
    """Runs everything that the options ask for and prints it; True when a row deadlocked."""
    output, unit, quiet = given["output"], given["time_unit"], given["quiet"]
    problems = Problems("the command line")
    form = form_of(given, problems)
    gathered(problems, check_place, output)
    if given["why"] and form == "csv":
        problems.add("--why", None, "CSV has a line a row and no room for it; --json or --md has")
    asked = read_asked(workload, given, problems)
    if given["why"]:
        check_one_case(asked)
    cases, skipped = _cases(asked)
    reports = _run(cases, best_stream=given["best_stream"], quiet=quiet)
    if given["why"]:
        reports = [with_why(report, workload, asked) for report in reports]
    table = not (given["json"] or given["csv"] or given["md"])
    if table:
        answer(text_lines(reports, unit, columns()))
    elif output is None:
        click.echo(rendered(reports, form or "text", unit), nl=False)
    if output is not None:
        write_text(output, rendered(reports, form or "text", unit))
        wrote(output, quiet=quiet)
    note(_notes(given, reports, skipped), quiet=quiet)
    return any(report.deadlocked for report in reports)


def _cases(asked: Asked) -> tuple[list[Case], list[str]]:
    """A case for each machine, m, dispatch and seed; tiles and split-K compete within a case."""
    cases: list[Case] = []
    skipped: list[str] = []
    axes = asked.axes
    for setting, m in itertools.product(axes.machines, axes.ms):
        subjects = asked.subjects_of(setting, m)
        found = [contenders_of(subject, asked.typed) for subject in subjects]
        skipped += _reasons(found)
        contenders = tuple(contender for part in found for contender in part.contenders)
        machine = setting.apply(subjects[0].overrides)
        rest = itertools.product(axes.dispatches, axes.seeds)
        cases += [Case(contenders, machine, dispatch, seed, subjects[0].source) for dispatch, seed in rest]
    return cases, list(dict.fromkeys(skipped))


def _reasons(found: Sequence[Combinations]) -> Iterator[str]:
    for part in found:
        for words, error in part.skipped:
            # Kernels that refuse for the same reason say it once.
            yield f"left out {words}: {'; '.join(dict.fromkeys(problem.why for problem in error.problems))}"


def _run(cases: Sequence[Case], *, best_stream: bool, quiet: bool) -> list[Report]:
    progress = Progress(sum(len(case.contenders) + best_stream for case in cases), quiet=quiet)

    def counted(program: Any, machine: Any, plan: Any, **how: Any) -> Outcome:
        progress.step(f"{program.name} {plan.label or plan.launch}")
        return predict(program, machine, plan, **how)

    try:
        return [_compared(case, counted, best_stream=best_stream) for case in cases]
    finally:
        progress.close()


def _compared(case: Case, counted: Any, *, best_stream: bool) -> Report:
    how: Mapping[str, Any] = {"dispatch": case.dispatch, "seed": case.seed, "best_stream": best_stream}
    with blaming(case.contenders[0].program.name, case.source):
        return compare(case.contenders, case.machine, predict=counted, **how)


def _tiles_note(report: Report) -> Iterator[str]:
    """The options that give policies the tiles of the strongest stream order, where the workload takes them."""
    rival, reference = strongest_row(report.rows), reference_row(report.rows)
    if rival is None or reference is None or report.program.name not in MLPS:
        return
    if (rival.tile, rival.split_k) != (reference.tile, reference.split_k):
        yield f"policies at the tiles of {STREAM_BEST}: {tile_options(rival)}"


def _notes(given: Mapping[str, Any], reports: Sequence[Report], skipped: Sequence[str]) -> Iterator[str]:
    if not given["machine"]:
        yield f"machine {DEFAULT_MACHINE}, since --machine names none"
    shown = skipped[:_MOST_SKIPPED]
    yield from shown
    if more := len(skipped) - len(shown):
        yield f"left out {more} more {'combination that is' if more == 1 else 'combinations that are'} not legal"
    yield from dict.fromkeys(text for report in reports for text in report.notes)
    if len(reports) == 1:
        yield from wave_notes(reports[0])
        yield from _tiles_note(reports[0])
