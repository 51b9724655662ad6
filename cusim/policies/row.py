"""RowSync: one semaphore for each row of producer tiles (cuSync §III-E)."""

from __future__ import annotations

from dataclasses import dataclass

from cusim.policies.base import ONE, Post, Wait, at_step, constant, entering
from cusim.program.depends import TileDep
from cusim.program.expr import maximum, r


@dataclass(frozen=True, slots=True)
class RowPolicy:
    """A consumer waits once for whole rows of producer tiles: fewest waits, latest start."""

    name: str = "row"

    def size(self, dep: TileDep) -> int:
        """One semaphore a row of producer tiles."""
        return dep.producer_grid[0]

    def posts(self, dep: TileDep) -> tuple[Post, ...]:
        """Every tile of row r adds 1 to semaphore r."""
        return (Post(r, ONE),)

    def waits(self, dep: TileDep) -> tuple[Wait, ...]:
        """For each read, the rows it touches, once, before the first step that needs them."""
        target = constant(dep.producer_grid[1])
        found: dict[Wait, None] = {}  # a set in order: reads of the same tiles need one wait
        for span in dep.spans:
            start, gate = entering(span.r_lo, span.r_hi, dep)
            step = at_step(dep, span, span.r_lo, span.r_hi)
            found[Wait(start, target, step, gate * maximum(span.r_hi - start, 0))] = None
        return tuple(found)
