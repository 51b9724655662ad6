"""A sweep in one table: for each case the best policy, what it gains, and the verdict in a word."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from cusim.report.advice import ARRIVAL_CAVEAT, name_of
from cusim.report.choice import best_row, recommended_row, strongest_row
from cusim.report.columns import TIME_UNITS, Column, case_columns, time_text
from cusim.report.result import DEADLOCKS, IF_ARRIVAL, STREAM_BEST, Report, Row
from cusim.report.table import Strip

_UNLIKE = "unlike"


def summary_strips(reports: Sequence[Report], time_unit: str) -> list[Strip]:
    """One row a case: what sets it apart, the best policy, its gain over the best stream plan, the verdict.

    Where a recommendation is safe only if arrival order holds, a column has its time under launch ``wait-all``.
    """

    def strip(title: str, cell: Callable[[Report], str], number: bool = False) -> Strip:
        return Strip(title, tuple(map(cell, reports)), number)

    cases = [strip(axis.title, _of_first(axis), axis.number) for axis in case_columns(reports)]
    found = [*cases, strip("best policy", _best), strip("gain %", _gain, number=True), strip("verdict", verdict_word)]
    if any(strongest_row(report.rows) is not None for report in reports):
        found.insert(-1, strip(f"on {STREAM_BEST} %", _best_gain, number=True))
    if any(report.held is not None for report in reports):
        scale, decimals = TIME_UNITS[time_unit]

        def held(report: Report) -> str:
            return time_text(report.held.total_ns if report.held else None, scale, decimals)

        found.insert(-1, strip(f"with wait-all {time_unit}", held, number=True))
    return found


def summary_words(reports: Sequence[Report]) -> Iterator[str]:
    """What the table is too small for: deadlocks with their cycle, unlike tiles, and what safety rests on."""
    axes = case_columns(reports)
    for report in reports:
        yield from (f"{case_text(report, axes)}: {line}" for line in report.verdict if line.startswith("Deadlock"))
    unlike: dict[str, list[str]] = {}
    for report in reports:
        if report.unlike:
            unlike.setdefault(report.unlike, []).append(case_text(report, axes))
    if unlike:
        options = "; ".join(f"{option} ({', '.join(cases)})" for option, cases in unlike.items())
        yield (
            f"Where it says {_UNLIKE}, stream order and the policy differ in tile or split-K, so the gain is not the "
            f"policy's doing alone. Like with like: {options}."
        )
    if any(_rests_on_arrival(report) for report in reports):
        yield f"{ARRIVAL_CAVEAT}--launch wait-all does not rely on it."


def case_text(report: Report, axes: Sequence[Column]) -> str:
    """What sets a report apart: ``m=256``."""
    cells = [(axis.title, axis.cell(report, report.rows[0])) for axis in axes]
    return " ".join(cell if title == "set" else f"{title}={cell}" for title, cell in cells)


def verdict_word(report: Report) -> str:
    """``recommended``, ``tie``, ``no gain``, ``loss``, ``no policy is safe`` or ``stream only``, and what to mind."""
    best = best_row(report)
    if best is None:
        stuck = any(row.deadlock == DEADLOCKS for row in report.rows)
        overlapped = any(row.overlapped for row in report.rows)
        return ("no policy is safe, one deadlocks" if stuck else "no policy is safe") if overlapped else "stream only"
    gain, band = best.gain_pct or 0.0, report.machine.band_pct
    word = "recommended" if gain > band else "loss" if gain < -band else "tie" if gain else "no gain"
    if word == "recommended" and recommended_row(report) is None:
        word = f"behind {STREAM_BEST}" if _is_behind(best, band) else f"tie with {STREAM_BEST}"
    words = [word]
    words += [f"behind {STREAM_BEST}"] if _is_behind(best, band) and words[0] in ("tie", "no gain", "loss") else []
    words += ["if arrival order"] if _rests_on_arrival(report) else []
    words += [_UNLIKE] if report.unlike else []
    return ", ".join(words)


def _is_behind(best: Row, band: float) -> bool:
    """True where the strongest stream order is faster beyond the band."""
    return best.best_gain_pct is not None and best.best_gain_pct < -band


def _rests_on_arrival(report: Report) -> bool:
    chosen = recommended_row(report)
    return chosen is not None and chosen.deadlock == IF_ARRIVAL


def _of_first(axis: Column) -> Callable[[Report], str]:
    return lambda report: axis.cell(report, report.rows[0])


def _best(report: Report) -> str:
    best = best_row(report)
    return "-" if best is None else name_of(best)


def _gain(report: Report) -> str:
    best = best_row(report)
    return "-" if best is None or best.gain_pct is None else f"{best.gain_pct:.1f}"


def _best_gain(report: Report) -> str:
    best = best_row(report)
    return "-" if best is None or best.best_gain_pct is None else f"{best.best_gain_pct:.1f}"


def footnotes(reports: Sequence[Report]) -> list[str]:
    """What rows of the tables stand for; in a sweep, under each lead, by case."""
    if len(reports) == 1:
        return [note.text for note in reports[0].footnotes]
    axes = case_columns(reports)
    leads: dict[str, dict[str, list[str]]] = {}
    for report in reports:
        for note in report.footnotes:
            leads.setdefault(note.lead, {}).setdefault(note.detail, []).append(case_text(report, axes))
    found: list[str] = []
    for lead, cases in leads.items():
        found.append(f"{lead}:" if len(cases) > 1 else f"{lead}: {next(iter(cases))}.")
        found += [f"{', '.join(where)}: {detail}" for detail, where in cases.items() if len(cases) > 1]
    return found
