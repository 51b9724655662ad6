"""Kernels: a grid of tiles with the resources of a block, a cost and the accesses of a tile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from cusim.program.buffer import Access

#: Bytes of an element by the name of its type.
DTYPE_BYTES = {"fp16": 2, "bf16": 2, "fp32": 4}
EPILOGUES = ("none", "gelu")
PROLOGUES = ("none", "swiglu")
REDUCTIONS = ("serial", "last_arriver")


@dataclass(frozen=True, slots=True)
class BlockResources:
    """What one thread block takes, as Nsight Compute prints it: *registers* per thread, *smem_bytes* per block."""

    threads: int
    registers: int
    smem_bytes: int
    cluster: int = 1


@dataclass(frozen=True, slots=True)
class Gemm:
    """Cost of a matrix product of m x k by k x n elements.

    *epilogue* is applied to the output tile (GPT-3's GeLU); *prologue* to operand A while it is loaded (LLaMA's
    SwiGLU reads two halves of A and multiplies them).
    """

    m: int
    n: int
    k: int
    dtype: str = "fp16"
    epilogue: Literal["none", "gelu"] = "none"
    prologue: Literal["none", "swiglu"] = "none"


@dataclass(frozen=True, slots=True)
class Stream:
    """Cost of a tile that moves *tile_bytes* through memory and computes *tile_flops* on the CUDA cores."""

    tile_bytes: int
    tile_flops: int = 0


@dataclass(frozen=True, slots=True)
class Measured:
    """Cost known by measuring the kernel alone: *time_ps* on the machine named *measured_on*.

    *work* says what the kernel does, where it is known, so that contention can be costed.
    """

    time_ps: int
    measured_on: str
    work: Gemm | Stream | None = None


Cost: TypeAlias = Gemm | Stream | Measured


@dataclass(frozen=True, slots=True)
class Kernel:
    """A grid of *grid* = (R, C, Z) tiles, each *tile* = (m, n, k) elements; Z slices split the k loop of a tile.

    *steps* is the number of k steps of a whole tile, over all slices; *stages* how many steps loads run ahead.
    *reduce* says how slices meet: ``serial`` (a slice waits for the one before) or ``last_arriver`` (the last to
    arrive adds the others up).
    """

    name: str
    grid: tuple[int, int, int]
    tile: tuple[int, int, int]
    block: BlockResources
    cost: Cost
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    steps: int = 1
    reduce: Literal["serial", "last_arriver"] = "serial"
    stages: int = 2
    persistent: bool = False

    @property
    def blocks(self) -> int:
        """Thread blocks of the grid, split-K slices counted; the papers' TBs."""
        rows, cols, slices = self.grid
        return rows * cols * slices

    @property
    def output_tiles(self) -> int:
        """Tiles of the output: a tile posts once, whatever its slices."""
        return self.grid[0] * self.grid[1]

    @property
    def slice_steps(self) -> int:
        """k steps of a slice; the last slice may have fewer."""
        return -(-self.steps // self.grid[2])

    @property
    def gemm(self) -> Gemm | None:
        """The matrix product that the kernel computes, if it is one."""
        work = self.cost.work if isinstance(self.cost, Measured) else self.cost
        return work if isinstance(work, Gemm) else None
