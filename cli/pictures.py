"""The work of ``cusim plot``: which picture an input allows, and the file that takes it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from cli.output import check_place, note
from cusim.errors import Problems, did_you_mean, refuse
from cusim.report.read import SavedReport, SavedRow, read_report
from cusim.report.trace import shape_in

if TYPE_CHECKING:
    from cusim.plot.bars import BarRow

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
        _bars(source, target, kind or "time", sm, title)
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


def _bars(source: Path, target: Path, kind: str, sm: str | None, title: str | None) -> None:
    from cusim.plot.bars import policy_bars
    from cusim.plot.save import save_figure

    report = read_report(source)
    problems = Problems("the command line")
    if sm is not None:
        problems.add("--sm", sm, "only a timeline has SMs")
    if kind not in ("time", "gain"):
        problems.add("--kind", kind, "a report is drawn as time or gain")
    cases = list(dict.fromkeys(row.case for row in report.rows))
    if kind == "gain" and len(cases) > 1:
        problems.add("--kind", kind, f"{source} holds {len(cases)} cases with a reference each; predict one alone")
    problems.raise_if_any()
    labels = [_label(row, report, cases) for row in report.rows]
    rows = [_bar(label, row) for label, row in zip(labels, report.rows, strict=True)]
    reference = next(
        (label for label, row in zip(labels, report.rows, strict=True) if row.reference and len(cases) == 1),
        "stream",
    )
    heading = f"{report.program} on {report.machine}" if title is None else title
    measure = cast(Literal["time", "gain"], kind)
    figure = policy_bars(rows, measure=measure, reference=reference, band_pct=report.band_pct, title=heading)
    save_figure(figure, target)


def _bar(label: str, row: SavedRow) -> BarRow:
    from cusim.plot.bars import BarRow

    return BarRow(label, row.total_ns, *row.shares, recommended=row.recommended, deadlock=row.deadlock)


def _label(row: SavedRow, report: SavedReport, cases: Sequence[tuple[tuple[str, str], ...]]) -> str:
    """The policy, then every other word that is not the same in all rows of an overlapped or stream plan."""
    words = [row.policy]
    for field in ("order", "flags", "launch", "tile", "split_k"):
        others = {
            getattr(other, field) for other in report.rows if (other.launch == "stream") == (row.launch == "stream")
        }
        words += [getattr(row, field)] if len(others) > 1 else []
    for place, (axis, value) in enumerate(row.case):
        if len({case[place] for case in cases}) > 1:
            words.append(f"{axis}={value}")
    return " ".join(words)
