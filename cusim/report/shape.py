"""The sizes of a program as words: problem, tile and split-K, one text where all kernels agree."""

from __future__ import annotations

from collections.abc import Mapping

from cusim.program.program import Program


def tile_text(tile: tuple[int, int, int]) -> str:
    """A tile as people write it: ``128x256x64`` (M x N x K)."""
    return "x".join(str(side) for side in tile)


def grid_text(grid: tuple[int, int, int]) -> str:
    """Rows x columns of tiles, and split-K slices where there are several."""
    rows, cols, slices = grid
    return f"{rows} x {cols}" + (f" x {slices}" if slices > 1 else "")


def m_of(program: Program) -> int | None:
    """The M that all matrix products of the program share; None when there is none or several."""
    sizes = {kernel.gemm.m for kernel in program.kernels if kernel.gemm is not None}
    return sizes.pop() if len(sizes) == 1 else None


def dtype_of(program: Program) -> str | None:
    """The element type that all matrix products share, if there is one."""
    kinds = {kernel.gemm.dtype for kernel in program.kernels if kernel.gemm is not None}
    return kinds.pop() if len(kinds) == 1 else None


def tile_of(program: Program) -> str:
    """The tile of the program's matrix products; ``-`` where there is none."""
    return uniform({kernel.name: tile_text(kernel.tile) for kernel in program.kernels if kernel.gemm is not None})


def split_of(program: Program) -> str:
    """The number of split-K slices of the program's kernels."""
    return uniform({kernel.name: str(kernel.grid[2]) for kernel in program.kernels})


def uniform(values: Mapping[str, str]) -> str:
    """The value that all kernels share, else each kernel's own as ``up:2 down:1``; ``-`` for no kernel."""
    kinds = set(values.values())
    if len(kinds) < 2:
        return kinds.pop() if kinds else "-"
    return " ".join(f"{name}:{value}" for name, value in values.items())


def option_form(text: str) -> str:
    """What :func:`uniform` says of tiles or splits, as ``--tile`` and ``--split-k`` take it: ``2+1``."""
    return "+".join(part.rpartition(":")[2] for part in text.split())
