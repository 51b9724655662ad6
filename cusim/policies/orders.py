"""Tile orders: which tile the block with a given ticket computes; always a bijection (cuSync §III-C)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from cusim.errors import refuse
from cusim.program.expr import Expr, IntArray, Lookup, minimum, t

Grid: TypeAlias = tuple[int, int, int]
Tile: TypeAlias = tuple[int, int, int]


class Order(Protocol):
    """A bijection from tickets 0 ... R*C*Z - 1 to tiles (r, c, z); z varies slowest, as in cuSync."""

    @property
    def name(self) -> str:
        """The word that chooses the order on the command line."""

    def coordinates(self, grid: Grid) -> tuple[Expr, Expr, Expr]:
        """Row, column and slice as expressions of the ticket t."""


@dataclass(frozen=True, slots=True)
class RowOrder:
    """Row after row, columns fastest; the order in which a GPU numbers the blocks of a grid."""

    name: str = "row"

    def coordinates(self, grid: Grid) -> tuple[Expr, Expr, Expr]:
        """r = t // C, c = t % C within a slice."""
        rows, cols, _ = grid
        return (t // cols) % rows, t % cols, t // (rows * cols)


@dataclass(frozen=True, slots=True)
class ColumnOrder:
    """Column after column, rows fastest."""

    name: str = "column"

    def coordinates(self, grid: Grid) -> tuple[Expr, Expr, Expr]:
        """r = t % R, c = t // R within a slice."""
        rows, cols, _ = grid
        return t % rows, (t // rows) % cols, t // (rows * cols)


@dataclass(frozen=True, slots=True)
class GroupOrder:
    """Bands of *group* rows, each walked column after column: the L2-friendly swizzle of GEMM libraries."""

    group: int

    @property
    def name(self) -> str:
        """``group:G``."""
        return f"group:{self.group}"

    def coordinates(self, grid: Grid) -> tuple[Expr, Expr, Expr]:
        """The last band may have fewer rows."""
        rows, cols, _ = grid
        inside = t % (rows * cols)
        band = inside // (self.group * cols)
        height = minimum(rows - band * self.group, self.group)
        within = inside % (self.group * cols)
        return band * self.group + within % height, within // height, t // (rows * cols)


@dataclass(frozen=True, slots=True)
class TableOrder:
    """Any order, given tile by tile; refused unless it is a bijection onto the grid it is used with."""

    tiles: tuple[Tile, ...]
    name: str = "table"

    def coordinates(self, grid: Grid) -> tuple[Expr, Expr, Expr]:
        """Three lookups by ticket; InputError names the first tile that is missing or repeated."""
        try:
            table = np.asarray(self.tiles, dtype=np.int64).reshape(-1, 3)
        except OverflowError:
            raise refuse("order", self.name, None, "holds a number of more than 64 bits") from None
        check_bijection(table, grid, self.name)
        columns = (tuple(tile[axis] for tile in self.tiles) for axis in range(3))
        row, col, slice_ = (Lookup(column, t) for column in columns)
        return row, col, slice_


def tile(order: Order, ticket: int, grid: Grid) -> Tile:
    """The tile of one ticket."""
    row, col, slice_ = (int(e.eval(t=ticket)) for e in order.coordinates(grid))
    return row, col, slice_


def order_table(order: Order, grid: Grid) -> IntArray:
    """All tiles of a grid in the order's sequence, shape (R*C*Z, 3); InputError if it is no bijection."""
    tickets = np.arange(grid[0] * grid[1] * grid[2])
    columns = [np.broadcast_to(e.eval(t=tickets), tickets.shape) for e in order.coordinates(grid)]
    table = np.stack(columns, axis=1)
    check_bijection(table, grid, order.name)
    return table


def check_bijection(table: IntArray, grid: Grid, name: str) -> None:
    """Raises InputError unless *table* holds each tile of *grid* exactly once."""
    rows, cols, slices = grid
    total = rows * cols * slices
    inside = ((table >= 0) & (table < np.asarray(grid))).all(axis=1)
    if not inside.all():
        bad = tuple(int(x) for x in table[int(np.argmin(inside))])
        raise refuse("order", name, bad, f"outside the grid of {rows} x {cols} x {slices} tiles")
    seen = np.bincount((table[:, 2] * rows + table[:, 0]) * cols + table[:, 1], minlength=total)
    if len(table) != total or (seen != 1).any():
        where = int(np.argmax(seen != 1))
        bad = (where // cols % rows, where % cols, where // (rows * cols))
        why = "is missing" if seen[where] == 0 else "comes more than once"
        raise refuse("order", name, None, f"not a bijection: tile {bad} {why}")
