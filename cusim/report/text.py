"""A comparison as people read it: a headline, the kernels, the policies, then the verdict in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cusim.machine.machine import Machine
from cusim.report.columns import Column, axis_columns, plan_columns
from cusim.report.kernels import KernelRow
from cusim.report.result import DEADLOCKS, Report, Row
from cusim.report.shape import dtype_of, grid_text, m_of
from cusim.report.table import aligned, markdown

#: More values of M than this are shown by their ends.
_MOST_SIZES = 8
_NOT_CALIBRATED = {"preset": "preset, not calibrated", "anchored": "anchored to one kernel, not calibrated"}


class Line(NamedTuple):
    """A line of the answer and its role: ``head``, ``title``, ``good``, ``bad``, ``verdict`` or nothing."""

    text: str
    role: str = ""


def text_lines(reports: Sequence[Report], time_unit: str = "us") -> list[Line]:
    """The whole answer, line by line; a terminal may colour a line by its role."""
    heads = [Line(line, "head") for line in headlines(reports)]
    kernels = _titled(aligned(*_kernel_cells(reports)))
    policies = _titled(aligned(*_policy_cells(reports, time_unit)))
    rows = [row for report in reports for row in report.rows]
    marked = [line._replace(role=_role(row)) for line, row in zip(policies[1:], rows, strict=True)]
    words = [Line(line, "verdict") for line in verdicts(reports)]
    blank = Line("")
    return [*heads, blank, *kernels, blank, policies[0], *marked, *([blank] if words else []), *words]


def markdown_lines(reports: Sequence[Report], time_unit: str = "us") -> list[str]:
    """The same answer as markdown."""
    kernels = markdown(*_kernel_cells(reports))
    policies = markdown(*_policy_cells(reports, time_unit))
    heads = [f"**{line}**" for line in headlines(reports)]
    return [*heads, "", *kernels, "", *policies, "", *[f"- {line}" for line in verdicts(reports)]]


def headlines(reports: Sequence[Report]) -> list[str]:
    """Program, sizes and machine; one line for each machine of a sweep."""
    program = reports[0].program
    sizes = sorted({m for report in reports if (m := m_of(report.program)) is not None})
    words = [program.name]
    words += [f"m={_sizes_text(sizes)}"] if sizes else []
    words += [dtype] if (dtype := dtype_of(program)) else []
    what = "  ".join(words)
    machines = list(dict.fromkeys(machine_text(report.machine) for report in reports))
    return [f"{what}   on {machine}" for machine in machines]


def _sizes_text(sizes: Sequence[int]) -> str:
    if len(sizes) <= _MOST_SIZES:
        return ",".join(map(str, sizes))
    return f"{sizes[0]}..{sizes[-1]} ({len(sizes)} values)"


def machine_text(machine: Machine) -> str:
    """``H200, 132 SMs   (preset, not calibrated: times ±15 %)``."""
    state = _NOT_CALIBRATED.get(machine.state, machine.state)
    what_if = f"   with {' '.join(machine.overrides)}" if machine.overrides else ""
    return f"{machine.gpu}, {machine.limits.sms} SMs   ({state}: times ±{machine.band_pct:g} %){what_if}"


def verdicts(reports: Sequence[Report]) -> list[str]:
    """The verdict of each report, led by its case where there are several; then what they rest on, once."""
    caveats = list(dict.fromkeys(text for report in reports for text in report.caveats))
    if len(reports) == 1:
        return [*reports[0].verdict, *caveats]
    axes = [axis for axis in axis_columns(reports) if axis.title not in ("tile", "split-K")]
    return [*(f"{_case(report, axes)}: {line}" for report in reports for line in report.verdict), *caveats]


def _titled(lines: Sequence[str]) -> list[Line]:
    return [Line(line, "" if place else "title") for place, line in enumerate(lines)]


def _role(row: Row) -> str:
    if row.deadlock == DEADLOCKS:
        return "bad"
    return "good" if row.recommended else ""


def _case(report: Report, axes: Sequence[Column]) -> str:
    return " ".join(
        axis.cell(report, report.rows[0])
        if axis.title == "set"
        else f"{axis.title}={axis.cell(report, report.rows[0])}"
        for axis in axes
    )


def _policy_cells(reports: Sequence[Report], time_unit: str) -> tuple[list[str], list[list[str]], list[bool]]:
    columns = [*axis_columns(reports), *plan_columns(time_unit)]
    rows = [[column.cell(report, row) for column in columns] for report in reports for row in report.rows]
    return [column.title for column in columns], rows, [column.number for column in columns]


def _kernel_cells(reports: Sequence[Report]) -> tuple[list[str], list[list[str]], list[bool]]:
    """Cells of the kernel table; SMs and where times come from only if there is something to say."""
    pairs = dict.fromkeys((report.machine.limits.sms, row) for report in reports for row in report.kernels)
    columns = [
        ("SMs", len({sms for sms, _ in pairs}) > 1, True),
        ("kernel", True, False),
        (_sizes_title(reports), True, False),
        ("tile", True, False),
        ("grid r x c", True, True),
        ("tiles", True, True),
        ("blocks/SM", True, False),
        ("waves", True, True),
        ("time from", any(row.cost != "model" for _, row in pairs), False),
    ]
    kept = [place for place, (_, shown, _) in enumerate(columns) if shown]
    widths = _size_widths(reports)
    rows = [[_kernel_line(sms, row, widths)[place] for place in kept] for sms, row in pairs]
    return [columns[place][0] for place in kept], rows, [columns[place][2] for place in kept]


def _kernel_line(sms: int, row: KernelRow, widths: tuple[int, int, int]) -> list[str]:
    grid = grid_text(row.grid)
    room = f"{row.blocks_per_sm} ({row.limited_by})"
    waves = "-" if row.waves is None else f"{row.waves:.2f}"
    return [str(sms), row.name, _sizes(row, widths), row.tile, grid, str(row.tiles), room, waves, row.cost]


def _sizes(row: KernelRow, widths: tuple[int, int, int]) -> str:
    if row.m is None or row.n is None or row.k is None:
        return "-"
    return " x ".join(str(size).rjust(width) for size, width in zip((row.m, row.n, row.k), widths, strict=True))


def _sizes_title(reports: Sequence[Report]) -> str:
    return " x ".join(name.rjust(width) for name, width in zip("MNK", _size_widths(reports), strict=True))


def _size_widths(reports: Sequence[Report]) -> tuple[int, int, int]:
    """Digits of the largest M, N and K, so that the sizes stand under each other."""
    rows = [row for report in reports for row in report.kernels]
    m, n, k = (max((len(str(getattr(row, side))) for row in rows if row.m), default=1) for side in "mnk")
    return m, n, k
