"""TileSync: one semaphore for each producer tile (cuSync §III-E)."""

from __future__ import annotations

from dataclasses import dataclass

from cusim.policies.base import ONE, Post, Wait, at_step, entering, moved, one_if, widest
from cusim.program.depends import TileDep, TileSpan
from cusim.program.expr import Expr, c, maximum, r


@dataclass(frozen=True, slots=True)
class TilePolicy:
    """A consumer waits for each producer tile at the k step that first reads it: most semaphores, earliest start."""

    name: str = "tile"

    def size(self, dep: TileDep) -> int:
        """One semaphore a producer tile."""
        return dep.producer_grid[0] * dep.producer_grid[1]

    def posts(self, dep: TileDep) -> tuple[Post, ...]:
        """Tile (r, c) adds 1 to semaphore r * C + c."""
        return (Post(r * dep.producer_grid[1] + c, ONE),)

    def waits(self, dep: TileDep) -> tuple[Wait, ...]:
        """For every row of producer tiles read, the columns that this k step is the first to enter."""
        cols = dep.producer_grid[1]
        found: dict[Wait, None] = {}  # a set in order: reads of the same tiles need one wait
        for span in dep.spans:
            row_start, col_start, gate = _entered(span, dep)
            step = at_step(dep, span, span.r_lo, span.r_hi, span.c_lo, span.c_hi)
            for offset in range(widest(row_start, span.r_hi, dep)):
                row = row_start + offset
                count = gate * one_if(row, span.r_hi) * maximum(span.c_hi - col_start, 0)
                found[Wait(row * cols + col_start, ONE, step, count)] = None
        return tuple(found)


def _entered(span: TileSpan, dep: TileDep) -> tuple[Expr, Expr, Expr]:
    """First row and first column that this k step is the first to enter, and a factor for the count.

    A rectangle that moves along both axes is waited for whole: what it enters is no rectangle.
    """
    rows_move = "k" in span.r_lo.uses() | span.r_hi.uses()
    cols_move = "k" in span.c_lo.uses() | span.c_hi.uses()
    if rows_move and cols_move:
        return span.r_lo, span.c_lo, moved(dep, span.r_lo, span.r_hi, span.c_lo, span.c_hi)
    row_start, row_gate = entering(span.r_lo, span.r_hi, dep)
    col_start, col_gate = entering(span.c_lo, span.c_hi, dep)
    return row_start, col_start, row_gate * col_gate
