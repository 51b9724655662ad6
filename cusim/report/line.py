"""Lines of an answer: their role, which a terminal may colour, and where they may be folded."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cusim.report.table import UNNAMED, Strip, aligned, cells_of, fitted, useful

#: Columns of an answer that no terminal bounds.
WIDTH = 120


class Line(NamedTuple):
    """A line and its role: ``head``, ``title``, ``good``, ``bad``, ``verdict`` or nothing.

    A line that is too long is folded where *hang* says how far its continuation is set in; None keeps it whole.
    """

    text: str
    role: str = ""
    hang: int | None = None


def prose(text: str, role: str = "") -> Line:
    """A sentence, to be folded at any blank."""
    return Line(text, role, 0)


def table(titles: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[bool]) -> list[Line]:
    """A table whose last column, if it is text, is folded within itself."""
    lines = aligned(titles, rows, numbers)
    hang = None if numbers[-1] else lines[0].rindex(titles[-1]) if titles[-1] else None
    return [Line(lines[0], "title"), *(Line(line, "", hang) for line in lines[1:])]


def strip_table(strips: Sequence[Strip], width: int) -> list[Line]:
    """A table of the strips that say anything and fit in *width* letters; a last line names what found no room."""
    said = useful(strips)
    kept = fitted(said, width)
    gone = ", ".join(strip.title for strip in said if strip not in kept and strip.shed < UNNAMED)
    return [*table(*cells_of(kept)), *([Line(f"(no room for: {gone})", "title")] if gone else [])]


def facts(pairs: Sequence[tuple[str, str]]) -> list[Line]:
    """``name  value`` lines, values under each other."""
    width = max((len(name) for name, _ in pairs), default=0)
    return [Line(f"{name:<{width}}  {value}".rstrip(), "", width + 2) for name, value in pairs]


def fold(lines: Sequence[Line], width: int) -> Iterator[Line]:
    """The lines, those that may be folded in pieces of at most *width* letters (words are never cut)."""
    for line in lines:
        hang = 0 if line.hang is None and line.role == "verdict" else line.hang
        if hang is None or len(line.text) <= width or hang >= width - 20:
            yield line
            continue
        pieces = textwrap.wrap(
            line.text, width, subsequent_indent=" " * hang, break_long_words=False, break_on_hyphens=False,
            replace_whitespace=False,
        )  # fmt: skip
        yield from (line._replace(text=piece) for piece in pieces)
