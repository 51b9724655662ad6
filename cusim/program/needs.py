"""The ``needs`` language: which tiles of a producer a tile reads, such as ``"up[r, :]"`` or ``"v[:, c + 24]"``.

Each index is affine in the consumer's r, c and k, in units of the producer's tiles, or ``:`` for all of them: the
dependence language of cuSyncGen (cuSync §IV-A) as text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass

from cusim.errors import InputError, did_you_mean, refuse
from cusim.program.affine import Affine, affine_of
from cusim.program.buffer import Access
from cusim.program.build import tile_range
from cusim.program.expr import Const, Expr, expr_of_ast, syntax_tree
from cusim.program.kernel import Kernel

ALLOWED = 'allowed: NAME[ROW, COLUMN], each index affine in r, c, k (such as "2*r + 1") or : for all'
_SHAPE = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)\s*(\[.*\])", re.DOTALL)
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Need:
    """Tiles of *producer* that a tile reads; an index is None where all rows or columns are."""

    producer: str
    row: Affine | None
    col: Affine | None

    def __str__(self) -> str:
        row, col = (":" if index is None else str(index) for index in (self.row, self.col))
        return f"{self.producer}[{row}, {col}]"

    def access(self, producer: Kernel, rows: int, cols: int) -> Access:
        """The read in elements of the producer's output, a buffer of *rows* x *cols*."""
        return Access(
            self.producer,
            _elements(self.row, producer.tile[0], rows),
            _elements(self.col, producer.tile[1], cols),
            "r",
        )


def parse_need(text: str) -> Need:
    """The need that *text* spells; InputError says what is not allowed in it."""
    shape = _SHAPE.fullmatch(text.strip())
    if shape is None or len(text) > _LONGEST:
        raise refuse("needs", text, None, ALLOWED)
    name, brackets = shape.groups()
    head = text.strip()[: shape.start(2)]
    # The name may hold a minus sign, so it is replaced by as many letters: columns in errors stay right.
    try:
        tree = syntax_tree("_" * len(head) + brackets, text)
    except InputError as error:
        raise refuse("needs", text, None, f"{error.problems[0].why}; {ALLOWED}") from None
    match tree:
        case ast.Subscript(value=ast.Name(), slice=ast.Tuple(elts=[row, col])):
            return Need(name, _index(row, text), _index(col, text))
    raise refuse("needs", text, None, f"must have two indices; {ALLOWED}")


def outside(need: Need, producer: Kernel, grid: tuple[int, int, int], steps: int) -> str | None:
    """Where the need leaves *producer*'s grid for some tile of a *grid* with *steps* k steps; None where it stays."""
    sizes = {"r": grid[0], "c": grid[1], "k": steps}
    for index, axis, count in ((need.row, "row", producer.grid[0]), (need.col, "column", producer.grid[1])):
        if index is None:
            continue
        for reached in (index.smallest(sizes), index.largest(sizes)):
            if not 0 <= reached.value < count:
                return (
                    f"{index} is {axis} {reached.value} of {producer.name} at {reached.where()}, "
                    f"but {producer.name} has {axis}s 0 to {count - 1}"
                )
    return None


def unknown_producer(name: str, earlier: Mapping[str, object], all_names: list[str]) -> str:
    """What to say of a kernel name that no earlier kernel has."""
    if name in all_names:
        return "this kernel does not come earlier; kernels stand in the order in which they are issued"
    return f"no earlier kernel has this name; {did_you_mean(name, earlier)}"


def _index(node: ast.expr, text: str) -> Affine | None:
    match node:
        case ast.Slice(lower=None, upper=None, step=None):
            return None
        case ast.Slice():
            raise refuse("needs", text, None, f"only : without ends is a range; {ALLOWED}")
    try:
        return affine_of(expr_of_ast(node, text, ("r", "c", "k")))
    except InputError as error:
        raise refuse("needs", text, None, f"{error.problems[0].why}; {ALLOWED}") from None


def _elements(index: Affine | None, size: int, whole: int) -> tuple[Expr, Expr]:
    return (Const(0), Const(whole)) if index is None else tile_range(index.expr(), size)


def need_of(read: Access, producer: Kernel, rows: int, cols: int) -> Need | None:
    """The need whose access is *read*, a buffer of *rows* x *cols* that *producer* writes; None where there is none."""
    try:
        row = _tile_index(read.rows, producer.tile[0], rows)
        col = _tile_index(read.cols, producer.tile[1], cols)
    except InputError:
        return None
    need = Need(producer.name, row, col)
    return need if need.access(producer, rows, cols) == read else None


def _tile_index(bounds: tuple[Expr, Expr], size: int, whole: int) -> Affine | None:
    if bounds == (Const(0), Const(whole)):
        return None
    return affine_of(bounds[0]).divided(size)
