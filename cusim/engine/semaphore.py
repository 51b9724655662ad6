"""Semaphores in simulated time: posts become visible after a delay, waiters are woken, polling is never scheduled."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, TypeAlias

#: Whoever waits: a lane. Typed loosely, since lanes know semaphores and not the other way round.
Waiter: TypeAlias = Any

#: Later than any simulated time: "not posted yet".
NEVER = sys.maxsize


class Semaphores:
    """The counters of one dependence. Counts only grow; *totals* is what all producer tiles together will post.

    ``full_at[i]`` is when semaphore i is seen at its total, :data:`NEVER` until that post was made. Posts to one
    address follow each other by *spacing_ps* at least.
    """

    __slots__ = (
        "_even",
        "_history",
        "_last",
        "count",
        "dependence",
        "full_at",
        "name",
        "spacing_ps",
        "totals",
        "waiters",
    )

    def __init__(self, name: str, dependence: int, totals: Sequence[int], spacing_ps: int) -> None:
        self.name = name
        self.dependence = dependence
        self.totals = list(totals)
        self.count = [0] * len(self.totals)
        self.full_at = [0 if total == 0 else NEVER for total in self.totals]
        self.spacing_ps = spacing_ps
        self.waiters: dict[int, list[tuple[int, Waiter]]] = {}
        self._last = [-spacing_ps] * len(self.totals)
        self._even = self.totals[0] if len(set(self.totals)) == 1 else NEVER  # the total that all share, if they do
        self._history: list[list[tuple[int, int]]] = [[] for _ in self.totals]

    def seen_at(self, first: int, last: int, target: int) -> int:
        """When semaphores first ... last - 1 are all seen at *target*; NEVER while a post is missing."""
        if target == self._even:
            return self.full_at[first] if last - first == 1 else max(self.full_at[first:last])
        return max(self._reached(index, target) for index in range(first, last))

    def post(self, index: int, add: int, visible_ps: int) -> list[tuple[Waiter, int]]:
        """Adds to a counter, to be seen at *visible_ps* or later; returns waiters whose target this post reaches."""
        visible = max(visible_ps, self._last[index] + self.spacing_ps)
        self._last[index] = visible
        count = self.count[index] + add
        self.count[index] = count
        self._history[index].append((count, visible))
        if count >= self.totals[index]:
            self.full_at[index] = visible
        waiting = self.waiters.get(index)
        if not waiting:
            return []
        woken = [(lane, visible) for target, lane in waiting if target <= count]
        if woken:
            self.waiters[index] = [entry for entry in waiting if entry[0] > count]
        return woken

    def park(self, first: int, last: int, target: int, lane: Waiter) -> tuple[int, int]:
        """Registers a waiter with every semaphore that misses a post; returns how many, and the latest known time."""
        missing, known = 0, 0
        for index in range(first, last):
            at = self._reached(index, target)
            if at == NEVER:
                self.waiters.setdefault(index, []).append((target, lane))
                missing += 1
            else:
                known = max(known, at)
        return missing, known

    def last_seen(self, first: int, last: int, target: int) -> int:
        """The semaphore of a range that was the last to be seen at *target*: the one that ended a wait."""
        return max(range(first, last), key=lambda index: (self._reached(index, target), -index))

    def first_missing(self, first: int, last: int, target: int) -> int:
        """The first semaphore of a range whose posts fall short of *target*; *first* if none does."""
        return next((index for index in range(first, last) if self.count[index] < target), first)

    def _reached(self, index: int, target: int) -> int:
        if self.count[index] < target:
            return NEVER
        return next(at for count, at in self._history[index] if count >= target) if target > 0 else 0
