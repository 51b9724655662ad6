"""A comparison as people read it: a headline, the kernels, the policies, then the verdict in words."""

from __future__ import annotations

from collections.abc import Sequence

from cusim.machine.machine import Machine
from cusim.report.columns import axis_columns, case_columns, plan_columns
from cusim.report.kernel_table import kernel_strips
from cusim.report.line import WIDTH, Line, prose, strip_table
from cusim.report.result import DEADLOCKS, Report, Row
from cusim.report.shape import dtype_of, m_of
from cusim.report.summary import case_text, footnotes, summary_strips, summary_words
from cusim.report.table import Strip, cells_of, markdown, useful
from cusim.report.why import why_strips, why_words

__all__ = ["Line", "headlines", "machine_text", "markdown_lines", "text_lines", "verdicts"]

#: More values of M than this are shown by their ends.
_MOST_SIZES = 8
_NOT_CALIBRATED = {"preset": "preset, not calibrated", "anchored": "anchored to one kernel, not calibrated"}


def text_lines(reports: Sequence[Report], time_unit: str = "us", width: int = WIDTH) -> list[Line]:
    """The whole answer, line by line; a terminal may colour a line by its role.

    Tables leave out what says nothing, and columns that follow from others where they are wider than *width*.
    """
    rows = [row for report in reports for row in report.rows]
    policies = strip_table(_policy_strips(reports, time_unit), width)
    marked = [line._replace(role=_role(row)) for line, row in zip(policies[1:], rows, strict=False)]
    blank = Line("")
    lines = [Line(line, "head", 4) for line in headlines(reports)]
    lines += [blank, *strip_table(kernel_strips(reports), width)]
    lines += [blank, policies[0], *marked, *policies[1 + len(rows) :]]
    if notes := footnotes(reports):
        lines += [blank, *(prose(text) for text in notes)]
    for why in (report.why for report in reports if report.why is not None):
        lines += [blank, *strip_table(why_strips(why, time_unit), width)]
        lines += [blank, *(prose(text) for text in why_words(why))]
    if len(reports) > 1:
        lines += [blank, *strip_table(summary_strips(reports, time_unit), width)]
    words = [prose(line, "verdict") for line in _words(reports)]
    return [*lines, *([blank, *words] if words else [])]


def markdown_lines(reports: Sequence[Report], time_unit: str = "us") -> list[str]:
    """The same answer as markdown, with every column that says anything."""
    lines = [f"**{line}**" for line in headlines(reports)]
    tables = [kernel_strips(reports), useful(_policy_strips(reports, time_unit))]
    tables += [summary_strips(reports, time_unit)] if len(reports) > 1 else []
    whys = [report.why for report in reports if report.why is not None]
    for strips in (*tables, *(why_strips(why, time_unit) for why in whys)):
        lines += ["", *markdown(*cells_of(strips))]
    words = (*footnotes(reports), *(text for why in whys for text in why_words(why)), *_words(reports))
    return [*lines, "", *[f"- {line}" for line in words]]


def headlines(reports: Sequence[Report]) -> list[str]:
    """Program, sizes and machine, and how blocks were dispatched; one line for each machine of a sweep.

    What a column of the table says is not said here: settings, dispatch and seeds that are swept.
    """
    program = reports[0].program
    sizes = sorted({m for report in reports if (m := m_of(report.program)) is not None})
    words = [program.name]
    words += [f"m={_sizes_text(sizes)}"] if sizes else []
    words += [dtype] if (dtype := dtype_of(program)) else []
    what = "  ".join(words)
    settings = len({report.machine.overrides for report in reports}) == 1
    machines = dict.fromkeys(machine_text(report.machine, what_if=settings) for report in reports)
    return [f"{what}   on {machine}{_dispatch_text(reports)}" for machine in machines]


def _sizes_text(sizes: Sequence[int]) -> str:
    if len(sizes) <= _MOST_SIZES:
        return ",".join(map(str, sizes))
    return f"{sizes[0]}..{sizes[-1]} ({len(sizes)} values)"


def machine_text(machine: Machine, *, what_if: bool = True) -> str:
    """``H200, 132 SMs   (preset, not calibrated: times ±15 %)``, and the settings in force unless *what_if* is off."""
    state = _NOT_CALIBRATED.get(machine.state, machine.state)
    settings = f"   with {' '.join(machine.overrides)}" if machine.overrides and what_if else ""
    return f"{machine.gpu}, {machine.limits.sms} SMs   ({state}: times ±{machine.band_pct:g} %){settings}"


def _dispatch_text(reports: Sequence[Report]) -> str:
    """How blocks were dispatched where that is not by arrival, and the seed where it matters; what all share."""
    dispatches, seeds = {report.dispatch for report in reports}, {report.seed for report in reports}
    words = [f"dispatch {dispatch}" for dispatch in dispatches - {"arrival"} if len(dispatches) == 1]
    words += [f"seed {seed}" for seed in seeds if len(seeds) == 1 and (seed or dispatches != {"arrival"})]
    return f"   {', '.join(words)}" if words else ""


def verdicts(reports: Sequence[Report]) -> list[str]:
    """The verdict of each report, led by its case where there are several; then what they rest on, once."""
    caveats = list(dict.fromkeys(text for report in reports for text in report.caveats))
    if len(reports) == 1:
        return [*reports[0].verdict, *caveats]
    axes = case_columns(reports)
    return [*(f"{case_text(report, axes)}: {line}" for report in reports for line in report.verdict), *caveats]


def _words(reports: Sequence[Report]) -> list[str]:
    """The sentences under the tables: of a sweep only those that its summary has no room for."""
    return verdicts(reports) if len(reports) == 1 else list(summary_words(reports))


def _policy_strips(reports: Sequence[Report], time_unit: str) -> list[Strip]:
    return [column.strip(reports) for column in (*axis_columns(reports), *plan_columns(time_unit))]


def _role(row: Row) -> str:
    if row.deadlock == DEADLOCKS:
        return "bad"
    return "good" if row.recommended else ""
