"""Arithmetic of half-open time intervals ``[begin, end)``: unions, intersections, lanes and shares.

A set of intervals is an ``(n, 2)`` int64 array of begins and ends. Intervals of no length hold no instant.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Spans: TypeAlias = NDArray[np.int64]
Vector: TypeAlias = NDArray[np.int64]


def spans_of(begins: Vector, ends: Vector) -> Spans:
    """The intervals from *begins* to *ends*, one a row."""
    return np.stack([np.asarray(begins, np.int64), np.asarray(ends, np.int64)], axis=1)


def union(spans: Spans) -> Spans:
    """The fewest disjoint intervals, in order, that hold the same instants; those that touch become one."""
    kept = spans[spans[:, 1] > spans[:, 0]]
    if not len(kept):
        return np.empty((0, 2), np.int64)
    kept = kept[np.argsort(kept[:, 0], kind="stable")]
    reach = np.maximum.accumulate(kept[:, 1])
    first = np.concatenate([[True], kept[1:, 0] > reach[:-1]])
    last = np.concatenate([first[1:], [True]])
    return spans_of(kept[first, 0], reach[last])


def covered(spans: Spans) -> int:
    """How long at least one of the intervals lasts: overlaps count once."""
    merged = union(spans)
    return int((merged[:, 1] - merged[:, 0]).sum())


def intersection(left: Spans, right: Spans) -> Spans:
    """The disjoint intervals, in order, that hold the instants of both *left* and *right*."""
    ours, theirs = union(left), union(right)
    if not len(ours) or not len(theirs):
        return np.empty((0, 2), np.int64)
    # Interval i of ours meets those of theirs that end after it begins and begin before it ends.
    first = np.searchsorted(theirs[:, 1], ours[:, 0], side="right")
    last = np.searchsorted(theirs[:, 0], ours[:, 1], side="left")
    counts = last - first
    mine = np.repeat(np.arange(len(ours)), counts)
    skipped = np.concatenate([[0], np.cumsum(counts)[:-1]])
    its = np.repeat(first - skipped, counts) + np.arange(counts.sum())
    begins = np.maximum(ours[mine, 0], theirs[its, 0])
    ends = np.minimum(ours[mine, 1], theirs[its, 1])
    return spans_of(begins, ends)


def stretches(spans: Spans) -> Vector:
    """For each interval the number of its stretch, counted from 0 in time.

    A stretch ends where every interval so far has ended before the next begins: a barrier lies between two
    stretches. Unlike in :func:`union`, intervals that only touch are apart.
    """
    order = np.lexsort((spans[:, 1], spans[:, 0]))
    reach = np.maximum.accumulate(spans[order, 1])
    number = np.empty(len(spans), np.int64)
    number[order] = np.concatenate([[0], np.cumsum(spans[order[1:], 0] >= reach[:-1])])[: len(spans)]
    return number


def lanes(groups: Vector, spans: Spans) -> Vector:
    """A lane for each interval, the lowest that is free when it begins, counted from 0 within its group.

    No two intervals of a group share a lane and an instant. For measured blocks, whose SM is known but not
    their slot.
    """
    chosen = np.zeros(len(groups), np.int64)
    free_at: dict[int, list[int]] = {}
    for place in np.lexsort((spans[:, 1], spans[:, 0])).tolist():
        begin, end = spans[place].tolist()
        ends = free_at.setdefault(int(groups[place]), [])
        lane = next((number for number, until in enumerate(ends) if until <= begin), len(ends))
        ends[lane : lane + 1] = [end]
        chosen[place] = lane
    return chosen


def shares(groups: Vector, spans: Spans, weights: Vector, full: int) -> NDArray[np.float64]:
    """How long each interval holds its group, in whole-group time: ``weight / full`` of its duration.

    Where the weights that overlap in a group sum to more than *full*, all of them shrink alike at that
    instant, so the shares of a group never sum to more than the time that some interval of it lasts.
    """
    count = len(groups)
    times = np.concatenate([spans[:, 0], spans[:, 1]])
    order = np.lexsort((times, np.concatenate([groups, groups])))
    level = np.cumsum(np.concatenate([weights, -weights])[order])
    step = np.diff(times[order], append=0)
    # Between two groups, and where a group is empty, nothing is held: the step there means nothing.
    step[level == 0] = 0
    grown = np.concatenate([[0.0], np.cumsum(step / np.maximum(level, full))[:-1]]) if count else np.empty(0)
    at = np.empty(2 * count)
    at[order] = grown
    held: NDArray[np.float64] = weights * (at[count:] - at[:count])
    return held
