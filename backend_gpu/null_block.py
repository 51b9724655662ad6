"""A thread block on the null device: the work of the CUDA kernels in numpy, tile by tile, honouring every wait.

Operand A is read where and when a block's waits allow it, so a missing wait reads what is not there yet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend_gpu.abi import STAMPS, KernelFlag
from backend_gpu.bench import gemm_of
from backend_gpu.device import Job
from backend_gpu.elements import gelu, narrow, silu, widen
from backend_gpu.null_run import Clock, Grid, Routine, Waiting
from cusim.policies.base import Wait
from cusim.policies.orders import order_table
from cusim.policies.semaphores import posted
from cusim.program.depends import TileDep, dependences
from cusim.program.kernel import Kernel

#: Made-up times of a ticket, of a k step, and from the last step to the end of the stores.
TICKET_NS, STEP_NS, EPILOGUE_NS = 700, 100, 800

#: The largest value of a counter.
WORD = 0xFFFFFFFF
#: Array by address, for what kernels are given as pointers.
Memory = Mapping[int, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Link:
    """A dependence as a kernel sees it: its place among those of that end, and what each semaphore gets a run."""

    slot: int
    dep: TileDep
    waits: tuple[Wait, ...]
    totals: NDArray[np.int64]


class Code:
    """A kernel of a job as the null device runs it: tiles by ticket, waits and posts by tile."""

    def __init__(self, job: Job, number: int, memory: Memory) -> None:
        self.kernel: Kernel = job.program.kernels[number]
        self.row = job.params[number]
        self.flags = KernelFlag(int(self.row["flags"]))
        self.number, self.job, self.memory = number, job, memory
        self.tiles = order_table(job.plan.order_of(self.kernel.name), self.kernel.grid)
        deps = dependences(job.program) if job.plan.overlapped else ()
        self.incoming = self._links([dep for dep in deps if dep.consumer == self.kernel.name])
        self.outgoing = self._links([dep for dep in deps if dep.producer == self.kernel.name])
        self._parts: dict[int, dict[int, NDArray[np.float32]]] = {}
        self._posts = [(link.slot, posted(job.plan.sync[link.dep.name], link.dep)) for link in self.outgoing]

    def _links(self, deps: list[TileDep]) -> list[Link]:
        sync = self.job.plan.sync
        return [
            Link(slot, dep, sync[dep.name].waits(dep), posted(sync[dep.name], dep).total)
            for slot, dep in enumerate(deps)
        ]

    def word(self, name: str) -> NDArray[np.uint32]:
        """The array that begins at the address in a field of the parameters."""
        return words_at(self.memory, int(self.row[name]))

    def ticket(self, epoch: int, block: int) -> int:
        """The next ticket, or the block's index."""
        found = block
        if self.flags & KernelFlag.TICKETED:
            counter = self.word("tickets")
            found = (int(counter[0]) - (epoch - 1) * self.kernel.blocks) & WORD
            grow(counter, 0, 1)
        return self.kernel.blocks - 1 - found if self.flags & KernelFlag.REVERSE else found

    def due(self, tile: tuple[int, int, int]) -> dict[int, list[tuple[int, int, int, int]]]:
        """By k step of the tile's slice: the semaphores to be waited for, as (slot, first, count, target)."""
        if self.flags & KernelFlag.NO_WAIT:
            return {}
        row, col, slice_ = tile
        first, last = self.span(slice_)
        found: dict[int, list[tuple[int, int, int, int]]] = {}
        for link in self.incoming:
            for wait in link.waits:
                at = {"r": row, "c": col, "z": slice_}
                steps = range(first, last) if wait.at_k is None else [int(wait.at_k.eval(**at, k=first))]
                for step in steps:
                    index, target, count = (int(e.eval(**at, k=step)) for e in (wait.index, wait.target, wait.count))
                    if count > 0:
                        made = max(first, min(step, last - 1))
                        found.setdefault(made, []).append((link.slot, index, count, target))
        return found

    def span(self, slice_: int) -> tuple[int, int]:
        """The k steps of a slice."""
        first = slice_ * self.kernel.slice_steps
        return first, max(first, min(first + self.kernel.slice_steps, self.kernel.steps))

    def post(self, epoch: int, row: int, col: int) -> bool:
        """Posts a finished tile; False where there is nobody to post to."""
        tile = row * self.kernel.grid[1] + col
        for slot, posts in self._posts:
            semaphores = self.memory[int(self.row["sem_out"][slot])]
            for place in np.flatnonzero(posts.tile == tile):
                index, add = int(posts.index[place]), int(posts.add[place])
                if self.flags & KernelFlag.STORE_POST:
                    semaphores[index] = epoch * add & WORD
                else:
                    grow(semaphores, index, add)
        return bool(self._posts)

    def missing(self, epoch: int, due: tuple[int, int, int, int]) -> tuple[int, int, int] | None:
        """The first semaphore of a wait that has not reached its target: index, value, target."""
        slot, first, count, target = due
        semaphores = self.memory[int(self.row["sem_in"][slot])]
        for index in range(first, first + count):
            total = int(self.incoming[slot].totals[index])
            wanted = ((epoch - 1) * total + target) & WORD
            value = int(semaphores[index])
            if ((value - wanted) & WORD) >= 2**31:
                return index, value, wanted
        return None

    def multiply(self, tile: tuple[int, int, int], first: int, last: int) -> NDArray[np.float32]:
        """The product over k steps [first, last) of what the operands hold now."""
        gemm, (height, width, depth) = gemm_of(self.kernel), self.kernel.tile
        rows = slice(tile[0] * height, min((tile[0] + 1) * height, gemm.m))
        cols = slice(tile[1] * width, min((tile[1] + 1) * width, gemm.n))
        steps = slice(first * depth, min(last * depth, gemm.k))
        a, b = self._matrix("a")[rows], self._matrix("b")[steps, cols]
        if gemm.prologue == "swiglu":
            gate = widen(np, a[:, steps], gemm.dtype)
            other = widen(np, a[:, gemm.k + steps.start : gemm.k + steps.stop], gemm.dtype)
            left = widen(np, narrow(np, silu(np, gate) * other, gemm.dtype), gemm.dtype)
        else:
            left = widen(np, a[:, steps], gemm.dtype)
        found: NDArray[np.float32] = left @ widen(np, b, gemm.dtype)
        return found

    def store(self, tile: tuple[int, int, int], product: NDArray[np.float32]) -> None:
        """Writes a finished tile, its epilogue applied."""
        gemm, (height, width, _) = gemm_of(self.kernel), self.kernel.tile
        values = gelu(np, product) if gemm.epilogue == "gelu" else product
        out = self._matrix("c")[tile[0] * height : (tile[0] + 1) * height, tile[1] * width : (tile[1] + 1) * width]
        out[:] = narrow(np, values, gemm.dtype)

    def reduce(self, tile: tuple[int, int, int], part: NDArray[np.float32]) -> NDArray[np.float32] | None:
        """Keeps a slice's part; the sum of all parts for the slice that comes last, None for the others."""
        slices = self.kernel.grid[2]
        if slices == 1:
            return part
        arrivals, place = self.word("arrivals"), tile[0] * self.kernel.grid[1] + tile[1]
        grow(arrivals, place, 1)
        kept = self._parts.setdefault(place, {})
        kept[tile[2]] = part
        if int(arrivals[place]) % slices:
            return None
        whole: NDArray[np.float32] = np.sum([kept[z] for z in range(slices)], axis=0, dtype=np.float32)
        return whole

    def delay(self, ticket: int) -> int:
        """How late a tile is posted in a check run."""
        most = int(self.row["delay_max_ns"])
        if not most:
            return 0
        seed = (int(self.row["delay_seed"]), self.number, ticket)
        return int(np.random.default_rng(seed).integers(most))

    def _matrix(self, name: str) -> NDArray[Any]:
        found = self.memory[int(self.row[name])]
        return found


def grow(words: NDArray[np.uint32], place: int, by: int) -> None:
    """Adds to a counter, which wraps."""
    words[place] = (int(words[place]) + by) & WORD


def words_at(memory: Memory, address: int) -> NDArray[Any]:
    """What lies at an address, to the end of the array that holds it."""
    for begin, array in memory.items():
        if begin <= address < begin + array.nbytes:
            return array.reshape(-1)[(address - begin) // array.itemsize :]
    raise KeyError(address)


def block_routine(
    code: Code, clock: Clock, epoch: int, grid: Grid, block: int, sm: int, stamps: NDArray[Any] | None
) -> Routine:
    """The life of one block, stamped as the CUDA kernels stamp it."""
    placed = clock.now
    grow(code.word("started"), 0, 1)
    ticket = code.ticket(epoch, block)
    yield TICKET_NS if code.flags & KernelFlag.TICKETED else 0
    ready, waited, first_load = clock.now, 0, -1
    before = grid.before
    if code.flags & KernelFlag.PDL_WAIT_START and before is not None:
        yield Waiting(lambda: before.done)
    row, col, slice_ = (int(x) for x in code.tiles[ticket])
    tile = (row, col, slice_)
    first, last = code.span(slice_)
    due = code.due(tile)
    stops = sorted({first, *due})
    product: Any = np.float32(0)
    for begin, end in zip(stops, (*stops[1:], last), strict=True):
        since = clock.now
        for wait in due.get(begin, ()):
            yield from _held(code, epoch, grid, block, wait)
        waited += clock.now - since
        first_load = clock.now if first_load < 0 else first_load
        if begin < end:
            product = product + code.multiply(tile, begin, end)
            yield STEP_NS * (end - begin)
    yield EPILOGUE_NS + code.delay(ticket)
    whole = code.reduce(tile, product)
    ended = clock.now
    if whole is not None:
        code.store(tile, whole)
        code.post(epoch, row, col)
    if stamps is not None:
        line = stamps.view(STAMPS)[ticket]
        where = sm | block << 32
        for name, value in zip(
            STAMPS.names or (), (placed, ready, first_load, ended, clock.now, where, waited, 0), strict=True
        ):
            line[name] = value
    if code.flags & KernelFlag.PDL_WAIT_END and ticket == code.kernel.blocks - 1 and before is not None:
        yield Waiting(lambda: before.done)


def _held(code: Code, epoch: int, grid: Grid, block: int, wait: tuple[int, int, int, int]) -> Routine:
    """Waits for one range of semaphores."""
    found = code.missing(epoch, wait)
    if found is None:
        return
    index, _, target = found
    semaphores = code.memory[int(code.row["sem_in"][wait[0]])]
    open_: Callable[[], bool] = lambda: code.missing(epoch, wait) is None  # noqa: E731 - a condition, not a function
    yield Waiting(open_, 1, grid.number, block, wait[0], index, lambda: int(semaphores[index]), target)
