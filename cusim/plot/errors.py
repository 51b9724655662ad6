"""How far predictions are off: predicted over measured against the measured time, one dot a recorded row."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cusim.errors import Problems
from cusim.plot.badge import badged_legend
from cusim.plot.style import EMPTY, FAINT, INK, PALETTE, house_style, shade

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIZE_INCHES = (10.0, 4.6)
_TITLE_LETTERS = 84
_MARKERS = "osD^vPX*"
#: How far the axis of ratios reaches on either side of 1 at least.
_LEAST_REACH = 0.05
#: Where a decade of the time axis has ticks.
_TICKS = (1, 2, 5)
KIND = "predicted over measured"


@dataclass(frozen=True, slots=True)
class ErrorPoint:
    """One measured time, in ns, and what was predicted for it; *group* chooses its colour."""

    group: str
    measured_ns: int
    predicted_ns: int

    @property
    def ratio(self) -> float:
        """Predicted over measured: above 1 where the prediction is too slow."""
        return self.predicted_ns / self.measured_ns


def error_scatter(points: Sequence[ErrorPoint], *, band_pct: float = 0.0, title: str = "") -> Figure:
    """*points* in the order of their groups, with the band of *band_pct* either way that the machine promises.

    The legend says for each group how many points it has and the mean size of their errors (MAPE). Raises InputError
    for no points, more groups than colours, and times that are not above 0.
    """
    groups = list(dict.fromkeys(point.group for point in points))
    _check(points, groups)
    from matplotlib.figure import Figure

    with house_style():
        fig = Figure(figsize=_SIZE_INCHES, layout="constrained")
        ax = fig.add_subplot()
        handles: list[Artist] = []
        for place, group in enumerate(groups):
            mine = [point for point in points if point.group == group]
            at, ratio = [point.measured_ns / 1e3 for point in mine], [point.ratio for point in mine]
            colour, marker = PALETTE[place], _MARKERS[place % len(_MARKERS)]
            dots = ax.scatter(
                at, ratio, s=10, lw=0.25, color=colour, edgecolor=shade(colour, 0.7), marker=marker, alpha=0.65,
                label=f"{group}: {len(mine)}, MAPE {_mape(mine):.1f} %", zorder=2,
            )  # fmt: skip
            handles.append(dots)
        _draw_band(ax, band_pct)
        _set_axes(ax, points)
        if title:
            ax.set_title(textwrap.fill(title, _TITLE_LETTERS), loc="left", weight="bold", fontsize=11)
        _write_summary(ax, points, band_pct)
        badged_legend(fig, handles, KIND)
        return fig


def _check(points: Sequence[ErrorPoint], groups: Sequence[str]) -> None:
    problems = Problems("errors")
    if not points:
        problems.add("points", None, "must hold at least one")
    if len(groups) > len(PALETTE):
        problems.add("groups", len(groups), f"at most {len(PALETTE)}, one colour each")
    for place, point in enumerate(points):
        if min(point.measured_ns, point.predicted_ns) <= 0:
            problems.add(f"points[{place}]", f"{point.measured_ns}, {point.predicted_ns}", "times must be above 0 ns")
    problems.raise_if_any()


def _draw_band(ax: Axes, band_pct: float) -> None:
    ax.axhline(1.0, color=INK, lw=0.8, zorder=1)
    if band_pct:
        ax.axhspan(1 - band_pct / 100, 1 + band_pct / 100, color=EMPTY, lw=0, zorder=0)


def _set_axes(ax: Axes, points: Sequence[ErrorPoint]) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(10, subs=_TICKS))
    ax.xaxis.set_major_formatter(ScalarFormatter())
    ax.xaxis.set_minor_formatter(NullFormatter())
    reach = max(_LEAST_REACH, *(abs(point.ratio - 1) for point in points))
    ax.set_ylim(1 - 1.08 * reach, 1 + 1.08 * reach)
    ax.set_xlabel("measured, us")
    ax.set_ylabel("predicted / measured")
    ax.spines[["top", "right"]].set_visible(False)
    for text, y, va in (("predicted too slow", 0.98, "top"), ("predicted too fast", 0.02, "bottom")):
        ax.annotate(text, (0.995, y), xycoords="axes fraction", ha="right", va=va, color=FAINT, fontsize=8)


def _write_summary(ax: Axes, points: Sequence[ErrorPoint], band_pct: float) -> None:
    inside = sum(100 * abs(point.predicted_ns - point.measured_ns) <= band_pct * point.measured_ns for point in points)
    text = f"{len(points)} rows, MAPE {_mape(points):.1f} %"
    text += f"; {inside} of them in the grey band of ±{band_pct:g} %" if band_pct else ""
    ax.annotate(text, (0.005, 0.98), xycoords="axes fraction", ha="left", va="top")


def _mape(points: Sequence[ErrorPoint]) -> float:
    return float(100 * np.mean([abs(point.ratio - 1) for point in points]))
