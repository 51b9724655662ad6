"""What a command line asks for: values of all options and the programs they stand for, every mistake at once."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cli.inputs import Axes, Setting, gather_axes, option_key
from cli.options import DEFAULT_MACHINE
from cli.plans import PlanWords, check_words
from cli.subject import Sizes, Subject, read_subject
from cusim.errors import InputError, Problems

if TYPE_CHECKING:
    from cusim.machine.machine import Machine


@dataclass(frozen=True, slots=True)
class Asked:
    """The axes around the plan, what was typed for it, and the subject of every machine, m, tile and split."""

    axes: Axes
    typed: PlanWords
    subjects: Mapping[tuple[Machine, Sizes], Subject]

    def subjects_of(self, setting: Setting, m: int | None) -> list[Subject]:
        """The subjects that compete with each other on one machine at one m: all tiles with all splits."""
        return [self.subjects[setting.machine, sizes] for sizes in _sizes(self.axes, [m])]


def read_asked(workload: str, given: Mapping[str, Any], problems: Problems) -> Asked:
    """Reads all options and the workload; raises InputError with these mistakes and those already in *problems*.

    The mistakes of a program file are told under its name, unless options are wrong too.
    """
    axes = gather_axes(given, problems)
    typed = PlanWords.of(given)
    subjects, refused = _subjects(workload, axes)
    check_words(next(iter(subjects.values()), None) or _by_itself(workload), typed, problems)
    if refused and not problems.found and all(not error.source.startswith("workload") for error in refused):
        raise refused[0]
    for error in refused:
        for problem in error.problems:
            problems.add(option_key(error.source, problem.key), problem.given, problem.why)
    problems.found[:] = list({(p.key, repr(p.given), p.why): p for p in problems.found}.values())
    problems.raise_if_any()
    return Asked(axes, typed, subjects)


def _subjects(workload: str, axes: Axes) -> tuple[dict[tuple[Machine, Sizes], Subject], list[InputError]]:
    """The subjects that can be read, and why others cannot."""
    found: dict[tuple[Machine, Sizes], Subject] = {}
    refused: list[InputError] = []
    for machine in dict.fromkeys(setting.machine for setting in axes.machines):
        for sizes in _sizes(axes, axes.ms):
            try:
                found[machine, sizes] = read_subject(workload, machine, sizes)
            except InputError as error:
                refused.append(error)
    return found, refused


def _sizes(axes: Axes, ms: Sequence[int | None]) -> list[Sizes]:
    return [Sizes(*values) for values in itertools.product(ms, axes.tiles, axes.splits)]


def _by_itself(workload: str) -> Subject | None:
    """The workload without any option, for the names of its kernels; None where it cannot be read at all."""
    from cusim.machine.load import load_machine

    try:
        return read_subject(workload, load_machine(DEFAULT_MACHINE), Sizes())
    except InputError:
        return None
