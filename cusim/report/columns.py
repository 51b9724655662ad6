"""Which columns a table of rows has: the design's, and one more for each thing that was swept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cusim.report.result import Report, Row

#: Nanoseconds in one display unit, and the decimals that are worth printing.
TIME_UNITS = {"ns": (1, 0), "us": (1_000, 1), "ms": (1_000_000, 3)}
Cell: TypeAlias = Callable[[Report, Row], str]


@dataclass(frozen=True, slots=True)
class Column:
    """A heading with its unit, how a cell reads, and whether it is a number (set to the right)."""

    title: str
    cell: Cell
    number: bool = False


def axis_columns(reports: Sequence[Report]) -> list[Column]:
    """Columns for what differs between the reports or between rows: m, machine, what-if, tile, split-K ..."""
    axes = [
        Column("machine", lambda report, row: report.machine.name),
        Column("set", lambda report, row: " ".join(report.machine.overrides) or "-"),
        Column("m", lambda report, row: "-" if row.m is None else str(row.m), number=True),
        Column("tile", lambda report, row: row.tile),
        Column("split-K", lambda report, row: row.split_k),
        Column("dispatch", lambda report, row: report.dispatch),
        Column("seed", lambda report, row: str(report.seed), number=True),
    ]
    return [axis for axis in axes if len({axis.cell(p, r) for p in reports for r in p.rows}) > 1]


def plan_columns(time_unit: str) -> list[Column]:
    """The columns of every table of policies."""
    scale, decimals = TIME_UNITS[time_unit]
    return [
        Column("policy", lambda report, row: row.policy),
        Column("order", lambda report, row: row.order),
        Column("flags", lambda report, row: row.flags),
        Column("launch", lambda report, row: row.launch),
        Column(f"time {time_unit}", lambda report, row: time_text(row.total_ns, scale, decimals), number=True),
        Column("vs stream", lambda report, row: _number(row.speedup_vs_stream, "{:.3f}x"), number=True),
        Column("rounds", lambda report, row: _number(row.rounds, "{:d}"), number=True),
        Column("working %", lambda report, row: _number(row.working_pct, "{:.1f}"), number=True),
        Column("waiting %", lambda report, row: _number(row.waiting_pct, "{:.1f}"), number=True),
        Column("empty %", lambda report, row: _number(row.empty_pct, "{:.1f}"), number=True),
        Column("deadlock", lambda report, row: row.deadlock),
    ]


def time_text(time_ns: int | None, scale: int, decimals: int) -> str:
    """A time in the display unit; ``-`` where there is none."""
    return "-" if time_ns is None else f"{time_ns / scale:.{decimals}f}"


def _number(value: float | int | None, form: str) -> str:
    return "-" if value is None else form.format(value)
