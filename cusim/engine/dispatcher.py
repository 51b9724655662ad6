"""The dispatcher: which kernel's block goes next, and to which SM (design §6.2)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from heapq import heapify, heapreplace
from typing import Literal, Protocol, TypeAlias

from simpy.events import Event

from cusim.engine.clock import Clock
from cusim.engine.lane import Lane, Sm
from cusim.engine.run import KernelRun
from cusim.machine.machine import Machine

Rule: TypeAlias = Literal["arrival", "random", "adversarial"]
RULES: tuple[Rule, ...] = ("arrival", "random", "adversarial")


class Grid(Protocol):
    """What the dispatcher knows of a kernel: its place in the program, a block's size, blocks still to place."""

    index: int
    demand: tuple[int, ...]
    to_place: int
    arrive_ps: int
    started: Event
    all_started: Event
    done: Event

    def loops(self) -> bool:
        """True while the kernel's placed blocks take further tickets themselves."""


class Dispatcher:
    """Places the blocks of arrived kernels. *start* begins a block in a lane at a given time.

    ``arrival``: only the kernel at the head of the queue places blocks, the next one once all of them are placed (the
    leftover policy); the queue is ordered by arrival, ties by the seed. ``random`` and ``adversarial`` give every free
    slot to a kernel drawn at random, or to the one latest in the program: what no documented rule forbids.
    """

    def __init__(
        self, env: Clock, machine: Machine, sms: Sequence[Sm], rule: Rule, seed: int,
        start: Callable[[Lane, Grid, int], None],
    ) -> None:  # fmt: skip
        self._env = env
        self._order = [sms[index] for index in machine.dispatch.sm_order]
        self._most_room = machine.dispatch.placement == "most-room"
        self._spacing = machine.dispatch.block_ps
        self._refill = machine.dispatch.refill_ps
        self._most_grids = machine.limits.resident_grids
        self._rule = rule
        self._random = random.Random(seed)
        self._start = start
        self._free_at = 0
        self._resident = 0
        self._held: list[Grid] = []
        self._queue: list[tuple[int, float, Grid]] = []

    def arrive(self, grid: Grid) -> None:
        """A kernel's dependencies are resolved and its launch has reached the GPU."""
        if self._resident >= self._most_grids:
            self._held.append(grid)
            return
        self._resident += 1
        grid.done.callbacks.append(self._grid_done)
        now = self._env.now
        grid.arrive_ps = now
        behind = any(at == now and other.started.triggered for at, _, other in self._queue)
        self._queue.append((now, self._random.random() + behind, grid))  # never before one that has started already
        self._queue.sort(key=lambda entry: entry[:2])
        self.fill()

    def heir(self, grid: KernelRun) -> KernelRun | None:
        """The kernel that takes over a slot just left by a block of *grid*: the head if its blocks are of that size."""
        if self._rule != "arrival":
            return None
        while self._queue:
            head = self._queue[0][2]
            if head.to_place:
                return head if isinstance(head, KernelRun) and head.demand == grid.demand else None
            self._drop(head)
        return None

    def claim(self, grid: Grid) -> int:
        """Counts one block as placed, in a slot just left, and returns when it starts."""
        return self._claim(grid, self._refill)

    def _claim(self, grid: Grid, after: int = 0) -> int:
        """Counts one block as placed, to start so much later; the next kernel follows once this was the last."""
        now = self._env.now
        turn = self._free_at if self._free_at > now else now
        self._free_at = turn + self._spacing
        at = turn + after
        grid.to_place -= 1
        if not grid.started.triggered:
            self._fire(grid.started, at)
        if not grid.to_place:
            self._all_placed(grid, at)
        return at

    def nothing_left(self, grid: Grid) -> None:
        """The blocks of *grid* still to place would find no ticket: they count as placed."""
        grid.to_place = 0
        self._all_placed(grid, self._env.now)

    def freed(self, sm: Sm) -> None:
        """Room has come free on one SM."""
        if self._rule != "arrival":
            while self._place_one(sm, self._refill):
                pass
            return
        while self._queue:
            grid = self._queue[0][2]
            while grid.to_place and sm.fits(grid.demand):
                self._start(sm.take(grid.demand), grid, self.claim(grid))
            if grid.to_place:
                return
            self._drop(grid)
            self.fill()

    def fill(self) -> None:
        """Places whatever fits, anywhere."""
        if self._rule != "arrival":
            while sum(self._place_one(sm) for sm in self._order):
                pass  # one block on each SM, round after round
            return
        while self._queue:
            grid = self._queue[0][2]
            self._spread(grid)
            if grid.to_place:
                return
            self._drop(grid)

    def _place_one(self, sm: Sm, after: int = 0) -> bool:
        """Gives one slot of an SM to a kernel drawn at random, or to the latest of the program; False if none fits."""
        waiting = [grid for _, _, grid in self._queue if grid.to_place]
        if self._rule == "random":
            self._random.shuffle(waiting)
        else:
            waiting.sort(key=lambda grid: -grid.index)
        grid = next((grid for grid in waiting if sm.fits(grid.demand)), None)
        if grid is None:
            return False
        self._launch(sm.take(grid.demand), grid, after)
        if not grid.to_place:
            self._drop(grid)
        return True

    def _spread(self, grid: Grid) -> None:
        """One block on each SM with room, round after round in the SM order, or always where most room is left."""
        rooms = [(sm.room_for(grid.demand), rank, sm) for rank, sm in enumerate(self._order)]
        if not self._most_room:
            while grid.to_place:
                rooms = [(room, rank, sm) for room, rank, sm in rooms if room > 0]
                if not rooms:
                    return
                for _, _, sm in rooms[: grid.to_place]:
                    self._launch(sm.take(grid.demand), grid)
                rooms = [(room - 1, rank, sm) for room, rank, sm in rooms]
            return
        heap = [(-room, rank, sm) for room, rank, sm in rooms if room > 0]
        heapify(heap)
        while grid.to_place and heap and heap[0][0] < 0:
            room, rank, sm = heap[0]
            self._launch(sm.take(grid.demand), grid)
            heapreplace(heap, (room + 1, rank, sm))

    def _launch(self, lane: Lane, grid: Grid, after: int = 0) -> None:
        self._start(lane, grid, self._claim(grid, after))

    def _all_placed(self, grid: Grid, at: int) -> None:
        """The last block of a kernel starts at *at*; the kernel behind it in the queue is next."""
        self._fire(grid.all_started, at)
        self._env.timeout(0).callbacks.append(lambda _: self._next_after(grid))

    def _next_after(self, grid: Grid) -> None:
        self._drop(grid)
        self.fill()

    def _fire(self, event: Event, at: int) -> None:
        """Makes an event happen at *at*, now or a dispatch delay later."""
        event._ok, event._value = True, None  # triggered from here on, as SimPy's own Timeout is
        self._env.schedule(event, delay=at - self._env.now)

    def _drop(self, grid: Grid) -> None:
        self._queue = [entry for entry in self._queue if entry[2] is not grid]

    def _grid_done(self, event: Event) -> None:
        self._resident -= 1
        if self._held:
            self.arrive(self._held.pop(0))
