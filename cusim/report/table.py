"""Aligned text and markdown tables from cells; no colour, no dependency."""

from __future__ import annotations

from collections.abc import Sequence

_GAP = "  "


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
