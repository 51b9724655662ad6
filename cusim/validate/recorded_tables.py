"""The tables of a validation on recordings, one a set and kind: predicted cells beside measured ones.

Kinds: single kernels at tiles that calibration saw, and at others; totals of several kernels; and for these the choice
among all recorded plans of a workload and M, whatever their tile and split-K.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cusim.machine.machine import Machine
from cusim.recording.rows import SETS
from cusim.validate.judged import BASELINE, Judged, any_tile, cut_of, policy_of
from cusim.validate.judging import judge, policies_of
from cusim.validate.recorded_rivals import recorded_rivals
from cusim.validate.scores import Errors, errors
from cusim.validate.summary import Summary

SEEN, UNSEEN, CHAIN, ANY_TILE = "single-seen", "single-unseen", "chain", "chain-any-tile"
KINDS = (SEEN, UNSEEN, CHAIN, ANY_TILE)
#: Groups of rows that are listed where the model is wrong.
WORST = 10


@dataclass(frozen=True, slots=True)
class Group:
    """Cells alike in workload, policy and launch, tile and split-K, and the errors of their predictions."""

    workload: str
    policy: str
    cut: str
    errors: Errors


@dataclass(frozen=True)
class RecordedTable:
    """One set and kind: cells, figures, rivals and the rule that the fixed ones follow, errors by policy (row by row,
    and each side at its best order), and the groups that the model misses most.
    """

    label: str
    kind: str
    rows: tuple[Judged, ...]
    summary: Summary
    policies: Mapping[str, tuple[Errors, Errors]]
    rivals: Mapping[str, Summary]
    rules: Mapping[str, str]
    worst: tuple[Group, ...]


def recorded_tables(rows: Sequence[Judged], machine: Machine, seen: frozenset[str]) -> Iterator[RecordedTable]:
    """The tables of every set, sealed first; *seen* are the tiles of the calibration. Leave rows of cuBLAS out."""
    for label in reversed(SETS):
        for kind in KINDS:
            members = [row for row in rows if row.pooled.label == label and _is_of(row, kind, seen)]
            if members:
                yield _table(label, kind, members, machine)


def _is_of(row: Judged, kind: str, seen: frozenset[str]) -> bool:
    if row.pooled.cell.gemm is None:
        return kind in (CHAIN, ANY_TILE)
    return kind == (SEEN if row.pooled.cell.tile in seen else UNSEEN)


def _table(label: str, kind: str, members: Sequence[Judged], machine: Machine) -> RecordedTable:
    rows = [replace(row, scored=any_tile(row.scored)) for row in members] if kind == ANY_TILE else members
    scored = [row.scored for row in rows]
    rivals, rules = recorded_rivals(rows, machine)
    return RecordedTable(
        label, kind, tuple(rows), judge(scored), policies_of(scored), rivals, rules, tuple(_worst(members))
    )


def _worst(rows: Sequence[Judged]) -> list[Group]:
    """The groups with the largest mean absolute error, the largest first."""
    groups: dict[tuple[str, str, str], list[Judged]] = {}
    for row in rows:
        cell = row.pooled.cell
        if not row.scored.given:
            groups.setdefault((cell.workload, policy_of(cell), cut_of(cell)), []).append(row)
    found = [Group(*key, errors([row.scored for row in members], BASELINE)) for key, members in groups.items()]
    return sorted(found, key=lambda group: -(group.errors.mape_pct or 0.0))[:WORST]
