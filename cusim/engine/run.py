"""A kernel as the engine runs it: its blocks by ticket, their work, their waits and posts, and what was recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from cusim.engine.clock import Clock
from cusim.engine.cost import BlockCost
from cusim.engine.panels import Panels, Shares
from cusim.engine.semaphore import Semaphores
from cusim.engine.waits import NO_WAITS, Incoming, Steps, WaitCompiler, WaitList
from cusim.policies.base import Post
from cusim.program.expr import IntArray
from cusim.program.kernel import Kernel

#: Semaphore and increment of each output tile, by r * C + c.
TilePosts: TypeAlias = tuple[list[int], list[int]]

#: Parts of a full tensor pipe, and bytes a second of L2, HBM and the link, that a block asks for at full speed.
Load: TypeAlias = tuple[int, int, int, int]


#: SMs of a TPC, whose numbers follow one another; it has one way to L2.
SMS_A_TPC = 2


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A dependence that the kernel's finished tiles post to."""

    semaphores: Semaphores
    posts: tuple[TilePosts, ...]
    visible_ps: int


@dataclass(frozen=True, slots=True)
class Overheads:
    """Times of a kernel's blocks that the plan decides: ticket before, post after, the first wait and each
    later one where they are satisfied, refill after one that was not.

    *preload_ps* is the main-loop time that goes by the loads of the independent operand which run ahead; 0 without R.
    *merge_ps* is what a serial split-K slice takes to read the sum of those before it.
    """

    entry_ps: int
    post_ps: int
    wait_ps: int
    later_wait_ps: int
    refill_ps: int
    preload_ps: int = 0
    merge_ps: int = 0


class KernelRun:
    """One kernel of a run. ``placed``, ``lane`` and ``ended`` are records by ticket.

    ``late`` holds, for blocks that stood still, when they first went on and how long they waited in all. ``started``
    fires with the first block, ``all_started`` with the last, ``done`` when every block has left.
    """

    def __init__(
        self,
        index: int,
        kernel: Kernel,
        table: IntArray,
        cost: BlockCost,
        overheads: Overheads,
        demand: tuple[int, ...],
        slots: int,
        env: Clock,
    ) -> None:
        self.index = index
        self.kernel = kernel
        self.table = table
        self.cost = cost
        self.overheads = overheads
        self.demand = demand
        self.blocks = len(table)
        self.to_place = min(self.blocks, slots) if kernel.persistent else self.blocks
        self.next_ticket = 0
        self.finished = 0
        self.first_load_ps = overheads.entry_ps + max(
            0, cost.prologue_ps - (overheads.refill_ps if cost.fill_ps is None else cost.fill_ps)
        )
        self.work = self._work_by_slice()
        self.panels: Panels | None = None
        self._loads: dict[tuple[int, Shares | None], Load] = {}
        self.last_work = self.work[-1]
        self.last_load = self.load_of(self.last_work)
        self.persistent = kernel.persistent
        self.even = len(set(self.work)) == 1
        self.slices: list[int] = table[:, 2].tolist()
        self._rows: list[int] = table[:, 0].tolist()
        self._cols: list[int] = table[:, 1].tolist()
        self.tiles: list[int] = (table[:, 0] * kernel.grid[1] + table[:, 1]).tolist()
        self.outgoing: tuple[Outgoing, ...] = ()
        self.waits: WaitCompiler | None = None
        self.serial: Semaphores | None = None
        self.slice_visible_ps = self.reduce_ps = 0
        self.arrived = [0] * kernel.output_tiles
        self.last_slice = [-1] * kernel.output_tiles
        self.worked_ps = 0
        self.placed = [0] * self.blocks
        self.lane: list[Any] = [None] * self.blocks  # the Lane of each ticket; lanes know runs, not the other way round
        self.ended = [-1] * self.blocks
        self.late: dict[int, tuple[int, int]] = {}
        self.enqueue_ps = 0
        self.arrive_ps = self.done_ps = -1  # not yet
        self.started, self.all_started, self.done = env.event(), env.event(), env.event()

    def connect(self, incoming: Sequence[Incoming], outgoing: Sequence[Outgoing]) -> None:
        """Adds the dependences that the kernel waits for and posts to."""
        self.outgoing = tuple(outgoing)
        kernel, over = self.kernel, self.overheads
        loop_ps = over.entry_ps + self.cost.prologue_ps
        steps = Steps(self.first_load_ps, loop_ps, self.cost.step_ps, kernel.stages, over.wait_ps, over.later_wait_ps)
        if incoming:
            self.waits = WaitCompiler(kernel, incoming, steps)
        if kernel.grid[2] > 1 and kernel.reduce == "serial":
            totals = [kernel.grid[2] - 1] * kernel.output_tiles
            self.serial = Semaphores(f"{kernel.name} slices", -1, totals, 0)

    def waits_of(self, ticket: int) -> WaitList:
        """The waits of a block, the one for the slice before it last."""
        row, col = self._rows[ticket], self._cols[ticket]
        slice_ = self.slices[ticket]
        waits = self.waits.waits_of(row, col, slice_) if self.waits else NO_WAITS
        if self.serial is not None and slice_ > 0:
            tile = self.tiles[ticket]
            after = self.overheads.merge_ps + self.cost.tail_ps + self.overheads.post_ps
            where = self.work[slice_] + waits.extra_ps - after
            return WaitList([*waits.entries, (where, self.serial, tile, tile + 1, slice_, False)], waits.extra_ps)
        return waits

    def asks(self, ticket: int, work_ps: int, sm: int, at: int) -> Load:
        """What the block of *ticket*, which starts on *sm* at *at* with so much work, will ask for."""
        if self.panels is None:
            return self.last_load if work_ps == self.last_work else self.load_of(work_ps)
        place = (self._rows[ticket], self._cols[ticket], self.slices[ticket])
        return self.load_of(work_ps, self.panels.shares(*place, sm // SMS_A_TPC, at))

    def load_of(self, work_ps: int, shares: Shares | None = None) -> Load:
        """What a block of *work_ps* asks for: (pipe, L2, HBM, link); *shares* replaces the cost's own of the last two.

        Blocks are in different phases at any time, so it is the mean over the block that counts, its fixed times and
        satisfied waits included.
        """
        load = self._loads.get((work_ps, shares))
        if load is None:
            cost = self.cost
            looped = self.kernel.slice_steps * cost.step_ps / max(work_ps, 1)
            l2_bytes = cost.l2_bytes_per_s
            memory = (cost.hbm_bytes_per_s, cost.link_bytes_per_s)
            if shares is not None:
                memory = (round(l2_bytes * shares[0]), round(l2_bytes * shares[1]))
            asked = (cost.pipe_load, l2_bytes, *memory)
            pipe, l2, hbm, link = (round(part * min(looped, 1.0)) for part in asked)
            if cost.partials_bytes:
                handed_in = cost.partials_bytes * 10**12 // work_ps
                l2 += 2 * handed_in  # each slice's is written once and read once
                hbm += 0 if cost.partials_stay else handed_in
            load = self._loads[work_ps, shares] = (pipe, l2, hbm, link)
        return load

    def loops(self) -> bool:
        """True while blocks of a persistent kernel take further tickets without leaving their slots."""
        return self.kernel.persistent and self.next_ticket < self.blocks

    def posts_now(self, ticket: int) -> bool:
        """True for the block that finishes an output tile: the last slice, or the last to arrive."""
        if self.serial is not None:
            return self.slices[ticket] == self.kernel.grid[2] - 1
        return self.last_slice[self.tiles[ticket]] == ticket

    def _work_by_slice(self) -> list[int]:
        """Work of a block of each slice, waits not counted; the last slice may have fewer k steps."""
        kernel, cost, over = self.kernel, self.cost, self.overheads
        fixed = over.entry_ps + cost.prologue_ps + cost.tail_ps + over.post_ps
        work = []
        for slice_ in range(kernel.grid[2]):
            steps = min(kernel.slice_steps, kernel.steps - slice_ * kernel.slice_steps)
            merge = over.merge_ps if slice_ and kernel.reduce == "serial" else 0
            work.append(fixed + merge + max(steps, 0) * cost.step_ps)
        return work


def posts_by_tile(posts: Sequence[Post], kernel: Kernel) -> tuple[TilePosts, ...]:
    """For every post of a policy, the semaphore and the increment of each output tile, indexed by r * C + c."""
    rows, cols, _ = kernel.grid
    r, c = np.divmod(np.arange(rows * cols), cols)
    return tuple(
        (
            np.broadcast_to(post.index.eval(r=r, c=c), r.shape).tolist(),
            np.broadcast_to(post.add.eval(r=r, c=c), r.shape).tolist(),
        )
        for post in posts
    )


def semaphore_totals(posts: Sequence[TilePosts], size: int) -> list[int]:
    """What all tiles together post to each of *size* semaphores."""
    totals = np.zeros(size, dtype=np.int64)
    for indices, adds in posts:
        np.add.at(totals, indices, adds)
    return [int(total) for total in totals]
