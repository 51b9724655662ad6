"""The keys of one [[kernel]] that do not depend on other kernels: shape, tile, block, cost."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, cast

from cusim.program.build import DEFAULT_STAGES, Reduce
from cusim.program.fields import Fields
from cusim.program.kernel import (
    DTYPE_BYTES,
    EPILOGUES,
    PROLOGUES,
    REDUCTIONS,
    BlockResources,
    Gemm,
    Measured,
    Stream,
)

#: Every key that a [[kernel]] may have.
KEYS = (
    "name", "gemm", "a", "tile", "block", "time_us", "measured_on", "needs", "grid", "split_k", "stages", "steps",
    "epilogue", "prologue", "reduce", "tile_bytes", "tile_flops",
)  # fmt: skip
GEMM_KEYS = ("m", "n", "k", "dtype")
BLOCK_KEYS = ("threads", "registers", "shared_kib", "cluster")
ONLY_GEMM = ("a", "tile", "split_k", "epilogue", "prologue")
NOT_GEMM = {
    "grid": "follows from gemm and tile; leave it out",
    "steps": "follows from gemm and tile; leave it out",
    "tile_bytes": "follows from gemm and tile; leave it out",
    "tile_flops": "follows from gemm and tile; leave it out",
}
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
TILE = re.compile(r"(\d{1,6})x(\d{1,6})x(\d{1,6})", re.ASCII)
#: Limits of any GPU so far; what one machine allows is checked where a machine is known.
MOST_THREADS, MOST_REGISTERS, MOST_SHARED_KIB, MOST_STAGES = 1024, 255, 1024, 64
LONGEST_US = 1e12


@dataclass(slots=True)
class Head:
    """What a [[kernel]] says of itself; None where it is not said or refused. *complete*: enough to build it."""

    name: str | None
    gemm: Gemm | None
    is_gemm: bool
    tile: tuple[int, int, int] | None
    grid: tuple[int, int, int] | None
    block: BlockResources | None
    split_k: int
    stages: int
    steps: int
    reduce: Reduce
    measured: tuple[int, str] | None
    cost: Measured | Stream | None

    @property
    def complete(self) -> bool:
        """True when nothing that the kernel needs is missing."""
        shape = (self.gemm, self.tile) if self.is_gemm else (self.grid, self.cost)
        return None not in (self.name, self.block, *shape)

    def gemm_grid(self) -> tuple[tuple[int, int, int], int]:
        """Grid and k steps of the matrix product."""
        assert self.gemm is not None
        assert self.tile is not None
        rows, cols, steps = (
            -(-extent // size) for extent, size in zip((self.gemm.m, self.gemm.n, self.gemm.k), self.tile, strict=True)
        )
        return (rows, cols, self.split_k), steps


def read_head(fields: Fields) -> Head:
    """Reads one [[kernel]]; every mistake goes to the problems of *fields*."""
    fields.only(KEYS)
    is_gemm = "gemm" in fields.data
    _check_kind(fields, is_gemm)
    name = fields.text("name")
    if name is not None and not NAME.fullmatch(name):
        fields.wrong("name", "must be letters, digits, _ and -, and not begin with a digit or -")
        name = None
    measured = _measured(fields)
    grid = None if is_gemm else _grid(fields)
    return Head(
        name=name,
        gemm=_gemm(fields) if is_gemm else None,
        is_gemm=is_gemm,
        tile=_tile(fields) if is_gemm else None,
        grid=grid,
        block=_block(fields.table("block", "block = { threads = ..., registers = ..., shared_kib = ... }")),
        split_k=_optional(fields, "split_k", 1),
        stages=_optional(fields, "stages", DEFAULT_STAGES, MOST_STAGES),
        steps=_optional(fields, "steps", grid[2] if grid else 1),
        reduce=cast(Reduce, fields.choice("reduce", REDUCTIONS, "serial") or "serial"),
        measured=measured,
        cost=None if is_gemm else _cost(fields, measured),
    )


def _check_kind(fields: Fields, is_gemm: bool) -> None:
    for key in ONLY_GEMM if not is_gemm else ():
        if key in fields.data:
            fields.wrong(key, "only a kernel with gemm has this key")
    for key, why in NOT_GEMM.items() if is_gemm else ():
        if key in fields.data:
            fields.wrong(key, why)


def _optional(fields: Fields, name: str, default: int, high: int = 2**24) -> int:
    """The integer, or the default where it is absent or wrong (which is reported)."""
    return fields.integer(name, default, high=high) or default


def _gemm(fields: Fields) -> Gemm | None:
    table = fields.table("gemm")
    epilogue = fields.choice("epilogue", EPILOGUES, "none")
    prologue = fields.choice("prologue", PROLOGUES, "none")
    if table is None:
        return None
    table.only(GEMM_KEYS)
    m, n, k = table.integer("m"), table.integer("n"), table.integer("k")
    dtype = table.choice("dtype", tuple(DTYPE_BYTES), "fp16")
    if m is None or n is None or k is None or dtype is None or epilogue is None or prologue is None:
        return None
    return Gemm(m, n, k, dtype, cast(Literal["none", "gelu"], epilogue), cast(Literal["none", "swiglu"], prologue))


def parse_tile(text: str) -> tuple[int, int, int] | None:
    """The tile that ``128x256x64`` (M x N x K) spells; None where *text* is none."""
    found = TILE.fullmatch(text)
    if found is None:
        return None
    m, n, k = (int(part) for part in found.groups())
    return (m, n, k) if min(m, n, k) >= 1 else None


def _tile(fields: Fields) -> tuple[int, int, int] | None:
    text = fields.text("tile", 'tile = "128x256x64" (M x N x K)')
    if text is None:
        return None
    tile = parse_tile(text)
    if tile is None:
        fields.wrong("tile", 'must be M x N x K in elements, such as "128x256x64"')
    return tile


def _grid(fields: Fields) -> tuple[int, int, int] | None:
    if not fields.has("grid"):
        fields.missing("grid", "gemm = { m = ..., n = ..., k = ... } with tile, or grid = [R, C] with needs")
        return None
    grid = fields.integers("grid", (2, 3))
    if grid is None:
        return None
    return grid[0], grid[1], grid[2] if len(grid) == 3 else 1


def _block(fields: Fields | None) -> BlockResources | None:
    if fields is None:
        return None
    fields.only(BLOCK_KEYS)
    threads = fields.integer("threads", high=MOST_THREADS)
    registers = fields.integer("registers", high=MOST_REGISTERS)
    shared = fields.number("shared_kib", low=0, high=MOST_SHARED_KIB)
    cluster = fields.integer("cluster", 1, high=16)
    if threads is None or registers is None or shared is None or cluster is None:
        return None
    return BlockResources(threads, registers, round(shared * 1024), cluster)


def _measured(fields: Fields) -> tuple[int, str] | None:
    """Time alone in ps, rounded to whole nanoseconds, and the machine; each key needs the other."""
    if "time_us" not in fields.data:
        if "measured_on" in fields.data:
            fields.wrong("measured_on", "says where time_us was measured, but there is no time_us")
        return None
    time = fields.number("time_us", low=0.001, high=LONGEST_US)
    machine = fields.text("measured_on", 'measured_on = "h200" or the like: a time belongs to a machine')
    return (round(time * 1000) * 1000, machine) if time is not None and machine is not None else None


def _cost(fields: Fields, measured: tuple[int, str] | None) -> Measured | Stream | None:
    """The cost of a kernel that is no GEMM: its time, what a tile moves and computes, or both."""
    work = None
    if "tile_bytes" in fields.data or "tile_flops" in fields.data:
        moved = fields.integer("tile_bytes", 0 if "tile_flops" in fields.data else None, low=0, high=2**53)
        flops = fields.integer("tile_flops", 0, low=0, high=2**53)
        work = Stream(moved, flops) if moved is not None and flops is not None else None
    elif "time_us" not in fields.data:
        fields.missing("time_us", "time_us with measured_on, or tile_bytes: a kernel without gemm has no known cost")
    return Measured(*measured, work=work) if measured is not None else work
