"""A sweep over the size: one line a policy, its time above and its gain over stream order below."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cusim.errors import Problems
from cusim.plot.badge import badged_legend
from cusim.plot.style import EMPTY, FAINT, INK, LOSS, PALETTE, house_style

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH_INCHES, _PANEL_INCHES = 10.0, 2.9
_TITLE_LETTERS = 84
_MARKERS = "osD^vPX*"


@dataclass(frozen=True, slots=True)
class SweepLine:
    """One policy over the sweep: *total_ns* at each *x* where it ran; None where it deadlocks. *reference*: a stream
    order, from whose fastest at each x gains are counted; *rival*: a stronger stream order, drawn apart from policies.
    """

    label: str
    x: tuple[int, ...]
    total_ns: tuple[int | None, ...]
    reference: bool = False
    rival: bool = False


def sweep_lines(
    lines: Sequence[SweepLine],
    *,
    axis: str = "m",
    measures: Sequence[Literal["time", "gain"]] = ("time", "gain"),
    band_pct: float = 0.0,
    kind: Literal["predicted", "measured"] = "predicted",
    title: str = "",
) -> Figure:
    """*lines* over *axis*, a panel for each of *measures*; a gain within *band_pct* is a tie, and its band is shaded.

    Raises InputError for no lines, for lines of another length than their x, and for gains without a reference.
    """
    _check(lines, measures)
    from matplotlib.figure import Figure

    with house_style():
        tall = _PANEL_INCHES * len(measures) + 0.7
        fig = Figure(figsize=(_WIDTH_INCHES, tall), layout="constrained")
        panels: list[Axes] = fig.subplots(len(measures), 1, sharex=True, squeeze=False)[:, 0].tolist()
        for ax, measure in zip(panels, measures, strict=True):
            (_draw_times if measure == "time" else _draw_gains)(ax, lines, band_pct)
            _dress(ax)
        panels[-1].set_xlabel(axis)
        _set_ticks(panels[-1], sorted({x for line in lines for x in line.x}))
        if title:
            panels[0].set_title(textwrap.fill(title, _TITLE_LETTERS), loc="left", weight="bold", fontsize=11)
        badged_legend(fig, _handles(panels), kind)
        return fig


def _check(lines: Sequence[SweepLine], measures: Sequence[str]) -> None:
    problems = Problems("lines")
    if not lines:
        problems.add("lines", None, "must hold at least one")
    for line in lines:
        if len(line.x) != len(line.total_ns) or not line.x:
            problems.add(line.label, None, "must have a time, or None, for each of one or more x")
    if "gain" in measures and not any(line.reference for line in lines):
        problems.add("reference", None, "a gain needs a line of stream order")
    problems.raise_if_any()


def _draw_times(ax: Axes, lines: Sequence[SweepLine], band_pct: float) -> None:
    for number, line in enumerate(lines):
        _draw(ax, number, line, [None if t is None else t / 1e3 for t in line.total_ns])
    ax.set_ylim(bottom=0)
    ax.set_ylabel("time, us" + (f"  (±{band_pct:g} %)" if band_pct else ""))


def _draw_gains(ax: Axes, lines: Sequence[SweepLine], band_pct: float) -> None:
    best = _best_stream(lines)
    if band_pct:
        ax.axhspan(-band_pct, band_pct, color=EMPTY, lw=0, zorder=0, label=f"tie: within ±{band_pct:g} %")
    ax.axhline(0, color=INK, lw=1, ls=(0, (4, 2)), zorder=1)
    for number, line in enumerate(lines):
        if not line.reference:
            pairs = zip(line.x, line.total_ns, strict=True)
            gains = [None if t is None or x not in best else 100 * (1 - t / best[x]) for x, t in pairs]
            _draw(ax, number, line, gains)
    ax.set_ylabel("time saved against\nstream order, %")


def _best_stream(lines: Sequence[SweepLine]) -> dict[int, int]:
    """The fastest stream order at each x."""
    best: dict[int, int] = {}
    for line in lines:
        for x, total in zip(line.x, line.total_ns, strict=True) if line.reference else ():
            if total is not None:
                best[x] = min(total, best.get(x, total))
    return best


def _draw(ax: Axes, number: int, line: SweepLine, values: Sequence[float | None]) -> None:
    """One line; it breaks where the policy deadlocks, and a cross stands there at the bottom."""
    # Smaller marks on top of larger ones: policies that take the same time are all seen.
    colour = FAINT if line.reference else INK if line.rival else PALETTE[number % len(PALETTE)]
    nan = float("nan")
    dashes = "--" if line.reference else ":" if line.rival else "-"
    ax.plot(
        line.x, [nan if value is None else value for value in values], color=colour, lw=1.6,
        ls=dashes, marker=_MARKERS[number % len(_MARKERS)], ms=max(3.5, 8 - number),
        label=line.label, zorder=2 if line.reference else 3,
    )  # fmt: skip
    stuck = [x for x, total in zip(line.x, line.total_ns, strict=True) if total is None]
    if stuck:
        ax.plot(
            stuck, [0.04] * len(stuck), transform=ax.get_xaxis_transform(), color=LOSS, marker="x", ms=7, mew=2,
            ls="", label="deadlock: never ends", zorder=4,
        )  # fmt: skip


def _dress(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color=EMPTY, lw=0.6, zorder=0)
    ax.set_axisbelow(True)


def _set_ticks(ax: Axes, places: Sequence[int]) -> None:
    """The values that were asked for, as many of them as stand side by side."""
    step = -(-len(places) // 12)
    ax.set_xticks(places[::step], [str(place) for place in places[::step]])


def _handles(panels: Sequence[Axes]) -> list[Artist]:
    found: dict[str, Artist] = {}
    for ax in panels:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            found.setdefault(str(label), handle)
    return sorted(found.values(), key=lambda handle: str(handle.get_label()).startswith(("tie", "deadlock")))
