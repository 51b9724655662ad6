"""From published readings to what can be predicted: a program and a plan for each policy at each size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cusim.policies.plan import Plan
from cusim.policies.registry import build_plan
from cusim.program.program import Program
from cusim.validate.published import PublishedSet
from cusim.validate.readings import SCORED, Reading
from cusim.workloads.blocks import Architecture, Tiling
from cusim.workloads.defaults import architecture_of
from cusim.workloads.mlp import MLPS, Mlp


@dataclass(frozen=True)
class Case:
    """One policy at one size: what was measured (*reading*, the mean of its repeats), the program with the policy's
    own tiles, and the plan. *changed* names the kernels that are cut otherwise than in stream order.
    """

    reading: Reading
    program: Program
    plan: Plan
    changed: tuple[str, ...]

    @property
    def policy(self) -> str:
        """``stream``, ``row`` or ``tile``."""
        return self.reading.policy

    @property
    def anchors(self) -> bool:
        """True for stream order, whose kernel times are given to the anchored predictions."""
        return self.policy == "stream"


@dataclass(frozen=True)
class Shape:
    """One size with all its policies, stream first. *group* is alike for sizes whose grids and tiles are alike: they
    are one experiment repeated, and count as one where shapes are drawn or left out.
    """

    m: int
    group: str
    cases: tuple[Case, ...]

    @property
    def stream(self) -> Case:
        """The case that the others are judged against."""
        return self.cases[0]


def shapes_of(published: PublishedSet) -> tuple[Shape, ...]:
    """Every size of a set, in ascending order. Raises InputError for tiles of which no program can be made."""
    mlp, rule = MLPS[published.workload], architecture_of(published.gpu)
    assert rule is not None
    sizes = sorted({reading.m for reading in published.readings})
    return tuple(_shape(m, [r for r in published.readings if r.m == m], mlp, rule) for m in sizes)


def _shape(m: int, readings: Sequence[Reading], mlp: Mlp, rule: Architecture) -> Shape:
    merged = [merge([r for r in readings if r.policy == word]) for word in SCORED if _has(readings, word)]
    base = merged[0].tilings
    assert base is not None
    cases = tuple(_case(reading, base, mlp, rule) for reading in merged)
    kernels = cases[0].program.kernels
    group = " ".join(f"{'x'.join(map(str, k.grid))}/{'x'.join(map(str, k.tile))}" for k in kernels)
    return Shape(m, group, cases)


def _has(readings: Iterable[Reading], policy: str) -> bool:
    return any(reading.policy == policy for reading in readings)


def merge(readings: Sequence[Reading]) -> Reading:
    """One reading for the repeats of a line: mean times, and the root mean square of their deviations."""
    first, count = readings[0], len(readings)
    total = round(sum(r.total_ps for r in readings) / count)
    stdevs = [r.stdev_ps or 0 for r in readings]
    stdev = round((sum(s * s for s in stdevs) / count) ** 0.5)
    own = first.own_ps
    if own is not None and all(r.own_ps is not None for r in readings):
        producer = round(sum(r.own_ps[0] for r in readings if r.own_ps) / count)
        own = (producer, total - producer)
    return replace(first, total_ps=total, stdev_ps=stdev, own_ps=own)


def _case(reading: Reading, base: tuple[Tiling, Tiling], mlp: Mlp, rule: Architecture) -> Case:
    assert reading.tilings is not None
    program = mlp.program(reading.m, reading.tilings, rule)
    changed = [k.name for k, own, b in zip(program.kernels, reading.tilings, base, strict=True) if own != b]
    plan = build_plan(program, policy=reading.policy, order="row", flags=reading.flags)
    return Case(reading, program, plan, tuple(changed))
