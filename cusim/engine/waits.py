"""The waits of a block as positions in its work, compiled from the policies of its incoming dependences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from cusim.engine.semaphore import NEVER, Semaphores
from cusim.policies.base import Wait
from cusim.program.depends import TileDep, first_step
from cusim.program.expr import IntArray
from cusim.program.kernel import Kernel

#: A wait of a block: position in its work (ps), semaphores first ... last - 1, the target of each, and whether it comes
#: before the block's first loads, so that no pipeline has to be filled again after it.
Entry: TypeAlias = tuple[int, Semaphores, int, int, int, bool]


class WaitList:
    """The waits of one block in the order in which they bite, shared by all blocks that wait alike."""

    __slots__ = ("entries", "extra_ps", "ready_by")

    def __init__(self, entries: list[Entry], extra_ps: int) -> None:
        self.entries = entries
        self.extra_ps = extra_ps
        self.ready_by = 0 if not entries else NEVER

    def refresh(self) -> int:
        """When every wait is satisfied, NEVER while a post is missing; remembered once it is known."""
        if self.ready_by == NEVER:
            latest = 0
            for _, sems, first, last, target, _ in reversed(self.entries):
                at = sems.seen_at(first, last, target)
                if at == NEVER:
                    return NEVER
                latest = max(latest, at)
            self.ready_by = latest
        return self.ready_by

    def stands_at(self, at: int) -> bool:
        """True when a wait before the first load is not satisfied at that time."""
        for _, sems, first, last, target, initial in self.entries:
            if not initial:
                return False
            if sems.seen_at(first, last, target) > at:
                return True
        return False


NO_WAITS = WaitList([], 0)


@dataclass(frozen=True, slots=True)
class Incoming:
    """A dependence of the kernel whose blocks wait: its policy's waits and the semaphores they look at."""

    dep: TileDep
    waits: tuple[Wait, ...]
    semaphores: Semaphores


@dataclass(frozen=True, slots=True)
class Steps:
    """Where k steps lie in a block's work: loads of step j are issued *stages* steps before it is computed.

    *first_load_ps* is the work before the first load, *loop_ps* that before the first step; *wait_ps* is what a
    block's first wait costs when it is satisfied, *later_wait_ps* what each further one does.
    """

    first_load_ps: int
    loop_ps: int
    step_ps: int
    stages: int
    wait_ps: int
    later_wait_ps: int

    def waited(self, waits: int) -> int:
        """What so many satisfied waits cost together."""
        return self.wait_ps + (waits - 1) * self.later_wait_ps if waits else 0

    def position(self, step: int) -> int:
        """Work done when the loads of the slice's *step*-th step are issued, waits not counted."""
        return self.first_load_ps if step < self.stages else self.loop_ps + (step - self.stages) * self.step_ps


#: Values evaluated at a time when wait lists are compiled.
_CHUNK = 1_000_000


class WaitCompiler:
    """Makes the wait lists of a kernel's blocks, one for each value of the coordinates that the waits depend on.

    *gate* is a wait that every block makes before all others, and that costs it nothing once it is satisfied.
    """

    def __init__(self, kernel: Kernel, incoming: Sequence[Incoming], steps: Steps, gate: Entry | None = None) -> None:
        self._kernel = kernel
        self._gate = () if gate is None else (gate,)
        self._gate_alone = WaitList(list(self._gate), 0)
        self._incoming = incoming
        self._cache: dict[tuple[int, int, int], WaitList] = {}
        used = {name for inc in incoming for wait in inc.waits for expr in wait.exprs() for name in expr.uses()}
        if "k" in used:
            used |= {"z"}  # the steps of a slice depend on the slice
        rows, cols, slices = kernel.grid
        self._by_row, self._by_col, self._by_slice = (int(name in used) for name in ("r", "c", "z"))
        self._shape = (rows if self._by_row else 1, cols if self._by_col else 1, slices if self._by_slice else 1)
        self._rows_at_once = max(1, _CHUNK // (self._shape[1] * self._shape[2] * kernel.slice_steps))
        self._positions = [steps.position(step) for step in range(kernel.slice_steps)]
        self._waited = steps.waited

    def waits_of(self, row: int, col: int, slice_: int) -> WaitList:
        """The waits of the block that computes a tile (or one slice of it)."""
        key = (row * self._by_row, col * self._by_col, slice_ * self._by_slice)
        found = self._cache.get(key)
        if found is None:
            self._compile(key[0] // self._rows_at_once * self._rows_at_once)
            found = self._cache.setdefault(key, self._gate_alone)
        return found

    def _compile(self, first_row: int) -> None:
        """Fills the cache for a stretch of rows, with numpy over all their tiles and k steps at once."""
        _, cols, slices = self._shape
        rows = np.arange(first_row, min(first_row + self._rows_at_once, self._shape[0]))
        parts = [
            _evaluate(wait, inc.dep, place, self._kernel, (rows, np.arange(cols), np.arange(slices)))
            for place, inc in enumerate(self._incoming)
            for wait in inc.waits
        ]
        table = np.concatenate(parts) if parts else np.empty((0, 8), dtype=np.int64)
        table = table[np.lexsort((table[:, 5], table[:, 4], table[:, 3], table[:, 2], table[:, 1], table[:, 0]))]
        lists: dict[tuple[int, int, int], list[Entry]] = {}
        for row, col, slice_, step, place, index, target, count in table.tolist():
            entries = lists.setdefault((row, col, slice_), list(self._gate))
            where = self._positions[step] + self._waited(len(entries) - len(self._gate))
            sems = self._incoming[place].semaphores
            entries.append((where, sems, index, index + count, target, step < self._kernel.stages))
        for key, entries in lists.items():
            self._cache[key] = WaitList(entries, self._waited(len(entries) - len(self._gate)))


def _evaluate(
    wait: Wait, dep: TileDep, place: int, kernel: Kernel, axes: tuple[IntArray, IntArray, IntArray]
) -> IntArray:
    """Rows of (r, c, z, step in the slice, dependence, index, target, count) for every wait that is not empty."""
    r, c, z = axes[0].reshape(-1, 1, 1, 1), axes[1].reshape(1, -1, 1, 1), axes[2].reshape(1, 1, -1, 1)
    start = z * kernel.slice_steps
    if wait.at_k is None:
        k = start + np.arange(kernel.slice_steps).reshape(1, 1, 1, -1)
    else:
        k = wait.at_k.eval(r=r, c=c, z=z, k=first_step(dep).eval(z=z)) + 0 * start
    shape = np.broadcast_shapes(r.shape, c.shape, z.shape, k.shape)
    index, target, count = (expr.eval(r=r, c=c, z=z, k=k) for expr in (wait.index, wait.target, wait.count))
    inside = k < kernel.steps if wait.at_k is None else np.asarray(True)
    step = np.minimum(k - start, kernel.slice_steps - 1)  # a read past the slice's end happens before the tile's end
    keep = np.broadcast_to((count > 0) & inside, shape)
    columns = (r, c, z, step, np.asarray(place), index, target, count)
    return np.stack([np.broadcast_to(column, shape)[keep] for column in columns], axis=1)
