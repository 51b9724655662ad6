"""The work of ``cusim plot``: which picture an input allows, and the file that takes it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from cli.output import check_place, note
from cli.plans import STREAM
from cli.subject import blaming
from cusim.errors import Problems, did_you_mean, refuse
from cusim.report.read import SavedReport, SavedRow, read_report
from cusim.report.shape import option_form
from cusim.report.trace import shape_in

if TYPE_CHECKING:
    from cusim.plot.bars import BarRow

Case: TypeAlias = tuple[tuple[str, str], ...]

PICTURES = (".png", ".svg")
_TRACES = (".npz", ".csv")
_SPAN = re.compile(r"(\d+):(\d+)")


def draw(source: Path, *, output: Path | None, kind: str | None, sm: str | None, title: str | None, quiet: bool) -> str:
    """Draws *source* and returns the path of the picture; InputError for what cannot be drawn so."""
    suffix = source.suffix.lower()
    if suffix not in (*_TRACES, ".json"):
        raise refuse(str(source), "suffix", source.suffix, did_you_mean(suffix, (*_TRACES, ".json")))
    target = output or source.with_suffix(".png")
    check_place(target, PICTURES)
    if suffix == ".json":
        with blaming("bars", str(source)), blaming("lines", str(source)):
            _report(source, target, kind, sm, title)
    else:
        _timeline(source, target, kind or "timeline", _sm_range(sm), title, quiet=quiet)
    return str(target)


def _timeline(source: Path, target: Path, kind: str, sm: range | None, title: str | None, *, quiet: bool) -> None:
    from cusim.plot.save import save_figure
    from cusim.plot.timeline import timeline
    from cusim.trace.formats import read_trace

    if kind != "timeline":
        raise refuse("the command line", "--kind", kind, "a trace has one kind of picture: timeline")
    trace = read_trace(source)
    shape, guessed = shape_in(trace, str(source))
    if guessed:
        note([f"{source} does not say {', '.join(guessed)}"], quiet=quiet)
    words = [str(trace.meta[key]) for key in ("program", "plan", "machine") if trace.meta.get(key)]
    heading = "   ".join(words) if title is None else title
    save_figure(timeline(trace, shape, sm=sm, title=heading), target)


def _sm_range(text: str | None) -> range | None:
    if text is None:
        return None
    match = _SPAN.fullmatch(text.strip())
    if match is None or int(match[1]) >= int(match[2]):
        raise refuse("the command line", "--sm", text, "allowed: A:B with A < B, the SMs A to B - 1, such as 0:16")
    return range(int(match[1]), int(match[2]))


def _report(source: Path, target: Path, kind: str | None, sm: str | None, title: str | None) -> None:
    """Bars; lines where the report sweeps nothing but m."""
    report = read_report(source)
    problems = Problems("the command line")
    if sm is not None:
        problems.add("--sm", sm, "only a timeline has SMs")
    if kind not in ("time", "gain", None):
        problems.add("--kind", kind, "a report is drawn as time or gain")
    cases = list(dict.fromkeys(row.case for row in report.rows))
    sizes = [dict(case)["m"] for case in cases]
    over_m = len(cases) > 1 and len({_without_m(case) for case in cases}) == 1 and all(map(str.isdigit, sizes))
    if kind == "gain" and len(cases) > 1 and not over_m:
        problems.add("--kind", kind, f"{source} holds {len(cases)} cases with a reference each; predict one alone")
    problems.raise_if_any()
    heading = f"{report.program} on {report.machine}{_common(cases)}" if title is None else title
    (_lines if over_m else _bars)(report, cases, kind, heading, target)


def _lines(report: SavedReport, cases: Sequence[Case], kind: str | None, heading: str, target: Path) -> None:
    from cusim.plot.lines import SweepLine, sweep_lines
    from cusim.plot.save import save_figure

    found: dict[str, list[SavedRow]] = {}
    for row in sorted(report.rows, key=lambda row: int(dict(row.case)["m"])):
        found.setdefault(_line_label(row, report), []).append(row)
    lines = [
        SweepLine(
            label,
            tuple(int(dict(row.case)["m"]) for row in rows),
            tuple(None if row.deadlock else row.total_ns for row in rows),
            rows[0].policy == STREAM,
            rows[0].strongest,
        )
        for label, rows in found.items()
    ]
    panels = ("time", "gain") if kind is None else (kind,)
    measures = cast(tuple[Literal["time", "gain"], ...], panels)
    save_figure(sweep_lines(lines, measures=measures, band_pct=report.band_pct, title=heading), target)


def _bars(report: SavedReport, cases: Sequence[Case], kind: str | None, heading: str, target: Path) -> None:
    from cusim.plot.bars import policy_bars
    from cusim.plot.save import save_figure

    labels = [_label(row, report, cases) for row in report.rows]
    rows = [_bar(label, row) for label, row in zip(labels, report.rows, strict=True)]
    reference = next(
        (label for label, row in zip(labels, report.rows, strict=True) if row.reference and len(cases) == 1),
        "stream",
    )
    measure = cast(Literal["time", "gain"], kind or "time")
    figure = policy_bars(rows, measure=measure, reference=reference, band_pct=report.band_pct, title=heading)
    save_figure(figure, target)


def _bar(label: str, row: SavedRow) -> BarRow:
    from cusim.plot.bars import BarRow

    return BarRow(label, row.total_ns, *row.shares, recommended=row.recommended, deadlock=row.deadlock)


def _label(row: SavedRow, report: SavedReport, cases: Sequence[Case]) -> str:
    """The policy, then every other word that is not the same in all rows, tiles and splits as options take them.

    Orders, flags and launches are compared among stream rows and among the others: they differ between the two anyway.
    The strongest stream order has its own, which set no other row apart.
    """
    words = [row.policy]
    plain = [other for other in report.rows if not other.strongest]
    alike = [other for other in plain if (other.policy == STREAM) == (row.policy == STREAM)]
    for field in ("order", "flags", "launch"):
        word = getattr(row, field)
        differs = len({getattr(other, field) for other in alike}) > 1 and not row.strongest
        words += [word] if word != "-" and differs else []
    for field, word in (("tile", "tile"), ("split_k", "split")):
        mine = [other for other in plain if other.case == row.case]
        differs = row.strongest or len({getattr(other, field) for other in mine}) > 1
        words += [f"{word} {option_form(getattr(row, field))}"] if differs else []
    for place, (axis, value) in enumerate(row.case):
        if len({case[place] for case in cases}) > 1:
            words.append(value if axis in ("machine", "set") else f"{axis}={value}")
    return "  ".join([words[0], " ".join(words[1:])]).rstrip()


def _line_label(row: SavedRow, report: SavedReport) -> str:
    """The policy, then what sets it apart from other rows of the policy at the same m; defaults may change with m."""
    words = [row.policy]
    if row.strongest:
        return row.policy  # its tile and order change with m
    for field, name in (("order", ""), ("flags", "flags "), ("launch", ""), ("tile", "tile "), ("split_k", "split ")):
        seen: dict[Case, set[str]] = {}
        for other in report.rows:
            if other.policy == row.policy:
                seen.setdefault(other.case, set()).add(getattr(other, field))
        if any(len(values) > 1 for values in seen.values()):
            words.append(name + option_form(getattr(row, field)) if name else getattr(row, field))
    return "  ".join([words[0], " ".join(words[1:])]).rstrip()


def _without_m(case: Case) -> Case:
    return tuple((axis, value) for axis, value in case if axis != "m")


def _common(cases: Sequence[Case]) -> str:
    """What all cases share and is not plain: m, what-if settings, another dispatch than arrival."""
    words = []
    for (axis, value), *others in zip(*cases, strict=True):
        plain = value in ("-", "None", "arrival") or axis in ("machine", "seed")
        if not plain and all(other == (axis, value) for other in others):
            words.append({"set": f"with {value}", "dispatch": f"{value} dispatch"}.get(axis, f"{axis}={value}"))
    return "".join(f", {word}" for word in words)
