"""Programs to JSON and back (schema ``cusim.program/1``); what comes back is equal, or refused with every reason.

The one thing that JSON cannot hold is a fraction of a nanosecond in a measured time, which is floored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, cast

import numpy as np

from cusim.errors import InputError, Problems
from cusim.program.buffer import Access, Buffer
from cusim.program.encode import SCHEMA, parts_to_json
from cusim.program.expr import Const, Expr, Lookup, Op, parse_expr
from cusim.program.fields import LARGEST, Fields, kind_of
from cusim.program.kernel import (
    DTYPE_BYTES,
    EPILOGUES,
    PROLOGUES,
    REDUCTIONS,
    BlockResources,
    Cost,
    Gemm,
    Kernel,
    Measured,
    Stream,
)
from cusim.program.program import MOST_PLACES, Program

#: Longest time that an input may give: about eleven days.
LONGEST_NS = 10**15
_TOP = ("schema", "name", "seed", "buffers", "kernels")
_BUFFER = ("name", "rows", "cols", "elem_bytes", "addr")
_KERNEL = (
    "name", "grid", "tile", "block", "cost", "reads", "writes", "steps", "reduce", "stages", "persistent",
)  # fmt: skip
_ACCESS = ("buffer", "rows", "cols", "mode", "at_k")
_BLOCK = ("threads", "registers", "smem_bytes", "cluster")
_COSTS = {
    "gemm": ("kind", "m", "n", "k", "dtype", "epilogue", "prologue"),
    "stream": ("kind", "tile_bytes", "tile_flops"),
    "measured": ("kind", "time_ns", "measured_on", "work"),
}


def program_to_json(program: Program) -> dict[str, Any]:
    """The program as a JSON object.

    A measured time is floored to whole nanoseconds, so the round trip is exact for programs whose times are whole
    nanoseconds; all that cusim reads from files are.
    """
    return parts_to_json(program.name, program.seed, program.buffers, program.kernels)


def program_from_json(data: object, source: str) -> Program:
    """The program of a JSON object; InputError, naming *source*, holds everything that is wrong with it."""
    problems = Problems(source)
    top = Fields.of(data, "", problems)
    program = None if top is None else _program(top)
    problems.raise_if_any()
    assert program is not None
    return program


def check_schema(top: Fields) -> bool:
    """Reports a schema that is missing or foreign; False where it is foreign, so nothing else can be expected."""
    if not top.has("schema"):
        top.missing("schema", f'schema = "{SCHEMA}"')
        return True
    if top.data["schema"] == SCHEMA:
        return True
    top.wrong("schema", f'this is not a program that cusim reads; allowed: "{SCHEMA}"')
    return False


def built(kernels: list[Kernel], buffers: list[Buffer], seed: int, name: str, problems: Problems) -> Program | None:
    """The program of these parts; None, with the program's own complaints recorded, where they do not fit."""
    try:
        return Program(tuple(kernels), tuple(buffers), seed, name)
    except InputError as error:
        problems.extend(error)
        return None


def _program(top: Fields) -> Program | None:
    if not check_schema(top):
        return None
    top.only(_TOP)
    name, seed = top.text("name"), top.integer("seed", low=-LARGEST)
    buffers = [_buffer(fields) for fields in top.tables("buffers")]
    kernels = [_kernel(fields) for fields in top.tables("kernels")]
    if not all(isinstance(top.data.get(key), list) for key in ("buffers", "kernels")):
        return None
    whole_kernels = [kernel for kernel in kernels if kernel]
    whole_buffers = [buffer for buffer in buffers if buffer]
    if len(whole_kernels) < len(kernels) or len(whole_buffers) < len(buffers) or name is None or seed is None:
        return None
    return built(whole_kernels, whole_buffers, seed, name, top.problems)


def _buffer(fields: Fields | None) -> Buffer | None:
    if fields is None:
        return None
    fields.only(_BUFFER)
    name, addr = fields.text("name"), fields.integer("addr", low=0, high=2**64 - 1) if fields.has("addr") else None
    rows, cols, size = fields.integer("rows"), fields.integer("cols"), fields.integer("elem_bytes")
    if name is None or rows is None or cols is None or size is None:
        return None
    return Buffer(name, rows, cols, size, addr)


def _kernel(fields: Fields | None) -> Kernel | None:
    if fields is None:
        return None
    fields.only(_KERNEL)
    name, grid, tile = fields.text("name"), fields.integers("grid", (3,)), fields.integers("tile", (3,))
    block, cost = _block(fields.table("block")), _cost(fields.table("cost"), tuple(_COSTS))
    steps, stages = fields.integer("steps"), fields.integer("stages")
    reduce, persistent = fields.choice("reduce", REDUCTIONS), fields.flag("persistent")
    reads = [_access(access, "r", grid, steps) for access in fields.tables("reads")]
    writes = [_access(access, "w", grid, steps) for access in fields.tables("writes")]
    if name is None or grid is None or tile is None or block is None or cost is None or persistent is None:
        return None
    if steps is None or stages is None or reduce is None or None in reads or None in writes:
        return None
    return Kernel(
        name,
        cast(tuple[int, int, int], grid),
        cast(tuple[int, int, int], tile),
        block,
        cost,
        tuple(access for access in reads if access),
        tuple(access for access in writes if access),
        steps,
        cast(Literal["serial", "last_arriver"], reduce),
        stages,
        persistent,
    )


def _block(fields: Fields | None) -> BlockResources | None:
    if fields is None:
        return None
    fields.only(_BLOCK)
    values = [fields.integer(name, low=0 if name == "smem_bytes" else 1) for name in _BLOCK]
    return BlockResources(*(v for v in values if v is not None)) if None not in values else None


def _cost(fields: Fields | None, kinds: tuple[str, ...]) -> Cost | None:
    if fields is None:
        return None
    kind = fields.choice("kind", kinds)
    if kind is None:
        return None
    fields.only(_COSTS[kind])
    if kind == "gemm":
        return _gemm(fields)
    if kind == "stream":
        moved, flops = fields.integer("tile_bytes", low=0), fields.integer("tile_flops", low=0)
        return Stream(moved, flops) if moved is not None and flops is not None else None
    time, machine = fields.integer("time_ns", low=0, high=LONGEST_NS), fields.text("measured_on")
    work = _cost(fields.table("work"), ("gemm", "stream")) if fields.has("work") else None
    if time is None or machine is None or (fields.has("work") and work is None):
        return None
    return Measured(time * 1000, machine, cast(Gemm | Stream | None, work))


def _gemm(fields: Fields) -> Gemm | None:
    m, n, k = fields.integer("m"), fields.integer("n"), fields.integer("k")
    dtype = fields.choice("dtype", tuple(DTYPE_BYTES))
    epilogue, prologue = fields.choice("epilogue", EPILOGUES), fields.choice("prologue", PROLOGUES)
    if m is None or n is None or k is None or dtype is None or epilogue is None or prologue is None:
        return None
    return Gemm(m, n, k, dtype, cast(Literal["none", "gelu"], epilogue), cast(Literal["none", "swiglu"], prologue))


def _access(
    fields: Fields | None, mode: Literal["r", "w"], grid: tuple[int, ...] | None, steps: int | None
) -> Access | None:
    if fields is None:
        return None
    fields.only(_ACCESS)
    buffer, given = fields.text("buffer"), fields.choice("mode", (mode,))
    at_k = fields.integer("at_k", low=0) if fields.has("at_k") else None
    rows, cols = _range(fields, "rows", grid, steps), _range(fields, "cols", grid, steps)
    late = at_k is None and fields.has("at_k")
    if buffer is None or given is None or rows is None or cols is None or late:
        return None
    return Access(buffer, rows, cols, mode, at_k)


def _range(fields: Fields, name: str, grid: tuple[int, ...] | None, steps: int | None) -> tuple[Expr, Expr] | None:
    texts = fields.array(name, "two expressions")
    if texts is None:
        return None
    if len(texts) != 2:
        fields.wrong(name, "must hold two expressions: first, and one past the last")
        return None
    bounds = [_bound(text, f"{fields.at(name)}[{i}]", fields.problems) for i, text in enumerate(texts)]
    low, high = bounds
    if low is None or high is None or grid is None or steps is None:
        return None
    if not all(_computable(bound, {"r": grid[0], "c": grid[1], "z": grid[2], "k": steps}) for bound in bounds):
        fields.wrong(name, "cannot be computed for every tile: it divides by zero or leaves its table")
        return None
    return low, high


def _bound(text: object, key: str, problems: Problems) -> Expr | None:
    if not isinstance(text, str):
        problems.add(key, text, f"must be an expression in a string, not {kind_of(text)}")
        return None
    try:
        return parse_expr(text, ("r", "c", "z", "k"))
    except InputError as error:
        problems.add(key, text, error.problems[0].why)
        return None


def _computable(expr: Expr | None, sizes: Mapping[str, int]) -> bool:
    """False where a table is left or a divisor is zero for some tile; other expressions are not evaluated.

    Also False where there are too many values to find out.
    """
    if expr is not None and math.prod(sizes[name] for name in expr.uses()) > MOST_PLACES:
        return False
    match expr:
        case Lookup(table, index):
            values = _values(index, sizes) if _computable(index, sizes) else np.asarray([-1])
            return bool((values >= 0).all() and (values < len(table)).all())
        case Op("//" | "%", left, right) if not isinstance(right, Const):
            sides = _computable(left, sizes) and _computable(right, sizes)
            return sides and not bool((_values(right, sizes) == 0).any())
        case Op(_, left, right):
            return _computable(left, sizes) and _computable(right, sizes)
        case _:
            return True


def _values(expr: Expr, sizes: Mapping[str, int]) -> Any:
    axes = {name: np.arange(size) for name, size in sizes.items() if name in expr.uses()}
    grids = np.meshgrid(*axes.values(), indexing="ij", sparse=True)
    return expr.eval(**dict(zip(axes, grids, strict=True)))
