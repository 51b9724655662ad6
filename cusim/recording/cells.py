"""Cells of a designed experiment: what is measured, and the very program and plan of each cell."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from cusim.errors import CusimError, Problems
from cusim.policies.plan import Plan
from cusim.policies.registry import build_plan
from cusim.program.build import Parts, gemm_kernel
from cusim.program.kernel import Gemm
from cusim.program.program import Program
from cusim.program.toml_kernel import parse_tile
from cusim.recording.rows import Row
from cusim.workloads import build_workload
from cusim.workloads.blocks import Tiling, block_of, fitting
from cusim.workloads.defaults import architecture_of

#: How the names of single products begin, M x N x K after it, by what is done to operand A.
_PRODUCTS: dict[str, Literal["none", "swiglu"]] = {"gemm-": "none", "swiglu-": "swiglu"}
#: How the name of two chained products begins, first N x first K (GeLU behind it) x second N after it.
_CHAIN = "chain-"
_SIZES = re.compile(r"[1-9]\d{0,6}x[1-9]\d{0,6}x[1-9]\d{0,6}", re.ASCII)
_SLICES = re.compile(r"[1-9]\d{0,3}(\+[1-9]\d{0,3})?", re.ASCII)
#: How the policy of a row begins that cuBLAS ran.
_CUBLAS = "cublas-"
#: Axes of a group in the order in which they vary, slowest first, with the value of an axis that is not given.
AXES = {
    "workload": ("",), "m": (0,), "tile": ("",), "split_k": ("1",), "launch": ("wait-first",),
    "policy": ("stream",), "order": ("row",), "flags": (None,),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of the design; *gemm* (M, N, K) instead of a workload for a single kernel, whose operand A goes through
    *prologue* first; *cublas* for the library.
    """

    group: str
    label: str
    workload: str
    m: int
    tile: str
    split_k: str
    launch: str
    policy: str
    order: str
    flags: str | None
    gemm: tuple[int, int, int] | None = None
    cublas: str = ""
    occasion: int = 0
    prologue: Literal["none", "swiglu"] = "none"


def cells_of(design: Mapping[str, Any]) -> list[Cell]:
    """Every cell of a design, group after group; a group with ``again`` repeats every n-th cell of an earlier one."""
    found: list[Cell] = []
    for group in design["group"]:
        if "again" in group:
            earlier = [cell for cell in found if cell.group == group["again"]]
            found += [replace(cell, occasion=1) for cell in earlier[:: group["every"]]]
        else:
            found += _crossed(group)
    return found


def _crossed(group: Mapping[str, Any]) -> Iterator[Cell]:
    axes = {name: group.get(name, default) for name, default in AXES.items()}
    for gemm in group.get("gemm", [None]):
        for cublas in group.get("cublas", [""]):
            for values in itertools.product(*axes.values()):
                cell = Cell(group["name"], group["set"], **dict(zip(axes, values, strict=True)), cublas=cublas)
                if gemm is not None:
                    prologue = group.get("prologue", "none")
                    start = next(start for start, word in _PRODUCTS.items() if word == prologue)
                    name = start + "x".join(map(str, gemm))
                    cell = replace(cell, gemm=tuple(gemm), workload=name, m=gemm[0], prologue=prologue)
                yield cell


def program_of(cell: Cell, machine: str) -> tuple[Program, Plan]:
    """The program and plan of a cell; InputError where the workload, tile or plan is not to be had."""
    if cell.gemm is not None:
        program, flags = _single(cell, machine), ""
    elif cell.workload.startswith(_CHAIN):
        program, flags = _chained(cell, machine), ""
    else:
        workload = build_workload(cell.workload, machine, m=cell.m, tile=cell.tile or None, split_k=cell.split_k)
        choice = workload.choice(cell.policy)
        program, flags = choice.program, choice.flags
    if cell.split_k != "1":
        kernels = (replace(kernel, reduce="last_arriver") for kernel in program.kernels)
        program = replace(program, kernels=tuple(kernels))
    stream = cell.policy == "stream"
    plan = build_plan(
        program,
        policy=cell.policy,
        order=cell.order,
        flags="" if stream else (flags if cell.flags is None else cell.flags),
        launch=("stream" if cell.launch == "wait-first" else cell.launch) if stream else cell.launch,
    )
    return program, plan


def _single(cell: Cell, machine: str) -> Program:
    assert cell.gemm is not None
    kernel, buffers = _kernel("only", Gemm(*cell.gemm, prologue=cell.prologue), cell, machine)
    return Program((kernel,), buffers, name=cell.workload)


def _chained(cell: Cell, machine: str) -> Program:
    """Two products, the second of which reads the first one's result."""
    across, depth, out = (int(size) for size in cell.workload.removeprefix(_CHAIN).split("x"))
    up, new = _kernel("up", Gemm(cell.m, across, depth, epilogue="gelu"), cell, machine)
    down, more = _kernel("down", Gemm(cell.m, out, across), cell, machine, a="up")
    return Program((up, down), (*new, *more), name=cell.workload)


def _kernel(name: str, gemm: Gemm, cell: Cell, machine: str, a: str | None = None) -> Parts:
    rule, tile = architecture_of(machine), parse_tile(cell.tile)
    if rule is None or tile is None:
        raise CusimError(f"no block is known for {cell.tile} on {machine}")
    problems = Problems("tile")
    tiling = fitting(gemm, Tiling(tile, int(cell.split_k), rule.stages), rule, "tile", problems)
    problems.raise_if_any()
    block = block_of(gemm, tiling, rule)
    return gemm_kernel(name, gemm, tile, block, a=a, split_k=tiling.split_k, stages=tiling.stages)


def cell_of(row: Row) -> Cell:
    """The cell that a recorded row is of. Raises ValueError for words that no cell has, saying which."""
    if _SLICES.fullmatch(row.split_k) is None:
        raise ValueError(f"split_k = {row.split_k!r}: slices of k such as 2, or 2+1 by kernel")
    if row.workload.startswith(_CHAIN) and _SIZES.fullmatch(row.workload.removeprefix(_CHAIN)) is None:
        raise ValueError(f"workload = {row.workload!r}: must be chain-NxKxN")
    gemm, cublas, prologue = None, "", _PRODUCTS["gemm-"]
    for start, word in _PRODUCTS.items():
        if row.workload.startswith(start):
            sizes = row.workload.removeprefix(start)
            if _SIZES.fullmatch(sizes) is None or not sizes.startswith(f"{row.m}x"):
                raise ValueError(f"workload = {row.workload!r}: must be {start}MxNxK, and m M")
            m, n, k = (int(size) for size in sizes.split("x"))
            gemm, prologue = (m, n, k), word
    policy = row.policy
    if policy.startswith(_CUBLAS):
        policy, cublas = "stream", policy.removeprefix(_CUBLAS)
    return Cell(
        row.group, row.label, row.workload, row.m, row.tile, row.split_k, row.launch, policy, row.order,
        None if row.flags == "default" else row.flags, gemm, cublas, row.occasion, prologue,
    )  # fmt: skip
