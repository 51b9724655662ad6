"""Recorded cells with their predictions: what scores and rivals see of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cusim.machine.machine import Machine
from cusim.policies.plan import Plan
from cusim.program.program import Program
from cusim.recording.cells import Cell, program_of
from cusim.validate.occasions import Pooled
from cusim.validate.predict_rows import alone_ps
from cusim.validate.recorded import Outcome, Watch, known_as, outcome_of, spread
from cusim.validate.scores import Scored

BASELINE = "stream"
#: How a plan is measured where nothing is said, and so is not said in its name.
_PLAIN_LAUNCH, _PLAIN_FLAGS = "wait-first", None


@dataclass(frozen=True)
class Judged:
    """A cell, the model's word on it (*outcome*) and the scored row made of both; *known* is what rivals may know,
    None where the model has no prediction.
    """

    pooled: Pooled
    outcome: Outcome
    scored: Scored
    known: Known | None


@dataclass(frozen=True)
class Known:
    """A cell's program and plan, and what the model says that each kernel takes alone in the plan's order, in ps."""

    program: Program
    plan: Plan
    alone_ps: Mapping[str, int]


def judged_cells(
    cells: Sequence[Pooled], machine: Machine, workers: int | None = None, watch: Watch = lambda _: None
) -> list[Judged]:
    """Predicts every cell, and each of its kernels alone, over *workers* processes."""
    outcomes = spread(outcome_of, [pooled.cell for pooled in cells], machine, workers, watch)
    predicted = [p.cell for p, outcome in zip(cells, outcomes, strict=True) if outcome.total_ps is not None]
    alone = iter(spread(alone_of, [streamed(cell) for cell in predicted], machine, workers, watch))
    found = []
    for pooled, outcome in zip(cells, outcomes, strict=True):
        known = None
        if outcome.total_ps is not None:
            known = Known(*program_of(pooled.cell, known_as(machine)), next(alone))
        found.append(Judged(pooled, outcome, scored_of(pooled, outcome.total_ps), known))
    return found


def alone_of(cell: Cell, machine: Machine) -> dict[str, int]:
    """What the model says that each kernel of a cell takes alone in its own order, by name, in ps."""
    program, plan = program_of(cell, known_as(machine))
    return {k.name: alone_ps(k, program, machine, plan.order_of(k.name)) for k in program.kernels}


def scored_of(pooled: Pooled, predicted_ps: int | None) -> Scored:
    """The row that scores see: its shape is one choice between policies, launches, flags and orders, at one tile."""
    cell = pooled.cell
    return Scored(
        shape=f"{sized(cell)} {cut_of(cell)}",
        group=sized(cell),
        policy=policy_of(cell),
        measured_ps=pooled.measured_ps,
        noise_ps=pooled.noise_ps,
        predicted_ps=predicted_ps,
        given=predicted_ps is None,  # in no error, but what is chosen is held against it
        order=cell.order,
        cut=cut_of(cell),
        occasions=pooled.occasions,
    )


def any_tile(scored: Scored) -> Scored:
    """The same row as one of all plans of its workload and M: tile and split-K are chosen like the order."""
    return replace(scored, shape=scored.group, order=f"{scored.order} {scored.cut}", cut="")


def policy_of(cell: Cell) -> str:
    """Policy, launch and flags in words, each only where it is not the plain one: ``row``, ``stream graph``."""
    launch = "" if cell.launch == _PLAIN_LAUNCH else cell.launch
    flags = "" if cell.flags is _PLAIN_FLAGS else cell.flags
    return " ".join(word for word in (cell.policy, launch, flags) if word)


def sized(cell: Cell) -> str:
    """Workload and size: what stays when everything that can be chosen is left open."""
    return cell.workload if cell.gemm else f"{cell.workload} m={cell.m}"


def cut_of(cell: Cell) -> str:
    """Tile, and split-K where there is any."""
    return cell.tile if cell.split_k == "1" else f"{cell.tile} split-K {cell.split_k}"


def streamed(cell: Cell) -> Cell:
    """The cell in plain stream order: kernels alone do not know how they are synchronised."""
    return replace(cell, policy=BASELINE, launch=_PLAIN_LAUNCH, flags=_PLAIN_FLAGS)
