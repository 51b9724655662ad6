"""Which columns a table of rows has: the design's, and one more for each thing that was swept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cusim.report.result import CAN_DEADLOCK, DEADLOCKS, IF_ARRIVAL, SAFE, Report, Row
from cusim.report.shape import option_form
from cusim.report.table import UNNAMED, Strip

#: Nanoseconds in one display unit, and the decimals that are worth printing.
TIME_UNITS = {"ns": (1, 0), "us": (1_000, 1), "ms": (1_000_000, 3)}
#: The deadlock verdicts as a table says them; JSON and CSV have the full words.
SHORT = {SAFE: "safe", IF_ARRIVAL: "if arrival order", CAN_DEADLOCK: "can deadlock", DEADLOCKS: "deadlocks"}
_DID_NOT = "can deadlock (did not here)"
Cell: TypeAlias = Callable[[Report, Row], str]


@dataclass(frozen=True, slots=True)
class Column:
    """A heading with its unit, how a cell reads, and whether it is a number; *shed* as in :class:`Strip`."""

    title: str
    cell: Cell
    number: bool = False
    shed: int = 0

    def strip(self, reports: Sequence[Report]) -> Strip:
        """The column of all rows of the reports."""
        cells = tuple(self.cell(report, row) for report in reports for row in report.rows)
        return Strip(self.title, cells, self.number, self.shed)


def axis_columns(reports: Sequence[Report]) -> list[Column]:
    """Columns for what differs between the reports or between rows: m, machine, what-if, tile, split-K ..."""
    axes = [
        *case_columns(reports),
        Column("tile", lambda report, row: option_form(row.tile)),
        Column("split-K", lambda report, row: option_form(row.split_k)),
    ]
    # The strongest stream order always has its own; a footnote has them.
    return [axis for axis in axes if len({axis.cell(p, r) for p in reports for r in p.rows if not r.strongest}) > 1]


def case_columns(reports: Sequence[Report]) -> list[Column]:
    """Columns for what sets the reports of a sweep apart; none for a single report."""
    axes = [
        Column("machine", lambda report, row: report.machine.name),
        Column("set", lambda report, row: " ".join(report.machine.overrides) or "-"),
        Column("m", lambda report, row: "-" if row.m is None else str(row.m), number=True),
        Column("dispatch", lambda report, row: report.dispatch),
        Column("seed", lambda report, row: str(report.seed), number=True),
    ]
    return [axis for axis in axes if len({axis.cell(report, report.rows[0]) for report in reports}) > 1]


def plan_columns(time_unit: str) -> list[Column]:
    """The columns of every table of policies; those that follow from others go first where there is no room."""
    scale, decimals = TIME_UNITS[time_unit]
    return [
        Column("policy", lambda report, row: row.policy),
        Column("order", _order),
        Column("flags", lambda report, row: row.flags),
        Column("launch", lambda report, row: row.launch),
        Column(f"time {time_unit}", lambda report, row: time_text(row.total_ns, scale, decimals), number=True),
        Column("vs stream", lambda report, row: _number(row.speedup_vs_stream, "{:.3f}x"), number=True),
        Column(
            "vs best", lambda report, row: _number(row.speedup_vs_best_stream, "{:.3f}x"), number=True, shed=UNNAMED
        ),
        Column("rounds", lambda report, row: _number(row.rounds, "{:d}"), number=True, shed=1),
        Column("working %", lambda report, row: _number(row.working_pct, "{:.1f}"), number=True, shed=2),
        Column("waiting %", lambda report, row: _number(row.waiting_pct, "{:.1f}"), number=True, shed=3),
        Column("empty %", lambda report, row: _number(row.empty_pct, "{:.1f}"), number=True, shed=4),
        Column("deadlock", deadlock_text),
    ]


def _order(report: Report, row: Row) -> str:
    """The order; of the strongest stream order a footnote says which kernel has which, where they differ."""
    return "by kernel" if row.strongest and " " in row.order else row.order


def deadlock_text(report: Report, row: Row) -> str:
    """The verdict in few words: where blocks come in another order than that of arrival, nothing rests on it."""
    if row.deadlock in (IF_ARRIVAL, CAN_DEADLOCK) and report.dispatch != "arrival":
        return _DID_NOT
    return SHORT.get(row.deadlock, row.deadlock)


def time_text(time_ns: int | None, scale: int, decimals: int) -> str:
    """A time in the display unit; ``-`` where there is none."""
    return "-" if time_ns is None else f"{time_ns / scale:.{decimals}f}"


def _number(value: float | int | None, form: str) -> str:
    return "-" if value is None else form.format(value)
