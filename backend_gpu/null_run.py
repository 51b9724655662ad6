"""One run on the null device: streams, SMs and blocks as coroutines on a clock that is made up.

A coroutine yields how many nanoseconds it takes, or a condition that it waits for. Nothing is decided by chance: what
is ready runs in the order in which it became so.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from backend_gpu.device import Job
from backend_gpu.launch import Fork, Hold, Join, Start, Step

Condition: TypeAlias = Callable[[], bool]
Routine: TypeAlias = Generator["int | Waiting", None, None]

#: Made-up times: a block to the next on an SM, a kernel to the next in a stream.
PLACE_NS, GAP_NS = 10, 1_000


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a coroutine waits for, and what it would write into the fault record if it waited for ever."""

    until: Condition
    kind: int = 0
    kernel: int = 0
    block: int = 0
    slot: int = 0
    index: int = 0
    seen: Callable[[], int] = lambda: 0
    target: int = 0


class Clock:
    """Runs coroutines until all have ended, or until none of those left can go on."""

    def __init__(self) -> None:
        self.now = 0
        self._ready: list[tuple[int, int, Routine]] = []
        self._waiting: list[tuple[Waiting, Routine]] = []
        self._number = itertools.count()

    def start(self, routine: Routine, delay: int = 0) -> None:
        """Lets a coroutine begin after *delay* ns."""
        heapq.heappush(self._ready, (self.now + delay, next(self._number), routine))

    def run(self) -> list[Waiting]:
        """What the coroutines that cannot go on wait for; empty where all have ended."""
        while self._ready:
            self.now, _, routine = heapq.heappop(self._ready)
            self._step(routine)
            self._wake()
        return [waiting for waiting, _ in self._waiting]

    def _step(self, routine: Routine) -> None:
        asked = next(routine, None)
        if isinstance(asked, Waiting):
            self._waiting.append((asked, routine))
        elif asked is not None:
            self.start(routine, asked)

    def _wake(self) -> None:
        still = []
        for waiting, routine in self._waiting:
            if waiting.until():
                self.start(routine)
            else:
                still.append((waiting, routine))
        self._waiting = still


@dataclass(slots=True)
class Grid:
    """A kernel of the run: how many of its blocks were placed, started and have ended; *before* it in its stream."""

    number: int
    blocks: int
    per_sm: int
    before: Grid | None
    placed: int = 0
    ended: int = 0

    @property
    def done(self) -> bool:
        """True when all blocks have ended, and so has the kernel before."""
        return self.ended == self.blocks and (self.before is None or self.before.done)

    @property
    def resident(self) -> bool:
        """True when all blocks have started."""
        return self.placed == self.blocks


#: Makes the coroutine of a block: grid, block index, SM.
MakeBlock: TypeAlias = Callable[[Grid, int, int], Routine]


@dataclass
class Run:
    """The streams of one job and the SMs that they share; *started* reads a kernel's counter of this run."""

    clock: Clock
    job: Job
    sms: int
    make_block: MakeBlock
    started: Callable[[int], int]
    _free: list[float] = field(default_factory=list)
    _queue: list[Grid] = field(default_factory=list)
    _finished: list[bool] = field(default_factory=list)

    def go(self) -> list[Waiting]:
        """Issues all steps and runs to the end; what stands still for ever."""
        self._free = [1.0] * self.sms
        self._finished = [False] * len(self.job.steps)
        for stream in sorted({step.stream if not isinstance(step, Join) else 0 for step in self.job.steps}):
            self.clock.start(self._stream(stream))
        return self.clock.run()

    def _stream(self, stream: int) -> Routine:
        before: Grid | None = None
        mine = [(place, step) for place, step in enumerate(self.job.steps) if _where(step) == stream]
        for (place, step), following in itertools.zip_longest(mine, mine[1:]):
            if isinstance(step, Start):
                loaded = self.job.loaded[step.kernel]
                before = Grid(step.kernel, loaded.grid, loaded.blocks_per_sm, before)
                yield GAP_NS
                self._arrive(before)
                early = following is not None and isinstance(following[1], Start) and following[1].early
                grid = before
                yield _resident(grid) if early else _done(grid)
            else:
                yield self._waiting(place, step)
            self._finished[place] = True

    def _waiting(self, place: int, step: Step) -> Waiting:
        """What a step that starts nothing waits for."""
        if isinstance(step, Hold):
            wanted = self.job.loaded[step.producer].grid if step.blocks is None else step.blocks
            number = step.producer
            return Waiting(
                lambda: self.started(number) >= wanted, 3, number, 0, 0, 0,
                lambda: self.started(number), wanted,
            )  # fmt: skip
        source = 0 if isinstance(step, Fork) else step.stream
        earlier = [at for at, other in enumerate(self.job.steps[:place]) if _where(other) == source]
        return Waiting(lambda: all(self._finished[at] for at in earlier))

    def _arrive(self, grid: Grid) -> None:
        self._queue.append(grid)
        self._place()

    def _place(self) -> None:
        """The kernel at the head places what fits, on the emptiest SM; the next one only when all of it is placed."""
        while self._queue:
            grid = self._queue[0]
            share = 1.0 / grid.per_sm
            sm = max(range(self.sms), key=lambda number: (self._free[number], -number))
            if self._free[sm] < share - 1e-9:
                return
            self._free[sm] -= share
            self.clock.start(self._block(grid, grid.placed, sm, share), PLACE_NS)
            grid.placed += 1
            if grid.resident:
                self._queue.pop(0)

    def _block(self, grid: Grid, index: int, sm: int, share: float) -> Routine:
        yield from self.make_block(grid, index, sm)
        grid.ended += 1
        self._free[sm] += share
        self._place()


def _resident(grid: Grid) -> Waiting:
    return Waiting(lambda: grid.resident)


def _done(grid: Grid) -> Waiting:
    return Waiting(lambda: grid.done)


def _where(step: Step) -> int:
    """The stream that carries a step out: a join is stream 0's."""
    return 0 if isinstance(step, Join) else step.stream


def stuck(waits: Sequence[Waiting]) -> Waiting | None:
    """The first of those that stand still which says what it waits for."""
    return next((waiting for waiting in waits if waiting.kind), waits[0] if waits else None)
