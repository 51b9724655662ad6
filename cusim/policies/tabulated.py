"""Any Python function as a policy or an order: tabulated into integers that simulator and CUDA code both read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from cusim.errors import Problems, refuse
from cusim.policies.base import Post, Wait
from cusim.policies.orders import Grid, TableOrder, Tile, check_bijection
from cusim.program.depends import TileDep, first_step
from cusim.program.expr import Const, Expr, IntArray, Lookup, c, k, r, z

#: ``post(r, c) -> (index, add)`` and ``waits(r, c, z, k) -> [(index, target, count), ...]``.
PostFunction: TypeAlias = Callable[[int, int], tuple[int, int]]
WaitFunction: TypeAlias = Callable[[int, int, int, int], Sequence[tuple[int, int, int]]]
Entries: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WaitTable:
    """The i-th wait of every consumer tile at every k step, each array in the order (r, c, k); count 0 is no wait."""

    index: Entries
    target: Entries
    count: Entries


@dataclass(frozen=True, slots=True)
class TabulatedPolicy:
    """A policy given tile by tile, valid for the grids of the dependence that it was made from.

    *post_index* and *post_add* stand in the order (r, c) of *producer_grid*; the *wait_tables* over the rows and
    columns of *consumer_grid* and *steps* k steps, of which *slice_steps* belong to each split-K slice.
    """

    name: str
    semaphores: int
    producer_grid: Grid
    consumer_grid: Grid
    steps: int
    slice_steps: int
    post_index: Entries
    post_add: Entries
    wait_tables: tuple[WaitTable, ...]

    def size(self, dep: TileDep) -> int:
        """The largest index that is posted or awaited, plus 1."""
        self._check(dep)
        return self.semaphores

    def posts(self, dep: TileDep) -> tuple[Post, ...]:
        """Lookups by r and c."""
        self._check(dep)
        axes, shape = (r, c), self.producer_grid[:2]
        return (Post(_lookup(self.post_index, shape, axes), _lookup(self.post_add, shape, axes)),)

    def waits(self, dep: TileDep) -> tuple[Wait, ...]:
        """Lookups by r, c and k; by r, c and z where every wait stands at the first step of a slice."""
        self._check(dep)
        return tuple(self._wait(table, dep) for table in self.wait_tables)

    def _wait(self, table: WaitTable, dep: TileDep) -> Wait:
        shape = (*self.consumer_grid[:2], self.steps)
        counts = np.reshape(table.count, shape)
        later = np.arange(self.steps) % self.slice_steps != 0
        parts = (table.index, table.target, table.count)
        if counts[:, :, later].any():
            index, target, count = (_lookup(part, shape, (r, c, k)) for part in parts)
            return Wait(index, target, None, count)
        firsts = [np.reshape(part, shape)[:, :, ~later] for part in parts]
        index, target, count = (_lookup(_entries(part), part.shape, (r, c, z)) for part in firsts)
        if firsts[0].shape[2] == self.consumer_grid[2]:
            return Wait(index, target, first_step(dep), count)
        index, target, count = (_lookup(part, shape, (r, c, k)) for part in parts)
        return Wait(index, target, None, count)

    def _check(self, dep: TileDep) -> None:
        mine = (self.producer_grid, self.consumer_grid, self.steps, self.slice_steps)
        if mine != (dep.producer_grid, dep.consumer_grid, dep.steps, dep.slice_steps):
            raise refuse("plan", f"sync.{dep.name}", self.name, "tabulated for other grids than the dependence's")


def tabulate(name: str, dep: TileDep, post: PostFunction, waits: WaitFunction) -> TabulatedPolicy:
    """The policy that two Python functions describe, called for every producer tile and every consumer k step.

    Raises InputError, naming the first tiles, for a negative index, an increment or count below 1 or a result of
    another shape.
    """
    problems = Problems(f"policy {name}")
    rows, cols, _ = dep.producer_grid
    posted = [_post(problems, post, row, col) for row in range(rows) for col in range(cols)]
    awaited = [
        _waits(problems, waits, row, col, step // dep.slice_steps, step)
        for row in range(dep.consumer_grid[0])
        for col in range(dep.consumer_grid[1])
        for step in range(dep.steps)
    ]
    problems.raise_if_any()
    tables = tuple(
        WaitTable(*zip(*(rows[place] if place < len(rows) else (0, 0, 0) for rows in awaited), strict=True))
        for place in range(max(len(rows) for rows in awaited))
    )
    ends = [index + 1 for index, _ in posted] + [i + count for rows in awaited for i, _, count in rows]
    return TabulatedPolicy(
        name, max(ends), dep.producer_grid, dep.consumer_grid, dep.steps, dep.slice_steps,
        tuple(index for index, _ in posted), tuple(add for _, add in posted), tables,
    )  # fmt: skip


def tabulate_order(order: Callable[[int], Tile], grid: Grid, name: str = "table") -> TableOrder:
    """The order that a function from ticket to (r, c, z) describes; InputError unless it is a bijection onto *grid*."""
    tiles = []
    for ticket in range(grid[0] * grid[1] * grid[2]):
        tile = tuple(int(x) for x in order(ticket))
        if len(tile) != 3:
            raise refuse("order", name, tile, f"ticket {ticket} must give (r, c, z)")
        tiles.append(tile)
    check_bijection(np.asarray(tiles, dtype=np.int64).reshape(-1, 3), grid, name)
    return TableOrder(tuple(tiles), name)


_MOST_PROBLEMS = 8


def _post(problems: Problems, post: PostFunction, row: int, col: int) -> tuple[int, int]:
    given = post(row, col)
    try:
        index, add = (int(x) for x in given)
    except (TypeError, ValueError):
        _report(problems, f"post({row}, {col})", given, "must be (index, add)")
        return 0, 1
    if index < 0 or add < 1:
        _report(problems, f"post({row}, {col})", given, "index must be 0 or more and add 1 or more")
    return index, add


def _waits(
    problems: Problems, waits: WaitFunction, row: int, col: int, slice_: int, step: int
) -> list[tuple[int, int, int]]:
    key = f"waits({row}, {col}, {slice_}, {step})"
    given = waits(row, col, slice_, step)
    try:
        rows = [(int(index), int(target), int(count)) for index, target, count in given]
    except (TypeError, ValueError):
        _report(problems, key, given, "must be a list of (index, target, count)")
        return []
    if any(index < 0 or count < 0 for index, _, count in rows):
        _report(problems, key, given, "index and count must be 0 or more")
    return [entry for entry in rows if entry[2] != 0]


def _report(problems: Problems, key: str, given: object, why: str) -> None:
    if len(problems.found) < _MOST_PROBLEMS:
        problems.add(key, given, why)


def _lookup(entries: Entries, shape: tuple[int, ...], axes: tuple[Expr, ...]) -> Expr:
    """An expression for an array over *axes*, without the axes along which it is constant."""
    values: IntArray = np.asarray(entries, dtype=np.int64).reshape(shape)
    place: Expr = Const(0)
    for axis, variable in enumerate(axes):
        first = values.take([0], axis=axis)
        if (values == first).all():
            values = first
        else:
            place = place * shape[axis] + variable
    flat = _entries(values)
    return Const(flat[0]) if len(flat) == 1 else Lookup(flat, place)


def _entries(values: IntArray) -> Entries:
    return tuple(int(value) for value in values.ravel())
