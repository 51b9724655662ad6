"""Parts of a report, a heading with a table and lines under it, as aligned text or as markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from cusim.report.line import Line, strip_table
from cusim.report.table import Strip, markdown

#: Columns that go first where a terminal is narrow.
SHED = {"mean": 4, "p95": 3, "orders: mean": 3, "rank 95 %": 2, "± us": 2, "noise": 2, "flags": 1}


class Part(NamedTuple):
    """A heading, a table under it (or none), and lines below."""

    heading: str
    titles: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    numbers: Sequence[bool] = ()
    below: Sequence[str] = ()


def text_of(parts: Iterable[Part], width: int) -> list[Line]:
    """The parts as aligned text of *width* letters, a blank line between them."""
    lines: list[Line] = []
    for part in parts:
        lines.append(Line(part.heading, "head", 4))
        if part.rows:
            lines += strip_table(_strips(part), width)
        lines += [*(Line(text, "", 2) for text in part.below), Line("")]
    return lines[:-1]


def markdown_of(parts: Iterable[Part]) -> list[str]:
    """The parts as lines of markdown."""
    lines: list[str] = []
    for part in parts:
        lines += [f"**{part.heading}**", ""]
        if part.rows:
            lines += [*markdown(part.titles, part.rows, part.numbers), ""]
        if part.below:
            lines += [*(f"- {text}" for text in part.below), ""]
    return lines[:-1]


def cell(value: Any, places: int) -> str:
    """A figure with that many decimals, an interval as ``a to b``, ``-`` for None."""
    if value is None:
        return "-"
    if isinstance(value, list):
        return f"{value[0]:.{places}f} to {value[1]:.{places}f}"
    return f"{value:.{places}f}"


def _strips(part: Part) -> list[Strip]:
    return [
        Strip(title, tuple(row[place] for row in part.rows), number, SHED.get(title, 0))
        for place, (title, number) in enumerate(zip(part.titles, part.numbers, strict=True))
    ]
