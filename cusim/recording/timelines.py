"""Recorded timelines: the very program and plan of a measured trace, found again and proved by their digests."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cusim.errors import InputError, refuse
from cusim.policies.orders import order_table
from cusim.policies.plan import Plan
from cusim.policies.plan_serial import plan_digest
from cusim.policies.words import parse_order
from cusim.program.program import Program
from cusim.recording.cells import Cell, program_of
from cusim.trace.formats import read_trace
from cusim.trace.trace import Trace

#: What a measured trace must say of itself to be found again.
_NEEDED = ("program", "program_digest", "plan", "plan_digest", "launch")
#: Bands that an order may have; a recorded order is looked up by the tiles that its tickets got.
_LARGEST_GROUP = 64
#: Heights of a tile, in rows of M, that workloads are cut into.
_HEIGHTS = (64, 128, 192, 256)


@dataclass(frozen=True, slots=True)
class Timeline:
    """A measured trace and what was run: *cell* names it, *program* and *plan* have the digests that the trace says."""

    name: str
    trace: Trace
    cell: Cell
    program: Program
    plan: Plan


def read_timelines(place: Path, machine_name: str) -> list[Timeline]:
    """Every timeline of a folder, or the one in a file; raises as :func:`timeline_paths`, :func:`timeline_of` do."""
    return [timeline_of(read_trace(path), path.stem, machine_name, str(path)) for path in timeline_paths(place)]


def timeline_paths(place: Path) -> list[Path]:
    """The traces (``.npz``) in the folder *place* by name, or *place* itself; InputError for a folder without any."""
    paths = sorted(place.glob("*.npz")) if place.is_dir() else [place]
    if not paths:
        raise refuse(str(place), "timelines", None, "holds no .npz file of a measured trace")
    return paths


def timeline_of(trace: Trace, name: str, machine_name: str, source: str) -> Timeline:
    """The program and plan of a measured *trace* of a shipped workload, as it is cut on *machine_name*.

    The trace names workload, policy and launch. Its m is one of those that its grid can be of, its order one that gave
    its tickets their tiles; the digests decide. Raises InputError, naming *source*, for a trace that was not measured,
    that does not say what ran, or whose program or plan is no longer to be had: workloads or policies have changed.
    """
    lacks = [key for key in _NEEDED if not isinstance(trace.meta.get(key), str)]
    if trace.meta.get("kind") != "measured" or lacks or not trace.blocks:
        why = f"is no measured trace that says what ran{': it lacks ' + ' '.join(lacks) if lacks else ''}"
        raise refuse(source, "meta.kind", trace.meta.get("kind"), why)
    meta = trace.meta
    orders = _fitting_orders(trace)
    if not orders:
        raise refuse(source, "order", None, f"is none of row, column and group:1 to group:{_LARGEST_GROUP}")
    cell = Cell("", "", meta["program"], 0, "", _slices(trace), meta["launch"], meta["plan"], orders[0], None)
    try:
        program, m = _program(trace, cell, machine_name, source)
        for order in orders:
            cell = replace(cell, m=m, order=order)
            _, plan = program_of(cell, machine_name)
            if plan_digest(plan) == meta["plan_digest"]:
                return Timeline(name, trace, cell, program, plan)
    except InputError as error:
        raise InputError(source, error.problems) from None
    why = f"is of no plan with policy {cell.policy}, launch {cell.launch} and order {' '.join(orders[:4])}"
    raise refuse(source, "meta.plan_digest", meta["plan_digest"], why)


def _program(trace: Trace, cell: Cell, machine_name: str, source: str) -> tuple[Program, int]:
    """The program that the trace ran, and its m."""
    rows = int(trace.tiles["r"][trace.tiles["kernel"] == 0].max(initial=0)) + 1
    for m in _rows_of(rows):
        program, _ = program_of(replace(cell, m=m), machine_name)
        if program.digest == trace.meta["program_digest"]:
            return program, m
    why = f"is of no {cell.workload} with {rows} rows of tiles, as {machine_name} runs it today"
    raise refuse(source, "meta.program_digest", trace.meta["program_digest"], why)


def _rows_of(rows: int) -> list[int]:
    """Every m that a grid of *rows* tiles can be of, round numbers first: those are what people measure."""
    sizes = {m for height in _HEIGHTS for m in range((rows - 1) * height + 1, rows * height + 1)}
    return sorted(sizes, key=lambda m: (-(m & -m), m))


def _slices(trace: Trace) -> str:
    """The slices of each kernel as ``--split-k`` takes them: ``1`` where none is split."""
    last = [int(trace.tiles["z"][trace.tiles["kernel"] == k].max(initial=0)) for k in range(len(trace.kernels))]
    return "+".join(str(z + 1) for z in last) if any(last) else "1"


def _fitting_orders(trace: Trace) -> list[str]:
    """The orders that give every ticket of every kernel the tile that it got."""
    words = ["row", "column", *(f"group:{size}" for size in range(1, _LARGEST_GROUP + 1))]
    tables = []
    for kernel in range(len(trace.kernels)):
        rows = np.flatnonzero(trace.tiles["kernel"] == kernel)
        rows = rows[np.argsort(trace.tiles["ticket"][rows], kind="stable")]
        tables.append(np.stack([trace.tiles[name][rows] for name in ("r", "c", "z")], axis=1))
    return [word for word in words if all(_is_ordered(table, word) for table in tables)]


def _is_ordered(table: NDArray[np.int64], word: str) -> bool:
    rows, cols, slices = (int(last) + 1 for last in table.max(axis=0, initial=0))
    return rows * cols * slices == len(table) and np.array_equal(
        order_table(parse_order(word), (rows, cols, slices)), table
    )
