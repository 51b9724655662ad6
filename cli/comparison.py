"""The work of ``cusim predict``: programs and plans for every case, their comparison, and where it is printed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from cli.inputs import Axes, read_axes
from cli.options import DEFAULT_MACHINE
from cli.output import Progress, answer, check_place, note, write_text, wrote
from cli.plans import Combinations, PlanWords, contenders_of
from cli.subject import Sizes, read_subject
from cusim.engine.predict import predict
from cusim.machine.machine import Machine
from cusim.report.advice import wave_notes
from cusim.report.csv import csv_text
from cusim.report.json import json_text
from cusim.report.rows import Contender, Dispatch, Outcome, Report, compare
from cusim.report.text import markdown_lines, text_lines

#: Forms of the document by the suffix of the file that takes it.
FORMS = {".json": "json", ".csv": "csv", ".md": "md", ".txt": "text"}
_MOST_SKIPPED = 6


@dataclass(frozen=True, slots=True)
class Case:
    """One comparison of a sweep: rows of different cases are never compared with each other."""

    contenders: tuple[Contender, ...]
    machine: Machine
    dispatch: Dispatch
    seed: int


def print_comparison(workload: str, given: Mapping[str, Any]) -> bool:
    """Runs everything that the options ask for and prints it; True when a row deadlocked."""
    form, output, unit, quiet = given["form"], given["output"], given["time_unit"], given["quiet"]
    check_place(output, () if form else tuple(FORMS))
    cases, skipped = _cases(workload, read_axes(given), PlanWords.of(given))
    reports = _run(cases, quiet=quiet)
    if form is None:
        answer(text_lines(reports, unit))
    elif output is None:
        click.echo(rendered(reports, form, unit), nl=False)
    if output is not None:
        write_text(output, rendered(reports, form or FORMS[output.suffix.lower()], unit))
        wrote(output, quiet=quiet)
    note(_notes(given, reports, skipped), quiet=quiet)
    return any(report.deadlocked for report in reports)


def rendered(reports: Sequence[Report], form: str, time_unit: str) -> str:
    """The document in one of :data:`FORMS`, with a final newline."""
    if form == "json":
        return json_text(reports)
    if form == "csv":
        return csv_text(reports)
    if form == "md":
        return "\n".join(markdown_lines(reports, time_unit)) + "\n"
    return "\n".join(line.text for line in text_lines(reports, time_unit)) + "\n"


def _cases(workload: str, axes: Axes, typed: PlanWords) -> tuple[list[Case], list[str]]:
    """A case for each machine, m, dispatch and seed; tiles and split-K compete within a case."""
    cases: list[Case] = []
    skipped: list[str] = []
    for setting, m in itertools.product(axes.machines, axes.ms):
        subjects = [
            read_subject(workload, setting.machine, Sizes(m, tile, split))
            for tile, split in itertools.product(axes.tiles, axes.splits)
        ]
        found = [contenders_of(subject, typed) for subject in subjects]
        skipped += _reasons(found)
        contenders = tuple(contender for part in found for contender in part.contenders)
        machine = setting.apply(subjects[0].overrides)
        rest = itertools.product(axes.dispatches, axes.seeds)
        cases += [Case(contenders, machine, dispatch, seed) for dispatch, seed in rest]
    return cases, list(dict.fromkeys(skipped))


def _reasons(found: Sequence[Combinations]) -> Iterator[str]:
    for part in found:
        for words, error in part.skipped:
            yield f"left out {words}: {'; '.join(problem.why for problem in error.problems)}"


def _run(cases: Sequence[Case], *, quiet: bool) -> list[Report]:
    progress = Progress(sum(len(case.contenders) for case in cases), quiet=quiet)

    def counted(program: Any, machine: Any, plan: Any, **how: Any) -> Outcome:
        progress.step(f"{program.name} {plan.label or plan.launch}")
        return predict(program, machine, plan, **how)

    try:
        return [
            compare(case.contenders, case.machine, dispatch=case.dispatch, seed=case.seed, predict=counted)
            for case in cases
        ]
    finally:
        progress.close()


def _notes(given: Mapping[str, Any], reports: Sequence[Report], skipped: Sequence[str]) -> Iterator[str]:
    if not given["machine"]:
        yield f"machine {DEFAULT_MACHINE}, since --machine names none"
    shown = skipped[:_MOST_SKIPPED]
    yield from shown
    if len(skipped) > len(shown):
        yield f"left out {len(skipped) - len(shown)} more combinations that are not legal"
    yield from dict.fromkeys(text for report in reports for text in report.notes)
    if len(reports) == 1:
        yield from wave_notes(reports[0])
