"""A prediction above the measurement of the same run, on one time axis, and under both how far tiles are apart."""

from __future__ import annotations

import dataclasses
import itertools
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from cusim.plot.badge import put_on_plate
from cusim.plot.boxes import lay_out
from cusim.plot.marks import DOTTED, draw_rounds
from cusim.plot.style import BADGES, EMPTY, FAINT, HATCH, INK, PALETTE, house_style, kernel_colour, micros
from cusim.plot.timeline import box_style, draw_boxes
from cusim.trace.align import aligned
from cusim.trace.compare import Comparison, compare_traces
from cusim.trace.guess import with_waits_before_load
from cusim.trace.metrics import MachineShape
from cusim.trace.rounds import issue_rounds
from cusim.trace.trace import Trace

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH_INCHES, _LANES_INCHES, _ERRORS_INCHES = 11.0, 2.9, 1.9
_TITLE_LETTERS = 100
_MARGIN = 0.01
#: Waits of a smaller share of the run could not be seen.
_LEAST_WAIT = 0.005
#: Rounds narrower than this share of the picture get no figure.
_LEAST_ROUND = 0.045
_PS_PER_US, _PS_PER_NS = 1e6, 1000


def overlay(predicted: Trace, measured: Trace, shape: MachineShape, *, title: str = "") -> Figure:
    """*predicted* above *measured* on a machine of *shape*, both from their first block's start; errors below.

    SMs are rows of lanes; those that ran blocks of the same kernels and rounds stand together, so that the two pictures
    can be compared whatever the numbers of their SMs. Slanted lines join the ends of a round. The strip below has a dot
    a tile, when it ended as predicted less as measured, over when it ended; its grey steps are the medians of rounds.
    Raises InputError where the two are not of one program and plan.
    """
    found = compare_traces(predicted, measured, shape)
    pair = [_shown(trace, shape, found) for trace in (predicted, measured)]
    from matplotlib.figure import Figure

    with house_style():
        fig = Figure(figsize=(_WIDTH_INCHES, 2 * _LANES_INCHES + _ERRORS_INCHES + 1.5), layout="constrained")
        ratios = [_LANES_INCHES, _LANES_INCHES, _ERRORS_INCHES]
        above, below, errors = fig.subplots(3, sharex=True, height_ratios=ratios)
        errors.set_xlim(0, (1 + _MARGIN) * max(found.span.predicted_ps, found.span.measured_ps) / _PS_PER_US)
        for ax, trace in zip((above, below), pair, strict=True):
            _draw_lanes(ax, trace, shape)
        _mark_rounds(above, below, found)
        _draw_errors(errors, found)
        _write_title(above, found, title)
        signs = _signs(predicted.kernels, waiting=any(len(trace.waits["tile"]) for trace in pair))
        fig.legend(handles=signs, loc="outside lower center", ncols=len(signs), frameon=False)
        return fig


def _shown(trace: Trace, shape: MachineShape, found: Comparison) -> Trace:
    """The trace as it is drawn: from 0 on, SMs in comparable order, waits where they are known and can be seen."""
    shown = by_what_they_ran(aligned(with_waits_before_load(trace)), shape)
    long = shown.waits["end"] - shown.waits["begin"] >= _LEAST_WAIT * found.span.measured_ps
    return dataclasses.replace(shown, waits={name: column[long] for name, column in shown.waits.items()})


def by_what_they_ran(trace: Trace, shape: MachineShape) -> Trace:
    """The trace with its SMs numbered anew from 0: by the kernels and rounds of their blocks, then by the tickets of
    those, the last one first. An SM that ran nothing stands at the end.
    """
    tiles, rounds = trace.tiles, issue_rounds(trace, shape)
    kernels, tickets = tiles["kernel"], tiles["ticket"]
    ran: dict[int, list[int]] = {}
    for row in np.lexsort((tickets, kernels, rounds)).tolist():
        ran.setdefault(int(tiles["sm"][row]), []).append(row)
    order = sorted(
        ran,
        key=lambda sm: (
            [(int(rounds[row]), int(kernels[row])) for row in ran[sm]],
            [int(tickets[row]) for row in reversed(ran[sm])],
        ),
    )
    number = np.zeros(max(ran, default=-1) + 1, np.int64)
    number[order] = np.arange(len(order))
    return dataclasses.replace(trace, tiles={**tiles, "sm": number[tiles["sm"]]})


def _draw_lanes(ax: Axes, trace: Trace, shape: MachineShape) -> None:
    layout = lay_out(trace, shape.sms, None)
    draw_boxes(ax, trace, layout, *box_style(72 * _LANES_INCHES / layout.rows))
    ax.set_ylim(layout.rows, 0)
    ax.set_yticks([])
    ax.set_ylabel(f"{shape.sms} SMs, sorted by\nwhat they ran")
    ax.spines[["top", "right"]].set_visible(False)
    kind = str(trace.meta.get("kind", "unlabelled"))
    plate = ax.annotate(
        kind.upper(), (0, 1), (4, 5), xycoords="axes fraction", textcoords="offset points", ha="left", va="bottom",
    )  # fmt: skip
    put_on_plate(plate, BADGES.get(kind, (EMPTY, INK)))


def _mark_rounds(above: Axes, below: Axes, found: Comparison) -> None:
    """The ends of rounds in both, each joined to itself: a slant says by how much, and which way, it is off."""
    from matplotlib.patches import ConnectionPatch

    ours, theirs = (
        list(itertools.accumulate(getattr(each, side) for each in found.rounds))
        for side in ("predicted_ps", "measured_ps")
    )
    if not draw_rounds(above, tuple(ours)):
        return
    for begin, end in zip(ours, theirs, strict=True):
        here, there = begin / _PS_PER_US, end / _PS_PER_US
        below.axvline(there, color=INK, lw=1.0, ls=DOTTED, zorder=4)
        slant = ConnectionPatch(
            (here, 0), (there, 1), above.get_xaxis_transform(), below.get_xaxis_transform(), color=INK, lw=1.0,
        )  # fmt: skip
        slant.set_in_layout(False)
        below.add_artist(slant)


def _draw_errors(ax: Axes, found: Comparison) -> None:
    """A dot a tile, and the median of each round as a step from the zero line."""
    tiles = found.tiles
    begin = 0.0
    for number, each in enumerate(found.rounds, start=1):
        end = begin + each.measured_ps / _PS_PER_US
        middle = float(np.median(tiles.end[tiles.round == number])) / _PS_PER_US
        ax.fill_between([begin, end], 0, middle, color=EMPTY, lw=0, zorder=1)
        ax.plot([begin, end], [middle, middle], color=FAINT, lw=1.4, zorder=1.2, solid_capstyle="butt")
        if end - begin > _LEAST_ROUND * ax.get_xlim()[1]:
            up = middle >= 0
            ax.annotate(
                _signed(middle), ((begin + end) / 2, middle), (0, 3 if up else -3), textcoords="offset points",
                ha="center", va="bottom" if up else "top", fontsize=8, color=INK,
            )  # fmt: skip
        begin = end
    for kernel in range(int(tiles.kernel.max()) + 1):
        mine = tiles.kernel == kernel
        at, error = tiles.measured_end[mine] / _PS_PER_US, tiles.end[mine] / _PS_PER_US
        ax.scatter(at, error, s=7, color=kernel_colour(kernel), lw=0, alpha=0.8, zorder=2)
    ax.axhline(0, color=INK, lw=0.8, zorder=1.5)
    ax.set_xlabel("time from the first block's start, us")
    ax.set_ylabel("tile ends, us:\npredicted − measured")
    ax.spines[["top", "right"]].set_visible(False)
    low, high = ax.get_ylim()
    room = 0.3 * (high - low)
    ax.set_ylim(min(low - 0.4 * room, -room), max(high + 0.4 * room, room))
    for text, y, va in (("predicted too late", 0.97, "top"), ("predicted too early", 0.03, "bottom")):
        ax.annotate(text, (0.004, y), xycoords="axes fraction", ha="left", va=va, color=FAINT, fontsize=8)


def _write_title(ax: Axes, found: Comparison, title: str) -> None:
    span = f"first start to last end {_signed(found.span.error_ps / _PS_PER_US)} us"
    rounds = f"rounds off by {micros(found.round_errors_ps)} in sum, of which {found.cancelled_pct:.0f} % cancels"
    lines: tuple[tuple[str, int, dict[str, Any]], ...] = (
        (f"{span};   {rounds}", 26, {}),
        (_totals(found), 39, {}),
        (textwrap.fill(title, _TITLE_LETTERS), 54, {"weight": "bold", "fontsize": 11}),
    )
    for text, lift, style in lines:
        ax.annotate(
            text, (0, 1), (0, lift), xycoords="axes fraction", textcoords="offset points", ha="left", va="bottom",
            **style,
        )  # fmt: skip


def _totals(found: Comparison) -> str:
    """Totals from event to event, as far as they are known."""
    ours, theirs, stamped = found.predicted_ns, found.measured_ns, found.stamped_ns
    if ours is None or theirs is None:
        return "totals from event to event are not known"
    text = f"total {micros(ours * _PS_PER_NS)} predicted, {micros(theirs * _PS_PER_NS)} measured: "
    text += f"{_signed(100 * (ours / theirs - 1))} %"
    return text if stamped is None else f"{text}   (runs that stamp their blocks, as drawn: {micros(stamped * 1000)})"


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "\N{MINUS SIGN}")


def _signs(kernels: tuple[str, ...], *, waiting: bool) -> list[Artist]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    names = kernels[: len(PALETTE)]
    handles: list[Artist] = [Patch(fc=kernel_colour(place), label=name) for place, name in enumerate(names)]
    if len(kernels) > len(names):
        handles.append(Patch(fc="none", ec="none", label=f"and {len(kernels) - len(names)} more, colours repeat"))
    if waiting:
        handles.append(Patch(fc="white", ec=FAINT, hatch=HATCH, label="waiting"))
    handles.append(Line2D([], [], color=INK, lw=1.0, ls=DOTTED, label="end of a round"))
    handles.append(Line2D([], [], color=INK, marker="o", ms=3, lw=0, label="a tile"))
    handles.append(Patch(fc=EMPTY, ec=FAINT, label="median of a round"))
    return handles
