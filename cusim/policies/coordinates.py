"""The tile coordinates of the cuSync paper and of its repository, and how cusim's own map to them.

cusim: (r, c, z) in tile units, r counts rows. The paper (§II, §III-E): ``Tile(x, y)`` in tile units with x the *column*
and y the *row*, on a grid ``{x: columns, y: rows}``. The repository's GEMM policies: ``tile.x`` is the *row* and
``tile.y`` the *column*, both as offsets in elements, although the launch grid is ``{x: columns, y: rows}``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PaperTile:
    """A tile in the paper's convention: x = column, y = row, in tile units."""

    x: int
    y: int


@dataclass(frozen=True, slots=True)
class RepositoryTile:
    """A tile in the repository's convention: x = first row, y = first column, in elements; z = 1 in the prologue."""

    x: int
    y: int
    z: int = 0


@dataclass(frozen=True, slots=True)
class LaunchGrid:
    """A CUDA grid: x = columns, y = rows, z = split-K slices, in tiles; both conventions launch it so."""

    x: int
    y: int
    z: int = 1


def launch_grid(grid: tuple[int, int, int]) -> LaunchGrid:
    """The CUDA grid of cusim's (R, C, Z)."""
    rows, cols, slices = grid
    return LaunchGrid(cols, rows, slices)


def grid_of_launch(grid: LaunchGrid) -> tuple[int, int, int]:
    """cusim's (R, C, Z) of a CUDA grid."""
    return grid.y, grid.x, grid.z


def to_paper(row: int, col: int) -> PaperTile:
    """The paper's tile of row and column."""
    return PaperTile(x=col, y=row)


def from_paper(tile: PaperTile) -> tuple[int, int]:
    """Row and column of the paper's tile."""
    return tile.y, tile.x


def to_repository(row: int, col: int, tile_m: int, tile_n: int, *, prologue: bool = False) -> RepositoryTile:
    """The repository's tile of row and column, for tiles of *tile_m* x *tile_n* elements."""
    return RepositoryTile(row * tile_m, col * tile_n, int(prologue))


def from_repository(tile: RepositoryTile, tile_m: int, tile_n: int) -> tuple[int, int]:
    """Row and column of the tile that holds the repository's element offsets."""
    return tile.x // tile_m, tile.y // tile_n


def paper_tile_sync(tile: PaperTile, grid: LaunchGrid) -> int:
    """Semaphore of the paper's TileSync (Fig. 4c): column after column."""
    return tile.x * grid.y + tile.y


def paper_row_sync(tile: PaperTile, grid: LaunchGrid) -> int:
    """Semaphore of the paper's RowSync (Fig. 4c)."""
    return tile.y


def repository_tile_sync(tile: RepositoryTile, grid: LaunchGrid, tile_m: int, tile_n: int) -> int:
    """Semaphore of ``TileSync<TransposeXYOrder, TileM, TileN>`` (policies.h): row after row."""
    row, col = from_repository(tile, tile_m, tile_n)
    return col + row * grid.x


def repository_row_sync(tile: RepositoryTile, tile_m: int) -> int:
    """Semaphore of ``RowSync<TileM>`` (policies.h)."""
    return tile.x // tile_m


def repository_tile_is_sync(tile: RepositoryTile, tile_n: int) -> bool:
    """Whether the repository's TileSync waits at this K offset.

    A split-K slice whose offset is no multiple of *tile_n* therefore never waits for its first tile; cusim's does.
    """
    return tile.y % tile_n == 0


def repository_row_is_sync(tile: RepositoryTile) -> bool:
    """Whether the repository's RowSync waits: in the prologue only."""
    return tile.z == 1
