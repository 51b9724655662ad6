"""The work of ``cusim validate --timelines``: recorded timelines, and how far predicted blocks are from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from cli.output import Progress
from cusim.machine.machine import Machine
from cusim.report.line import Line
from cusim.validate.parts import markdown_of, text_of
from cusim.validate.timelines import document, judge_timelines
from cusim.validate.timelines_text import timeline_parts


class TimelineForms(NamedTuple):
    """The judged timelines as lines for a width, as lines of markdown and as JSON, each made when it is asked for."""

    text: Callable[[int], Sequence[Line]]
    markdown: Callable[[], Sequence[str]]
    json: Callable[[], str]


def timeline_forms(place: Path, machine: Machine, *, every: bool, quiet: bool) -> TimelineForms:
    """Judges the timelines in the folder *place*, or in that file; *every* adds rounds to tables, tiles to the JSON.

    Raises InputError as :func:`cusim.validate.timelines.judge_timelines` does.
    """
    progress = Progress(len(list(place.glob("*.npz"))) if place.is_dir() else 1, quiet=quiet)
    try:
        judged = judge_timelines(place, machine, progress.step)
    finally:
        progress.close()
    return TimelineForms(
        lambda width: text_of(timeline_parts(judged, machine, every_round=every), width),
        lambda: markdown_of(timeline_parts(judged, machine, every_round=every)),
        lambda: document(judged, machine, every_tile=every),
    )
