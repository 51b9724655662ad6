"""One bar a policy: its time, where that time went, and how sure we are that it beats stream order."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cusim.errors import Problems, did_you_mean
from cusim.plot.badge import badged_legend
from cusim.plot.style import (
    EMPTY,
    FAINT,
    GAIN,
    HATCH,
    INK,
    LOSS,
    WAITING,
    WORKING,
    house_style,
    micros,
    tint,
)  # fmt: skip

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH_INCHES = 10.0
_BAR = 0.62
_TITLE_LETTERS = 60
_PS_PER_NS = 1000
_LEGEND = {"working": 0, "waiting": 1, "empty": 2}


@dataclass(frozen=True, slots=True)
class BarRow:
    """One bar: *total_ns* and the per cent of SM time behind it; a deadlocked row has no time to show."""

    label: str
    total_ns: int
    working_pct: float
    waiting_pct: float
    empty_pct: float
    recommended: bool = False
    deadlock: bool = False


def policy_bars(
    rows: Sequence[BarRow],
    *,
    measure: Literal["time", "gain"] = "time",
    reference: str = "stream",
    band_pct: float = 0.0,
    kind: Literal["predicted", "measured"] = "predicted",
    title: str = "",
) -> Figure:
    """Horizontal bars of *rows*, top first: times split into shares, or gains over the *reference* row.

    *band_pct* is the error band of the times, in per cent either way; a gain inside it is a tie. All rows are
    of one *kind*: predicted and measured times never share a picture. Raises InputError for no rows, for
    shares that do not sum to 100 and for a gain without a reference.
    """
    base = next((row for row in rows if row.label == reference and not row.deadlock), None)
    _check(rows, measure, reference, base)
    from matplotlib.figure import Figure

    with house_style():
        fig = Figure(figsize=(_WIDTH_INCHES, 1.5 + 0.42 * len(rows)), layout="constrained")
        ax = fig.add_subplot()
        base_ns = base.total_ns if base else None
        if measure == "gain" and base_ns:
            _draw_gains(ax, rows, base_ns, band_pct, reference)
        else:
            _draw_times(ax, rows, base_ns, band_pct, reference)
        _dress(fig, ax, rows, kind, title)
        return fig


def _check(rows: Sequence[BarRow], measure: str, reference: str, base: BarRow | None) -> None:
    problems = Problems("bars")
    if not rows:
        problems.add("rows", None, "must hold at least one")
    if measure == "gain" and base is None:
        labels = [row.label for row in rows if not row.deadlock]
        problems.add("reference", reference, f"must be a row that ran: {did_you_mean(reference, labels)}")
    for row in rows:
        shares = (row.working_pct, row.waiting_pct, row.empty_pct)
        if not row.deadlock and (row.total_ns <= 0 or min(shares) < -1e-6 or abs(sum(shares) - 100) > 1e-3):
            problems.add(row.label, None, "must have a time above 0 and shares that sum to 100 %")
    problems.raise_if_any()


def _draw_times(ax: Axes, rows: Sequence[BarRow], base_ns: int | None, band_pct: float, reference: str) -> None:
    running = [(place, row) for place, row in enumerate(rows) if not row.deadlock]
    places = [place for place, _ in running]
    left = [0.0] * len(running)
    for name, colour, hatch in (("working", WORKING, ""), ("waiting", WAITING, HATCH), ("empty", EMPTY, "")):
        widths = [row.total_ns / 1e3 * getattr(row, f"{name}_pct") / 100 for _, row in running]
        face, edge = (tint(colour, 0.35), colour) if hatch else (colour, "white")
        ax.barh(places, widths, _BAR, left, color=face, edgecolor=edge, lw=0.5, hatch=hatch, label=name)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    longest = max((row.total_ns for _, row in running), default=1) / 1e3
    if band_pct:
        errors = [row.total_ns / 1e3 * band_pct / 100 for _, row in running]
        label = f"error band, ±{band_pct:g} %"
        ax.errorbar(left, places, xerr=errors, fmt="none", ecolor=INK, elinewidth=1, capsize=3, label=label)
    if base_ns:
        ax.axvline(base_ns / 1e3, color=INK, lw=1, ls=(0, (4, 2)), zorder=0.5, label=reference)
    for place, row in running:
        text = micros(row.total_ns * _PS_PER_NS)
        if base_ns and row.label != reference:
            text += f"   {_verdict(100 * (row.total_ns / base_ns - 1), band_pct)}"
        _note(ax, place, text, row.recommended)
    _mark_deadlocks(ax, rows)
    ax.set_xlim(0, longest * (1 + band_pct / 100) * 1.03)
    ax.set_xlabel("time, us" + (f"   (change against {reference} in per cent)" if base_ns else ""))


def _draw_gains(ax: Axes, rows: Sequence[BarRow], base_ns: int, band_pct: float, reference: str) -> None:
    gains = {place: 100 * (1 - row.total_ns / base_ns) for place, row in enumerate(rows) if not row.deadlock}
    colours = [FAINT if abs(gain) <= band_pct else GAIN if gain > 0 else LOSS for gain in gains.values()]
    if band_pct:
        label = f"tie: within ±{band_pct:g} %"
        ax.axvspan(-band_pct, band_pct, color=EMPTY, lw=0, zorder=0, label=label)
    ax.barh(list(gains), list(gains.values()), _BAR, color=colours, zorder=2)
    ax.axvline(0, color=INK, lw=1, ls=(0, (4, 2)), zorder=3, label=reference)
    low, high = min(0.0, -band_pct, *gains.values()), max(0.0, band_pct, *gains.values())
    for place, gain in gains.items():
        text = "reference" if rows[place].label == reference else _verdict(gain, band_pct)
        _note(ax, place, text, rows[place].recommended)
    _mark_deadlocks(ax, rows)
    room = max(high - low, 1.0)
    ax.set_xlim(low - 0.04 * room, high + 0.04 * room)
    ax.set_xlabel(f"time saved against {reference}, %")


def _note(ax: Axes, place: int, text: str, recommended: bool) -> None:
    """Writes *text* beside a row, in a column of its own where no bar or line can cross it."""
    ax.annotate(
        text + ("   recommended" if recommended else ""),
        (1, place),
        xytext=(8, 0),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        va="center",
        weight="bold" if recommended else "normal",
    )


def _mark_deadlocks(ax: Axes, rows: Sequence[BarRow]) -> None:
    for place, row in enumerate(rows):
        if row.deadlock:
            text = "deadlock: never ends"
            ax.annotate(
                text,
                (0, place),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                color=LOSS,
                weight="bold",
            )


def _verdict(change_pct: float, band_pct: float) -> str:
    tie = ", a tie" if abs(change_pct) <= band_pct else ""
    return f"{change_pct:+.1f} %{tie}".replace("-", "\N{MINUS SIGN}")


def _dress(fig: Figure, ax: Axes, rows: Sequence[BarRow], kind: str, title: str) -> None:
    ax.set_yticks(range(len(rows)), [row.label for row in rows])
    for label, row in zip(ax.get_yticklabels(), rows, strict=True):
        label.set_fontweight("bold" if row.recommended else "normal")
        label.set_color(LOSS if row.deadlock else INK)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color=EMPTY, lw=0.6, zorder=0)
    ax.set_axisbelow(True)
    if title:
        ax.set_title(textwrap.fill(title, _TITLE_LETTERS), loc="left", weight="bold", fontsize=11)
    handles, labels = ax.get_legend_handles_labels()
    order = sorted(range(len(handles)), key=lambda place: _LEGEND.get(labels[place], 4))
    badged_legend(fig, [handles[place] for place in order], kind)
