"""The work of ``cusim plot PREDICTED --against MEASURED``: two traces of one run above each other."""

from __future__ import annotations

from pathlib import Path

from cli.output import check_place, note
from cli.subject import blaming
from cusim.errors import Problems
from cusim.plot.overlay import overlay
from cusim.plot.save import save_figure
from cusim.report.trace import shape_in
from cusim.trace.formats import read_trace
from cusim.trace.trace import Trace

PICTURES = (".png", ".svg")


def draw_overlay(
    predicted: Path,
    measured: Path,
    *,
    output: Path | None,
    kind: str | None,
    sm: str | None,
    title: str | None,
    quiet: bool,
) -> str:
    """Draws the two traces and returns the path of the picture; InputError for what cannot be compared."""
    target = output or predicted.with_name(f"{predicted.stem}-against-{measured.stem}.png")
    check_place(target, PICTURES)
    _check_options(kind, sm)
    traces = read_trace(predicted), read_trace(measured)
    _check_kinds(traces, (predicted, measured))
    shape, guessed = shape_in(traces[0], str(predicted))
    if guessed:
        note([f"{predicted} does not say {', '.join(guessed)}"], quiet=quiet)
    words = [str(traces[0].meta[key]) for key in ("program", "plan", "machine") if traces[0].meta.get(key)]
    with blaming("predicted against measured", f"{predicted} against {measured}"):
        figure = overlay(*traces, shape, title="   ".join(words) if title is None else title)
    save_figure(figure, target)
    return str(target)


def _check_options(kind: str | None, sm: str | None) -> None:
    problems = Problems("the command line")
    if kind is not None:
        problems.add("--kind", kind, "goes with no --against: two traces have one kind of picture")
    if sm is not None:
        problems.add("--sm", sm, "goes with no --against: all SMs are compared")
    problems.raise_if_any()


def _check_kinds(traces: tuple[Trace, Trace], paths: tuple[Path, Path]) -> None:
    """The first must be predicted and the second measured: errors have a sign."""
    problems = Problems("the command line")
    for trace, path, wanted, place in zip(
        traces, paths, ("predicted", "measured"), ("TRACE", "--against"), strict=True
    ):
        if trace.meta.get("kind") != wanted:
            problems.add(place, str(path), f"must be a {wanted} trace; it says {trace.meta.get('kind', 'nothing')}")
    problems.raise_if_any()
