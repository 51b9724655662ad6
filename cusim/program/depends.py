"""Tile dependences of a program, derived from overlapping accesses (cuSync §III, cuSyncGen §IV)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cusim.errors import refuse
from cusim.program.buffer import Access, Buffer
from cusim.program.expr import Expr, IntArray, as_expr, ceil_div, maximum, minimum
from cusim.program.kernel import Kernel
from cusim.program.program import Program


@dataclass(frozen=True, slots=True)
class TileSpan:
    """Producer tiles that a consumer tile reads: rows [r_lo, r_hi) x columns [c_lo, c_hi).

    The bounds are expressions of the consumer's r, c, z and k. With *at_k* None the read is made at every k step of
    the slice; otherwise once, before that step (0: before the first step of every slice).
    """

    r_lo: Expr
    r_hi: Expr
    c_lo: Expr
    c_hi: Expr
    at_k: int | None


@dataclass(frozen=True, slots=True)
class TileDep:
    """A consumer kernel reads what a producer kernel writes; *spans* hold which tiles of it, for each read."""

    producer: str
    consumer: str
    buffer: str
    spans: tuple[TileSpan, ...]
    producer_grid: tuple[int, int, int]
    consumer_grid: tuple[int, int, int]
    slice_steps: int
    steps: int

    @property
    def name(self) -> str:
        """The name used in plans and on the command line: ``producer>consumer``."""
        return f"{self.producer}>{self.consumer}"


@dataclass(frozen=True, slots=True)
class Hazard:
    """A later kernel writes what an earlier one reads (``war``) or writes (``waw``): no tile policy covers it."""

    earlier: str
    later: str
    buffer: str
    kind: str


def dependences(program: Program) -> tuple[TileDep, ...]:
    """Every read-after-write dependence, in issue order of consumer and then producer.

    Raises InputError where a producer's writes do not tile the buffer, so that no tile owns an element.
    """
    return _derived(program)


@lru_cache(maxsize=32)  # asked for again at every stage of a prediction
def _derived(program: Program) -> tuple[TileDep, ...]:
    found: list[TileDep] = []
    for position, consumer in enumerate(program.kernels):
        for producer in program.kernels[:position]:
            found += _between(program, producer, consumer)
    return tuple(found)


def hazards(program: Program) -> tuple[Hazard, ...]:
    """Buffers used again by a later kernel; such kernels may only overlap behind a barrier."""
    found = []
    for position, later in enumerate(program.kernels):
        written = {access.buffer for access in later.writes}
        for earlier in program.kernels[:position]:
            read = {access.buffer for access in earlier.reads}
            wrote = {access.buffer for access in earlier.writes}
            found += [Hazard(earlier.name, later.name, name, "war") for name in sorted(read & written)]
            found += [Hazard(earlier.name, later.name, name, "waw") for name in sorted(wrote & written)]
    return tuple(found)


def span_arrays(span: TileSpan, dep: TileDep) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """The span's bounds over (R, C, Z, steps of a whole tile), broadcast only over the variables they use."""
    rows, cols, slices = dep.consumer_grid
    values = {
        "r": np.arange(rows).reshape(-1, 1, 1, 1),
        "c": np.arange(cols).reshape(1, -1, 1, 1),
        "z": np.arange(slices).reshape(1, 1, -1, 1),
        "k": np.arange(dep.steps).reshape(1, 1, 1, -1),
    }
    r_lo, r_hi, c_lo, c_hi = (
        bound.eval(**{name: values[name] for name in bound.uses()})
        for bound in (span.r_lo, span.r_hi, span.c_lo, span.c_hi)
    )
    return r_lo, r_hi, c_lo, c_hi


def needed_tiles(dep: TileDep, row: int, col: int, slice_: int) -> set[tuple[int, int]]:
    """Producer tiles that one consumer block reads, as (r, c) pairs: the oracle that policies are tested against."""
    first = slice_ * dep.slice_steps
    last = min(first + dep.slice_steps, dep.steps)
    tiles: set[tuple[int, int]] = set()
    for span in dep.spans:
        steps = range(first, last) if span.at_k is None else (first + span.at_k,)
        for step in steps:
            at = {"r": row, "c": col, "z": slice_, "k": step}
            r_lo, r_hi, c_lo, c_hi = (int(b.eval(**at)) for b in (span.r_lo, span.r_hi, span.c_lo, span.c_hi))
            tiles |= {(r, c) for r in range(r_lo, r_hi) for c in range(c_lo, c_hi)}
    return tiles


def _between(program: Program, producer: Kernel, consumer: Kernel) -> Iterator[TileDep]:
    for write in producer.writes:
        reads = [read for read in consumer.reads if read.buffer == write.buffer]
        if not reads:
            continue
        buffer = program.buffer(write.buffer)
        spans = tuple(_span(read, write, producer, buffer) for read in reads)
        yield TileDep(
            producer.name, consumer.name, buffer.name, spans, producer.grid, consumer.grid,
            consumer.slice_steps, consumer.steps,
        )  # fmt: skip


def _span(read: Access, write: Access, producer: Kernel, buffer: Buffer) -> TileSpan:
    """The tiles that own the elements read: the write's ranges, solved for the producer's coordinates."""
    r_lo, r_hi = _owners(read.rows, write.rows, "r", producer, 0, buffer)
    c_lo, c_hi = _owners(read.cols, write.cols, "c", producer, 1, buffer)
    return TileSpan(r_lo, r_hi, c_lo, c_hi, None if read.streamed else (read.at_k or 0))


def _owners(
    read: tuple[Expr, Expr], write: tuple[Expr, Expr], axis: str, producer: Kernel, side: int, buffer: Buffer
) -> tuple[Expr, Expr]:
    """Half-open range of producer coordinates along one axis whose written range meets the range read."""
    count = producer.grid[side]
    start, size = _tiling(write, axis, count, producer.name, buffer.name)
    low = maximum((read[0] - start) // size, 0) if _may_be_negative(read[0], start) else (read[0] - start) // size
    return low, minimum(ceil_div(read[1] - start, size), count)


def _tiling(write: tuple[Expr, Expr], axis: str, count: int, producer: str, buffer: str) -> tuple[int, int]:
    """Offset and size of tiles that lie side by side along an axis; refuses anything else."""
    used = write[0].uses() | write[1].uses()
    if used <= {axis}:
        places = np.arange(count)
        lows, highs = (np.broadcast_to(bound.eval(**{axis: places}), count) for bound in write)
        start, size = int(lows[0]), int(highs[0] - lows[0])
        if size > 0 and (highs - lows == size).all() and (highs[:-1] == lows[1:]).all():
            return start, size
    shown = f"[{write[0]}, {write[1]})"
    raise refuse(f"kernel {producer}", f"writes.{buffer}", shown, "tiles must lie side by side along rows and columns")


def _may_be_negative(low: Expr, start: int) -> bool:
    """False where a read obviously starts inside the buffer, to keep the printed code short."""
    at_zero = int(low.eval(**dict.fromkeys(low.uses(), 0)))
    return start > 0 or at_zero < 0 or "-" in str(low)


def first_step(dep: TileDep) -> Expr:
    """The first k step of the consumer block's slice, as an expression of z."""
    from cusim.program.expr import z

    return z * dep.slice_steps if dep.consumer_grid[2] > 1 else as_expr(0)
