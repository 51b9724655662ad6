"""Buffers and the parts of them that a tile reads or writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cusim.program.expr import Expr


@dataclass(frozen=True, slots=True)
class Buffer:
    """A matrix in device memory: *rows* x *cols* elements of *elem_bytes*, at byte address *addr* if it is known."""

    name: str
    rows: int
    cols: int
    elem_bytes: int
    addr: int | None = None

    @property
    def size_bytes(self) -> int:
        """Bytes of the whole buffer."""
        return self.rows * self.cols * self.elem_bytes


@dataclass(frozen=True, slots=True)
class Access:
    """What one tile reads or writes of a buffer: half-open ranges in elements, as expressions of r, c, z and k.

    A read whose ranges use k happens at every k step of the tile's slice; any other read happens before the first
    step, or before step *at_k*. A write happens when the tile ends. Ranges past the buffer are cut at its edge.
    """

    buffer: str
    rows: tuple[Expr, Expr]
    cols: tuple[Expr, Expr]
    mode: Literal["r", "w"]
    at_k: int | None = None

    @property
    def streamed(self) -> bool:
        """True when the ranges move with the k loop."""
        return any("k" in bound.uses() for bound in (*self.rows, *self.cols))
