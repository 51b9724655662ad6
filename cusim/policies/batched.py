"""Batched rows: one semaphore for n rows of producer tiles (cuSync's BatchedRowSync, disabled in its policies.h)."""

from __future__ import annotations

from dataclasses import dataclass

from cusim.policies.base import ONE, Post, Wait, at_step, entering, one_if, widest
from cusim.program.depends import TileDep
from cusim.program.expr import ceil_div, minimum, r


@dataclass(frozen=True, slots=True)
class BatchedPolicy:
    """A consumer waits for groups of *rows* rows of producer tiles; the last group may be smaller."""

    rows: int = 2

    @property
    def name(self) -> str:
        """``batched:n``."""
        return f"batched:{self.rows}"

    def size(self, dep: TileDep) -> int:
        """One semaphore a group."""
        return -(-dep.producer_grid[0] // self.rows)

    def posts(self, dep: TileDep) -> tuple[Post, ...]:
        """Every tile of row r adds 1 to semaphore r // n."""
        return (Post(r // self.rows, ONE),)

    def waits(self, dep: TileDep) -> tuple[Wait, ...]:
        """For each read, every group it touches; one entry a group, since the last one's target may be smaller."""
        tile_rows, tile_cols, _ = dep.producer_grid
        found: dict[Wait, None] = {}  # a set in order: reads of the same tiles need one wait
        for span in dep.spans:
            low, high = span.r_lo // self.rows, ceil_div(span.r_hi, self.rows)
            start, gate = entering(low, high, dep)
            step = at_step(dep, span, span.r_lo, span.r_hi)
            for offset in range(widest(low, high, dep)):
                group = start + offset
                target = minimum(tile_rows - group * self.rows, self.rows) * tile_cols
                found[Wait(group, target, step, gate * one_if(group, high))] = None
        return tuple(found)
