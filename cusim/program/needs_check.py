"""Whether declared needs are the tiles that a kernel's operands read, tile by tile."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cusim.program.buffer import Access, Buffer
from cusim.program.kernel import Kernel


def first_difference(
    declared: Sequence[Access], derived: Sequence[Access], producer: Kernel, consumer: Kernel, buffer: Buffer
) -> str | None:
    """The first tile of *consumer* for which two sets of reads touch different tiles of *producer*; None without one.

    The k steps of a tile are taken together: a need may name a whole row where the operand reads it step by step.
    """
    by_col = any("c" in bound.uses() for read in (*declared, *derived) for bound in (*read.rows, *read.cols))
    for row in range(consumer.grid[0]):
        for col in range(consumer.grid[1] if by_col else 1):
            said = _touched(declared, producer, consumer, buffer, row, col)
            read = _touched(derived, producer, consumer, buffer, row, col)
            if not np.array_equal(said, read):
                return _described(said, read, producer, consumer, row, col)
    return None


def _touched(
    reads: Sequence[Access], producer: Kernel, consumer: Kernel, buffer: Buffer, row: int, col: int
) -> NDArray[np.bool_]:
    """Which of the producer's output tiles one consumer tile reads at any step."""
    mask = np.zeros(producer.grid[:2], dtype=np.bool_)
    steps = np.arange(consumer.steps)
    for read in reads:
        bounds = [
            np.broadcast_to(bound.eval(r=row, c=col, z=0, k=steps), steps.shape) for bound in (*read.rows, *read.cols)
        ]
        for r_lo, r_hi, c_lo, c_hi in np.unique(np.stack(bounds, axis=1), axis=0):
            rows = _tiles(r_lo, min(r_hi, buffer.rows), producer.tile[0])
            cols = _tiles(c_lo, min(c_hi, buffer.cols), producer.tile[1])
            mask[rows, cols] = True
    return mask


def _tiles(low: int, high: int, size: int) -> slice:
    return slice(int(low) // size, -(-int(high) // size))


def _described(
    said: NDArray[np.bool_], read: NDArray[np.bool_], producer: Kernel, consumer: Kernel, row: int, col: int
) -> str:
    where = np.argwhere(said != read)[0]
    tile = f"{producer.name}[{int(where[0])}, {int(where[1])}]"
    verb = "does not read" if said[tuple(where)] else "reads"
    declared = "but it is declared" if said[tuple(where)] else "which is not declared"
    return f"differs from operand A: tile ({row}, {col}) of {consumer.name} {verb} {tile}, {declared}"
