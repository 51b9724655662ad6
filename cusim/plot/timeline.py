"""The wave timeline: every slot of every SM against time, one box a block, coloured by kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cusim.plot.boxes import Layout, corners, for_ever, lay_out
from cusim.plot.marks import add_legend, draw_rounds, write_title
from cusim.plot.style import FAINT, HATCH, LOSS, TAIL_TINT, house_style, ink_on, kernel_colour, shade, tint
from cusim.trace.metrics import MachineShape, Metrics, metrics, round_ends, tails
from cusim.trace.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH_INCHES = 11.0
_ROW_INCHES, _LEAST_INCHES, _MOST_INCHES = 0.34, 1.4, 8.0
#: Above this many boxes an SVG holds them as one picture: no viewer moves that many paths.
_VECTOR_BOXES = 30_000
_MOST_LABELLED_ROWS = 24
#: How far the axis runs past the end, in parts of the run; after a standstill, blocks are seen to wait for ever.
_MARGIN, _FOR_EVER = 0.005, 0.25
_PS_PER_US = 1e6


def timeline(trace: Trace, shape: MachineShape, *, sm: range | None = None, title: str = "") -> Figure:
    """The wave timeline of *trace*, of all SMs or those in *sm*; the numbers in its title are always of all.

    Boxes are blocks from placement to leave; hatched is waiting, tinted behind the boxes the tail of a
    kernel, dotted lines end rounds. Of a run that deadlocked, a red line marks the standstill, and blocks that wait
    then are hatched from there to the edge. Raises InputError where *shape* or *sm* does not fit the trace.
    """
    summary = metrics(trace, shape)
    layout = lay_out(trace, shape.sms, sm)
    stuck = trace.meta.get("deadlock") is True
    from matplotlib.figure import Figure

    with house_style():
        tall = min(max(layout.rows * _ROW_INCHES, _LEAST_INCHES), _MOST_INCHES)
        fig = Figure(figsize=(_WIDTH_INCHES, tall + 1.25), layout="constrained")
        ax = fig.add_subplot()
        height, line = box_style(72 * tall / layout.rows)
        _set_axes(ax, layout, summary, beyond=_FOR_EVER if stuck else _MARGIN)
        if stuck:
            layout = for_ever(layout, trace, summary.end_ps, ax.get_xlim()[1])
            ax.axvline(summary.end_ps / _PS_PER_US, color=LOSS, lw=1.4, zorder=4)
        draw_tails(ax, trace, layout, height)
        draw_boxes(ax, trace, layout, height, line)
        if layout.rows <= _MOST_LABELLED_ROWS:
            _label_boxes(ax, trace, layout)
        ends = round_ends(trace, shape)
        numbered = draw_rounds(ax, tuple(end for end in ends if end < summary.end_ps) if stuck else ends)
        write_title(ax, trace, summary, title, above=14 if numbered else 4)
        add_legend(fig, trace, rounds=numbered)
        return fig


def _set_axes(ax: Axes, layout: Layout, summary: Metrics, *, beyond: float) -> None:
    from matplotlib.ticker import MaxNLocator

    begin, end = summary.start_ps / _PS_PER_US, max(summary.end_ps, summary.start_ps + 1) / _PS_PER_US
    # A short run-up from the run's start is shown, a long one would only push the waves aside.
    left = 0.0 if begin <= 0.1 * (end - begin) else begin
    ax.set_xlim(left, end + beyond * (end - left))
    ax.set_ylim(layout.rows, 0)
    ax.set_xlabel("time, us")
    ax.set_ylabel("SM" if layout.slots == 1 else f"SM, {layout.slots} slots each")
    ax.spines[["top", "right"]].set_visible(False)
    count = len(layout.sms)
    round_numbers = MaxNLocator(12, integer=True, steps=[1, 2, 4, 5, 8, 10]).tick_values(0, count)
    places = range(count) if count <= 20 else [int(tick) for tick in round_numbers if 0 <= tick < count]
    ax.set_yticks([(place + 0.5) * layout.slots for place in places], [str(layout.sms[place]) for place in places])
    ax.tick_params(axis="y", length=2)
    if layout.slots > 1 and count <= 40:
        for place in range(1, count):
            ax.axhline(place * layout.slots, color=FAINT, lw=0.5, zorder=0.6)


def box_style(row_points: float) -> tuple[float, float]:
    """How much of a row a box fills and how wide its outline is, for rows *row_points* high."""
    height = 0.86 if row_points >= 5 else 1.0
    return height, 0.6 if row_points >= 8 else 0.25 if row_points >= 3 else 0.0


def draw_tails(ax: Axes, trace: Trace, layout: Layout, height: float) -> None:
    """Tints what lies behind the boxes while a kernel drains: what stays in sight is slots fallen empty."""
    from matplotlib.collections import PolyCollection

    for tail in tails(trace):
        colour = tint(kernel_colour(trace.kernels.index(tail.kernel)), TAIL_TINT)
        begin, end = tail.begin_ps / _PS_PER_US, tail.end_ps / _PS_PER_US
        if height == 1.0:
            ax.axvspan(begin, end, color=colour, lw=0, zorder=0.4)
            continue
        bands = np.array([(begin, end, row) for row in range(layout.rows)])
        tinted = PolyCollection(list(corners(bands, height)), facecolors=[colour], linewidths=0, zorder=0.4)
        ax.add_collection(tinted, autolim=False)


def draw_boxes(ax: Axes, trace: Trace, layout: Layout, height: float, line: float) -> None:
    """Draws a box a block, *height* of a row high and outlined *line* points wide, and hatches its waits."""
    from matplotlib.collections import PolyCollection
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    as_picture = len(layout.blocks) > _VECTOR_BOXES
    kernel = trace.tiles["kernel"]
    for number, name in enumerate(trace.kernels):
        colour = kernel_colour(number)
        mine = layout.blocks[kernel[layout.block_rows] == number]
        still = layout.waits[kernel[trace.waits["tile"][layout.wait_rows]] == number]
        if len(mine):
            boxes = PolyCollection(
                list(corners(mine, height)),
                facecolors=colour,
                edgecolors="white",
                linewidths=line,
                label=name,
                zorder=2,
            )
            boxes.set_rasterized(as_picture)
            ax.add_collection(boxes, autolim=False)
        if len(still):
            # One path for all of them: hatching thousands one by one takes seconds.
            hatched = PathPatch(
                Path.make_compound_path_from_polys(corners(still, height)),
                fc=tint(colour, 0.2),
                ec=shade(colour, 0.85),
                lw=0.4 if line else 0.0,
                hatch=HATCH,
                label=f"{name}, waiting",
                zorder=2.2,
            )
            hatched.set_rasterized(as_picture)
            ax.add_artist(hatched)


def _label_boxes(ax: Axes, trace: Trace, layout: Layout) -> None:
    """Writes each tile's coordinates into its box where they fit beside the waits."""
    left, right = ax.get_xlim()
    points = 72 * (_WIDTH_INCHES - 2.6) / (right - left)
    sliced = bool(trace.tiles["z"].any())
    size = 7.5 if layout.rows > 8 else 8.5
    waits: dict[int, list[tuple[float, float]]] = {}
    for (begin, end, _), place in zip(layout.waits, layout.wait_rows, strict=True):
        waits.setdefault(int(trace.waits["tile"][place]), []).append((begin, end))
    for (begin, end, row), place in zip(layout.blocks, layout.block_rows.tolist(), strict=True):
        label = ",".join(str(trace.tiles[name][place]) for name in ("rcz" if sliced else "rc"))
        free = _widest(begin, end, waits.get(place, []))
        if (free[1] - free[0]) * points > 0.66 * size * len(label) + 3:
            colour = kernel_colour(int(trace.tiles["kernel"][place]))
            # Its own plate keeps the line of a round from running through the text.
            plate = {"boxstyle": "square,pad=0.15", "fc": colour, "ec": "none"}
            middle = (free[0] + free[1]) / 2
            ax.text(
                middle, row + 0.5, label, ha="center", va="center_baseline", fontsize=size,
                color=ink_on(colour), bbox=plate, zorder=5,
            )  # fmt: skip


def _widest(begin: float, end: float, waits: list[tuple[float, float]]) -> tuple[float, float]:
    """The longest part of a box in which its block did not wait."""
    edges = [begin, *(edge for wait in sorted(waits) for edge in wait), end]
    return max(zip(edges[::2], edges[1::2], strict=True), key=lambda piece: piece[1] - piece[0])
