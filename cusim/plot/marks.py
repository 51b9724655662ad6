"""What surrounds the boxes of a timeline: ends of rounds, title and legend."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from cusim.plot.badge import badged_legend
from cusim.plot.style import FAINT, HATCH, INK, LOSS, PALETTE, TAIL_TINT, kernel_colour, micros, tint
from cusim.trace.metrics import Metrics
from cusim.trace.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_ROUNDS = 40
_TITLE_LETTERS = 84
_PS_PER_US = 1e6
#: How the end of a round is drawn.
DOTTED = (0, (1, 1.5))


def draw_rounds(ax: Axes, ends_ps: tuple[int, ...]) -> int:
    """Marks and numbers the ends of rounds; returns how many, none where they would blacken the picture."""
    if len(ends_ps) > _MOST_ROUNDS:
        return 0
    left, right = ax.get_xlim()
    together: list[list[tuple[int, float]]] = []
    for number, end_ps in enumerate(ends_ps, start=1):
        x = end_ps / _PS_PER_US
        ax.axvline(x, color=INK, lw=1.0, ls=DOTTED, zorder=4)
        # Numbers that would touch become one.
        if together and x - together[-1][-1][1] < 0.024 * (right - left):
            together[-1].append((number, x))
        else:
            together.append([(number, x)])
    for group in together:
        (first, begin), (last, end) = group[0], group[-1]
        ax.annotate(
            str(first) if first == last else f"{first}\N{EN DASH}{last}", ((begin + end) / 2, 1), (0, 2),
            xycoords=("data", "axes fraction"), textcoords="offset points", ha="center", va="bottom",
            fontsize=8,
        )  # fmt: skip
    return len(ends_ps)


def write_title(ax: Axes, trace: Trace, summary: Metrics, title: str, above: int) -> None:
    """Writes *title* and, under it, times and shares of the whole trace, *above* points over the axes."""
    total_ns = trace.meta.get("total_ns")
    length = f"total {micros(total_ns * 1000)}   " if isinstance(total_ns, int) else ""
    length += f"span {micros(summary.span_ps)}"
    if trace.meta.get("deadlock") is True:
        length = f"never ends: stands still from {micros(summary.end_ps)} on"
    facts = (
        f"{length}   working {summary.working_pct:.1f} %   waiting {summary.waiting_pct:.1f} %   "
        f"empty {summary.empty_pct:.1f} %"
    )
    if not len(trace.waits["tile"]) and trace.tiles["wait_total"].any():
        facts += "   (when blocks waited was not recorded)"
    styles: tuple[tuple[str, int, dict[str, Any]], ...] = (
        (facts, 0, {}),
        (textwrap.fill(title, _TITLE_LETTERS), 15, {"weight": "bold", "fontsize": 11}),
    )
    for text, lift, style in styles:
        ax.annotate(
            text, (0, 1), (0, above + lift), xycoords="axes fraction", textcoords="offset points",
            ha="left", va="bottom", **style,
        )  # fmt: skip


def add_legend(fig: Figure, trace: Trace, rounds: int) -> None:
    """Adds the legend of kernels and signs, under the badge of the trace's kind; *rounds* says how many are marked."""
    from matplotlib.artist import Artist
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    names = trace.kernels[: len(PALETTE)]
    handles: list[Artist] = [Patch(fc=kernel_colour(place), label=name) for place, name in enumerate(names)]
    if len(trace.kernels) > len(names):
        more = len(trace.kernels) - len(names)
        handles.append(Patch(fc="none", ec="none", label=f"and {more} more, colours repeat"))
    if len(trace.waits["tile"]):
        handles.append(Patch(fc="white", ec=FAINT, hatch=HATCH, label="waiting"))
    pale = tint(kernel_colour(0), TAIL_TINT)
    handles.append(Patch(fc=pale, label="pale: its tail, no block\nleft to place"))
    if trace.meta.get("deadlock") is True:
        handles.append(Line2D([], [], color=LOSS, lw=1.4, label="nothing moves any more"))
    if rounds:
        handles.append(Line2D([], [], color=INK, lw=1.0, ls=DOTTED, label="end of a round"))
    badged_legend(fig, handles, str(trace.meta.get("kind", "unlabelled")), stuck=trace.meta.get("deadlock") is True)
