"""Aligned text and markdown tables from cells; no colour, no dependency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_GAP = "  "
#: Strips of this *shed* or more go without a word: what they say is said elsewhere.
UNNAMED = 5


@dataclass(frozen=True, slots=True)
class Strip:
    """A column of a table: heading, cells, whether they are numbers (set to the right).

    Where a table is too wide, the strips of the highest *shed* go first; those of 0 stay.
    """

    title: str
    cells: tuple[str, ...]
    number: bool = False
    shed: int = 0

    @property
    def width(self) -> int:
        """Letters of its widest cell, the heading included."""
        return max(map(len, (self.title, *self.cells)))


def useful(strips: Sequence[Strip]) -> list[Strip]:
    """The strips that say anything: one that holds ``-`` in every row is left out."""
    return [strip for strip in strips if set(strip.cells) != {"-"}]


def fitted(strips: Sequence[Strip], width: int) -> list[Strip]:
    """As many of the strips as stand side by side in *width* letters."""
    kept = list(strips)
    while sum(strip.width for strip in kept) + len(_GAP) * (len(kept) - 1) > width:
        least = max(kept, key=lambda strip: strip.shed)
        if not least.shed:
            break
        kept.remove(least)
    return kept


def cells_of(strips: Sequence[Strip]) -> tuple[list[str], list[list[str]], list[bool]]:
    """Headings, rows and which columns are numbers, as :func:`aligned` and :func:`markdown` take them."""
    rows = [list(row) for row in zip(*(strip.cells for strip in strips), strict=True)]
    return [strip.title for strip in strips], rows, [strip.number for strip in strips]


def aligned(titles: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[bool]) -> list[str]:
    """Lines of a table, titles first, numbers set to the right, without trailing blanks."""
    widths = [max(len(cell) for cell in column) for column in zip(titles, *rows, strict=True)]
    return [_line(row, widths, numbers) for row in (titles, *rows)]


def markdown(titles: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[bool]) -> list[str]:
    """Lines of a markdown table."""
    rule = ["---:" if number else "---" for number in numbers]
    return [f"| {' | '.join(_escaped(cell) for cell in row)} |" for row in (titles, rule, *rows)]


def _line(row: Sequence[str], widths: Sequence[int], numbers: Sequence[bool]) -> str:
    cells = (
        cell.rjust(width) if number else cell.ljust(width)
        for cell, width, number in zip(row, widths, numbers, strict=True)
    )
    return _GAP.join(cells).rstrip()


def _escaped(cell: str) -> str:
    return " ".join(cell.split()).replace("|", "\\|")
