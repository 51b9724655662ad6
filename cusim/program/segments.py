"""Memory segments of a kernel: the hulls of its accesses, which ACE compares to find what depends on what (ACE §IV)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cusim.program.buffer import Access, Buffer
from cusim.program.expr import Expr
from cusim.program.kernel import Kernel
from cusim.program.program import Program


@dataclass(frozen=True, slots=True, order=True)
class Segment:
    """*size_bytes* bytes of *buffer*, from byte *start_bytes* of it; *base* is the buffer's address if it is known."""

    buffer: str
    start_bytes: int
    size_bytes: int
    base: int | None = None

    @property
    def end_bytes(self) -> int:
        """One past the last byte, within the buffer."""
        return self.start_bytes + self.size_bytes

    def overlaps(self, other: Segment) -> bool:
        """True when both hold a byte: by address where both addresses are known, else within the same buffer."""
        if self.base is not None and other.base is not None:
            return (
                self.base + self.start_bytes < other.base + other.end_bytes
                and other.base + other.start_bytes < self.base + self.end_bytes
            )
        same = self.buffer == other.buffer
        return same and self.start_bytes < other.end_bytes and other.start_bytes < self.end_bytes


@dataclass(frozen=True, slots=True)
class Segments:
    """What a kernel reads and writes, each sorted; segments of a buffer that touch are one."""

    reads: tuple[Segment, ...]
    writes: tuple[Segment, ...]


def segments(kernel: Kernel, program: Program) -> Segments:
    """Hulls of the kernel's accesses over its whole grid and k loop, in bytes of each buffer.

    Rows lie one after the other, so an access to some columns of several rows is taken from its first row's first
    element to its last row's last one: what lies between belongs to the segment too, as in ACE. Cut at the buffer.
    """
    return Segments(_hulls(kernel.reads, kernel, program), _hulls(kernel.writes, kernel, program))


def _hulls(accesses: tuple[Access, ...], kernel: Kernel, program: Program) -> tuple[Segment, ...]:
    found = [_hull(access, kernel, program.buffer(access.buffer)) for access in accesses]
    return tuple(_merged(sorted(segment for segment in found if segment is not None)))


def _hull(access: Access, kernel: Kernel, buffer: Buffer) -> Segment | None:
    row_lo, row_hi = _extent(access.rows, kernel, buffer.rows)
    col_lo, col_hi = _extent(access.cols, kernel, buffer.cols)
    if row_lo >= row_hi or col_lo >= col_hi:
        return None
    start = (row_lo * buffer.cols + col_lo) * buffer.elem_bytes
    end = ((row_hi - 1) * buffer.cols + col_hi) * buffer.elem_bytes
    return Segment(buffer.name, start, end - start, buffer.addr)


def _extent(bounds: tuple[Expr, Expr], kernel: Kernel, limit: int) -> tuple[int, int]:
    """The least start and the greatest end over all tiles and steps, cut to 0 ... *limit*."""
    low, high = (_values(bound, kernel) for bound in bounds)
    return max(int(low.min()), 0), min(int(high.max()), limit)


def _values(expr: Expr, kernel: Kernel) -> np.typing.NDArray[np.int64]:
    sizes = {"r": kernel.grid[0], "c": kernel.grid[1], "z": kernel.grid[2], "k": kernel.steps}
    axes = {name: np.arange(size) for name, size in sizes.items() if name in expr.uses()}
    grids = np.meshgrid(*axes.values(), indexing="ij", sparse=True)
    return expr.eval(**dict(zip(axes, grids, strict=True)))


def _merged(ordered: list[Segment]) -> list[Segment]:
    """Sorted segments with those of a buffer that overlap or touch joined."""
    joined: list[Segment] = []
    for segment in ordered:
        last = joined[-1] if joined else None
        if last is not None and last.buffer == segment.buffer and segment.start_bytes <= last.end_bytes:
            end = max(last.end_bytes, segment.end_bytes)
            joined[-1] = Segment(last.buffer, last.start_bytes, end - last.start_bytes, last.base)
        else:
            joined.append(segment)
    return joined
