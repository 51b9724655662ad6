"""Which tiles the GEMM kernels can be compiled for, and what a block of each takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cusim.errors import Problems
from cusim.program.kernel import Kernel

Family = Literal["wgmma", "mma"]

#: k elements of a stage, in every kernel: 128 bytes, the width of the swizzle.
DEPTH = 64
#: wgmma: warpgroups of consumers by rows of the tile; a warpgroup multiplies 64 rows at a time.
_GROUPS = {64: 1, 128: 2, 192: 3, 256: 2}
_WGMMA_COLUMNS = (64, 128, 192, 256)
#: Most fp32 accumulators a consumer thread has registers for, by the number of warpgroups.
_ACCUMULATORS = {1: 128, 2: 128, 3: 96}
#: mma.sync: rows and columns of the tile, then of a warp.
_WARP_TILES = {
    (64, 64): (32, 32),
    (64, 128): (32, 64),
    (128, 64): (64, 32),
    (128, 128): (64, 32),
    (128, 256): (64, 64),
    (256, 128): (64, 64),
}
#: Shared memory a block may take, in bytes.
_SHARED = {"sm_80": 163 * 1024, "sm_86": 99 * 1024, "sm_89": 99 * 1024, "sm_90a": 227 * 1024}


@dataclass(frozen=True, slots=True)
class Shape:
    """A compiled block: *tile* elements of C, *stages* of 64 k elements; *part* is warpgroups or a warp's tile."""

    family: Family
    tile: tuple[int, int]
    stages: int
    part: tuple[int, ...]
    halves: int = 1

    @property
    def threads(self) -> int:
        """Threads of a block; wgmma kernels have a warpgroup that loads, polls and posts."""
        if self.family == "wgmma":
            return 128 * (self.part[0] + 1)
        return 32 * (self.tile[0] // self.part[0]) * (self.tile[1] // self.part[1])

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block: 1 KiB to align, the stages, barriers and words."""
        staged = (self.halves * self.tile[0] + self.tile[1]) * DEPTH * 2
        return 1024 + self.stages * staged + (512 if self.family == "wgmma" else 64)

    @property
    def box_a(self) -> tuple[int, int]:
        """Rows and columns of the bulk copies of A; those of B are 64 x 64."""
        return self.tile[0], DEPTH


def family_of(arch: str) -> Family:
    """The kernel for an architecture: wgmma on sm_90a, mma.sync on the others."""
    return "wgmma" if arch == "sm_90a" else "mma"


def shape_of(kernel: Kernel, arch: str, family: Family | None = None) -> Shape:
    """The shape that computes *kernel* with its tile and stages; InputError for what no kernel exists for."""
    rows, cols, depth = kernel.tile
    family = family or family_of(arch)
    halves = 2 if kernel.gemm is not None and kernel.gemm.prologue == "swiglu" else 1
    part = _wgmma_part(rows, cols) if family == "wgmma" else _WARP_TILES.get((rows, cols))
    problems = Problems(f"kernel {kernel.name}")
    size = "x".join(map(str, kernel.tile))
    if kernel.gemm is None:
        problems.add("cost", None, "only matrix products can be run on a GPU")
    if part is None or depth != DEPTH:
        problems.add("tile", size, f"no {family} kernel; allowed: {', '.join(tiles(family))}")
    problems.raise_if_any()
    assert part is not None
    shape = Shape(family, (rows, cols), kernel.stages, part, halves)
    most = _SHARED.get(arch, 99 * 1024)
    if not kernel.stages >= 2 or shape.shared_bytes > most:
        fits = max(n for n in range(1, 33) if Shape(family, (rows, cols), n, part, halves).shared_bytes <= most)
        why = f"{shape.shared_bytes} bytes of shared memory, {arch} has {most} for a block; allowed: 2 to {fits}"
        problems.add("stages", kernel.stages, why)
    problems.raise_if_any()
    return shape


def tiles(family: Family) -> tuple[str, ...]:
    """Every tile there is a kernel for, as m x n x k."""
    if family == "mma":
        found = list(_WARP_TILES)
    else:
        found = [(rows, cols) for rows in _GROUPS for cols in _WGMMA_COLUMNS if _wgmma_part(rows, cols)]
    return tuple(f"{rows}x{cols}x{DEPTH}" for rows, cols in found)


def _wgmma_part(rows: int, cols: int) -> tuple[int, ...] | None:
    groups = _GROUPS.get(rows)
    if groups is None or cols not in _WGMMA_COLUMNS:
        return None
    accumulators = rows // groups // 64 * cols // 2
    return (groups,) if accumulators <= _ACCUMULATORS[groups] else None
