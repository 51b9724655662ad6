"""Predictions of recorded rows: each distinct cell once, spread over processes, in the order of the rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import TypeVar

from cusim.engine.predict import predict
from cusim.engine.result import Deadlock
from cusim.errors import CusimError, InputError
from cusim.machine.load import load_machine, machine_names
from cusim.machine.machine import Machine
from cusim.recording.cells import Cell, cell_of, program_of
from cusim.recording.rows import Row
from cusim.workloads.defaults import architecture_of

#: Cells below which starting processes costs more than they save.
FEW = 16
CUBLAS = "run by cuBLAS, which is not simulated"
DEADLOCK = "predicted to deadlock"
Watch = Callable[[str], None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the model says of a cell: its total in ps, or None and *reason*, why there is none."""

    total_ps: int | None
    reason: str = ""


def predict_rows(
    rows: Sequence[Row], machine: Machine, workers: int | None = None, watch: Watch = lambda _: None
) -> list[int | None]:
    """The predicted total of each row in ps, in their order; None where the model has none (:func:`outcomes_of`)."""
    return [outcome.total_ps for outcome in outcomes_of(rows, machine, workers, watch)]


def outcomes_of(
    rows: Sequence[Row], machine: Machine, workers: int | None = None, watch: Watch = lambda _: None
) -> list[Outcome]:
    """What the model says of each row, in their order: rows of one cell share one prediction.

    *workers* processes predict (as many as there are CPUs; 1 stays in this one), and *watch* hears of each distinct
    cell when it is done. The result does not depend on either.
    """
    cells = [bare(cell_of(row)) for row in rows]
    return spread(outcome_of, cells, machine, workers, watch)


def spread(
    work: Callable[[Cell, Machine], T],
    cells: Sequence[Cell],
    machine: Machine,
    workers: int | None = None,
    watch: Watch = lambda _: None,
) -> list[T]:
    """What *work*, a function of a module, makes of each cell, in their order, done once a distinct cell."""
    distinct = sorted(dict.fromkeys(cells), key=_effort, reverse=True)
    found: dict[Cell, T] = {}
    for cell, made in zip(distinct, _spread(work, distinct, machine, workers or os.cpu_count() or 1), strict=True):
        found[cell] = made
        watch(f"{cell.workload} m={cell.m} {cell.tile} {cell.policy}")
    return [found[cell] for cell in cells]


def outcome_of(cell: Cell, machine: Machine) -> Outcome:
    """What the model says of one cell."""
    if cell.cublas:
        return Outcome(None, CUBLAS)
    try:
        program, plan = program_of(cell, known_as(machine))
        result = predict(program, machine, plan)
    except InputError as error:
        return Outcome(None, "; ".join(problem.line() for problem in error.problems))
    except CusimError as error:
        return Outcome(None, str(error))
    return Outcome(None, DEADLOCK) if isinstance(result, Deadlock) else Outcome(result.total_ps)


def known_as(machine: Machine) -> str:
    """The name under which the workloads know a machine: its own, or that of the preset of the same GPU."""
    if architecture_of(machine.name) is not None:
        return machine.name
    return next((name for name in machine_names() if load_machine(name).gpu == machine.gpu), machine.name)


def bare(cell: Cell) -> Cell:
    """The cell without what says when and for which set it was measured."""
    return replace(cell, group="", label="", occasion=0)


def _effort(cell: Cell) -> int:
    """Grows with the time that a prediction takes: long ones start first, so that no process ends late and alone."""
    m, n, _ = cell.gemm or (cell.m, 1 << 16, 1)
    return m * n * (1 if cell.gemm else 2) // max(prod(_sides(cell.tile)), 1)


def _sides(tile: str) -> Iterator[int]:
    return (int(side) for side in tile.split("x")[:2] if side.isdecimal())


def _spread(work: Callable[[Cell, Machine], T], cells: Sequence[Cell], machine: Machine, workers: int) -> Iterable[T]:
    if workers == 1 or len(cells) < FEW:
        yield from (work(cell, machine) for cell in cells)
        return
    pool = ProcessPoolExecutor(min(workers, len(cells)), initializer=_begin, initargs=(machine,))
    try:
        yield from pool.map(partial(_here, work), cells, chunksize=4)
    finally:
        pool.shutdown(cancel_futures=True)


_machine: Machine | None = None


def _begin(machine: Machine) -> None:
    """Keeps the machine of this process, so that it travels once and not with every cell."""
    global _machine
    _machine = machine


def _here(work: Callable[[Cell, Machine], T], cell: Cell) -> T:
    assert _machine is not None
    return work(cell, _machine)
