"""Kernels from what describes them: one way for TOML files, workloads and Python callers alike."""

from __future__ import annotations

import math
from typing import Literal

from cusim.program.buffer import Access, Buffer
from cusim.program.expr import Expr, as_expr, c, k, minimum, r
from cusim.program.kernel import DTYPE_BYTES, BlockResources, Cost, Gemm, Kernel, Measured, Stream

#: k steps that loads run ahead where nothing else is said.
DEFAULT_STAGES = 4
#: The tile of a kernel that is no GEMM: its buffer has one element a tile.
UNIT_TILE = (1, 1, 1)

Reduce = Literal["serial", "last_arriver"]
Parts = tuple[Kernel, tuple[Buffer, ...]]


def gemm_kernel(
    name: str,
    gemm: Gemm,
    tile: tuple[int, int, int],
    block: BlockResources,
    *,
    a: str | None = None,
    split_k: int = 1,
    stages: int = DEFAULT_STAGES,
    reduce: Reduce = "serial",
    measured: tuple[int, str] | None = None,
    needs: tuple[Access, ...] = (),
) -> Parts:
    """A matrix product and the buffers that are new with it: its output *name*, B ``<name>.b`` and, without *a*, A.

    The grid is ceil(m / tile m) x ceil(n / tile n) x *split_k*, with ceil(k / tile k) steps. *a* names the buffer that
    is operand A; with the ``swiglu`` prologue that buffer has two halves of k columns, both read at every step.
    *needs* are reads besides the operands; *measured* is a time in ps and the machine it was taken on.
    """
    rows, cols, depth = tile
    size = DTYPE_BYTES[gemm.dtype]
    operand = f"{name}.a" if a is None else a
    buffers = [Buffer(name, gemm.m, gemm.n, size), Buffer(f"{name}.b", gemm.k, gemm.n, size)]
    if a is None:
        buffers.insert(1, Buffer(operand, gemm.m, operand_columns(gemm), size))
    down, across, along = tile_range(r, rows), tile_range(c, cols), tile_range(k, depth)
    reads = [Access(operand, down, columns, "r") for columns in _operand_reads(gemm, depth)]
    reads.append(Access(f"{name}.b", along, across, "r"))
    cost: Cost = gemm if measured is None else Measured(*measured, work=gemm)
    kernel = Kernel(
        name,
        (-(-gemm.m // rows), -(-gemm.n // cols), split_k),
        tile,
        block,
        cost,
        (*reads, *needs),
        (Access(name, down, across, "w"),),
        -(-gemm.k // depth),
        reduce,
        stages,
    )
    return kernel, tuple(buffers)


def tile_kernel(
    name: str,
    grid: tuple[int, int, int],
    block: BlockResources,
    cost: Stream | Measured,
    *,
    needs: tuple[Access, ...] = (),
    steps: int | None = None,
    stages: int = DEFAULT_STAGES,
    reduce: Reduce = "serial",
) -> Parts:
    """A kernel that is no GEMM and its output: a buffer of one element a tile. *steps* is 1 a slice unless given."""
    write = Access(name, tile_range(r, 1), tile_range(c, 1), "w")
    kernel = Kernel(
        name, grid, UNIT_TILE, block, cost, needs, (write,), steps or grid[2], reduce, stages
    )  # fmt: skip
    return kernel, (Buffer(name, grid[0], grid[1], 1),)


def tile_range(index: Expr, size: int) -> tuple[Expr, Expr]:
    """The elements of the tile at *index*, for tiles of *size* elements: [index * size, index * size + size)."""
    low = index * size
    return low, low + size


def operand_columns(gemm: Gemm) -> int:
    """Columns of operand A: k, or twice that where the prologue joins two halves."""
    return 2 * gemm.k if gemm.prologue == "swiglu" else gemm.k


def operand_mismatch(producer: Kernel, consumer: str, gemm: Gemm) -> str | None:
    """Why *producer*'s output cannot be operand A of *gemm*; None where it can."""
    made = producer.gemm
    if made is None:
        return f"{producer.name} is no GEMM; say which of its tiles are read with needs"
    halves = " (two halves of k for swiglu)" if gemm.prologue == "swiglu" else ""
    wanted = (gemm.m, operand_columns(gemm))
    if (made.m, made.n) != wanted:
        return (
            f"{producer.name} writes {made.m} x {made.n} elements, "
            f"{consumer} reads {wanted[0]} x {wanted[1]}{halves}: they must agree"
        )
    if DTYPE_BYTES[made.dtype] != DTYPE_BYTES[gemm.dtype]:
        return f"{producer.name} writes {made.dtype}, {consumer} reads {gemm.dtype}: they must agree"
    return None


def _operand_reads(gemm: Gemm, depth: int) -> list[tuple[Expr, Expr]]:
    """Columns of A at step k. The first half is cut at its end, where the second begins."""
    low, high = tile_range(k, depth)
    if gemm.prologue != "swiglu":
        return [(low, high)]
    whole = math.ceil(gemm.k / depth) * depth == gemm.k
    first = high if whole else minimum(high, as_expr(gemm.k))
    return [(low, first), (low + gemm.k, high + gemm.k)]
