"""Where the boxes of a timeline stand: rows for SM slots, rectangles for blocks and for their waits."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cusim.errors import refuse
from cusim.trace.intervals import lanes
from cusim.trace.metrics import resident
from cusim.trace.trace import Trace

_US = 1e-6
#: One rectangle a row: left, right, row.
Rectangles = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Layout:
    """The boxes of a timeline in axes units: microseconds across, rows down, row 0 on top.

    *blocks* and *waits* are rectangles ``(left, right, row)``, one for each row of the trace's tables that is
    in view; *block_rows* and *wait_rows* say which. *slots* is the number of rows of each SM in *sms*.
    """

    sms: tuple[int, ...]
    slots: int
    blocks: Rectangles
    block_rows: NDArray[np.int64]
    waits: Rectangles
    wait_rows: NDArray[np.int64]

    @property
    def rows(self) -> int:
        """Number of rows drawn."""
        return len(self.sms) * self.slots


def lay_out(trace: Trace, sms: int, view: range | None) -> Layout:
    """The :class:`Layout` of *trace* on a GPU with *sms* SMs; *view* says which to draw, all by default.

    Raises InputError for a view of no SMs, or beyond the GPU's.
    """
    shown = tuple(view) if view is not None else tuple(range(max(sms, _last_sm(trace) + 1)))
    if not shown or min(shown) < 0 or max(shown) >= max(sms, _last_sm(trace) + 1):
        given = f"{view.start}:{view.stop}" if view is not None else None
        raise refuse("plot", "sm", given, f"must be START:STOP within 0:{sms}")
    sm, spans = trace.tiles["sm"], resident(trace)
    lane = trace.tiles["lane"]
    if len(lane) and lane.min() < 0:
        lane = lanes(sm, spans)
    row_of_sm = np.full(max(*shown, _last_sm(trace)) + 1, -1, np.int64)
    row_of_sm[list(shown)] = np.arange(len(shown))
    seen = np.flatnonzero(row_of_sm[sm] >= 0)
    slots = int(lane.max()) + 1 if len(lane) else 1
    row = row_of_sm[sm] * slots + lane
    waiting = np.flatnonzero(row_of_sm[sm[trace.waits["tile"]]] >= 0)
    return Layout(
        sms=shown,
        slots=slots,
        blocks=_rectangles(spans[seen, 0], spans[seen, 1], row[seen]),
        block_rows=seen,
        waits=_rectangles(
            trace.waits["begin"][waiting], trace.waits["end"][waiting], row[trace.waits["tile"][waiting]]
        ),
        wait_rows=waiting,
    )


def for_ever(layout: Layout, trace: Trace, still_ps: int, edge: float) -> Layout:
    """The layout of a run that stood still at *still_ps*: blocks that wait then reach *edge*, in us, and so do they."""
    open_waits = trace.waits["end"][layout.wait_rows] >= still_ps
    waiting = np.unique(trace.waits["tile"][layout.wait_rows][open_waits])
    blocks, waits = layout.blocks.copy(), layout.waits.copy()
    blocks[np.isin(layout.block_rows, waiting), 1] = edge
    waits[open_waits, 1] = edge
    return replace(layout, blocks=blocks, waits=waits)


def corners(rectangles: Rectangles, height: float) -> Rectangles:
    """The four corners of each rectangle, as ``(n, 4, 2)`` for a PolyCollection, *height* of a row high."""
    left, right, row = rectangles.T
    top, bottom = row + 0.5 - height / 2, row + 0.5 + height / 2
    return np.stack(
        [np.stack(pair, axis=1) for pair in ((left, top), (right, top), (right, bottom), (left, bottom))],
        axis=1,
    )


def _rectangles(begins: NDArray[np.int64], ends: NDArray[np.int64], row: NDArray[np.int64]) -> Rectangles:
    return np.stack([begins * _US, ends * _US, row.astype(np.float64)], axis=1)


def _last_sm(trace: Trace) -> int:
    return int(trace.tiles["sm"].max()) if trace.blocks else -1
