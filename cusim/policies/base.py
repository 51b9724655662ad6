"""What a synchronisation policy is: which semaphore a finished tile posts, and which ones a tile waits on.

A policy holds no CUDA text. Its indices, increments and targets are expressions, which the engine evaluates and the
printer of :mod:`cusim.policies.cuda` turns into code.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cusim.errors import refuse
from cusim.program.depends import TileDep, TileSpan, first_step
from cusim.program.expr import Const, Expr, IntArray, as_expr, k, maximum, minimum
from cusim.program.program import MOST_PLACES

#: Most waits of one kind that a tile may make for one read, each an expression of its own.
MOST_WAITS = 2**12


@dataclass(frozen=True, slots=True)
class Post:
    """A finished producer tile adds *add* to semaphore *index*; both are expressions of the producer's r and c."""

    index: Expr
    add: Expr


@dataclass(frozen=True, slots=True)
class Wait:
    """A consumer tile waits until semaphores *index* ... *index + count - 1* have each reached *target*.

    All are expressions of the consumer's r, c, z and k. With *at_k* None they are evaluated at every k step of the
    slice, otherwise at that step only. A *count* of 0 is no wait.
    """

    index: Expr
    target: Expr
    at_k: Expr | None
    count: Expr

    def exprs(self) -> tuple[Expr, ...]:
        """Every expression of the wait."""
        every = (self.index, self.target, self.count)
        return every if self.at_k is None else (*every, self.at_k)


class SyncPolicy(Protocol):
    """How the tiles of one dependence synchronise (cuSync §III-E)."""

    @property
    def name(self) -> str:
        """The word that chooses the policy on the command line."""

    def size(self, dep: TileDep) -> int:
        """Number of semaphores."""

    def posts(self, dep: TileDep) -> tuple[Post, ...]:
        """What a finished producer tile posts."""

    def waits(self, dep: TileDep) -> tuple[Wait, ...]:
        """What a consumer tile waits on."""


def when(dep: TileDep, span: TileSpan) -> Expr:
    """The k step before which a read that is not streamed happens."""
    return first_step(dep) + (span.at_k or 0)


def is_first(dep: TileDep) -> Expr:
    """1 at the first k step of a slice, 0 at later ones."""
    return 1 - is_later(dep)


def is_later(dep: TileDep) -> Expr:
    """0 at the first k step of a slice, 1 at later ones."""
    return minimum(k - first_step(dep), 1)


def entering(low: Expr, high: Expr, dep: TileDep) -> tuple[Expr, Expr]:
    """Start of the part of [low, high) that no earlier k step of the slice has waited for, and a factor for the count.

    Tiles that an earlier step waited for need no second wait. The slice's own first step counts from *low*, also
    where its offset is no multiple of the producer's tile (a case that cuSync's TileSync misses). Only a range that
    never moves back can be shortened so; any other is waited for whole, whenever it has moved (the factor: 1 or 0).
    """
    if "k" not in low.uses() | high.uses():
        return low, ONE
    if "k" not in high.uses() or not rises(low, dep):
        return low, moved(dep, low, high)
    before = high.subs(k=k - 1)
    return maximum(low, before * is_later(dep)), ONE


def moved(dep: TileDep, *bounds: Expr) -> Expr:
    """1 at the first k step of a slice and at steps where a bound differs from the step before, else 0."""
    changes = is_first(dep)
    for bound in bounds:
        if "k" in bound.uses():
            before = bound.subs(k=k - 1)
            changes = changes + maximum(bound - before, before - bound)
    return minimum(changes, 1)


def rises(low: Expr, dep: TileDep) -> bool:
    """True where *low* never falls from one k step of a slice to the next, for any tile of the consumer."""
    if "k" not in low.uses():
        return True
    falls = np.diff(over_grid(low, dep), axis=-1) < 0
    inside_slice = np.arange(1, dep.steps) % dep.slice_steps != 0
    return not bool(np.any(falls & inside_slice))


def widest(low: Expr, high: Expr, dep: TileDep) -> int:
    """The largest number of tiles that [low, high) holds anywhere in the consumer's grid.

    InputError where they are more than :data:`MOST_WAITS`, since a wait is made for each.
    """
    check_places((low, high), dep)
    found = max(int(np.max(over_grid(high, dep) - over_grid(low, dep))), 0)
    if found > MOST_WAITS:
        why = (
            f"a tile of {dep.consumer} would wait for {found} semaphores of {dep.producer} one by one, at most "
            f"{MOST_WAITS} are possible: take policy row, a larger batch, or tiles of like height"
        )
        raise refuse("plan", dep.name, None, why)
    return found


def check_places(exprs: Iterable[Expr], dep: TileDep) -> None:
    """Raises InputError where the expressions differ at too many tiles and k steps to be worked out at each."""
    sizes = _sizes(dep)
    places = math.prod(sizes[name] for name in frozenset[str]().union(*(expr.uses() for expr in exprs)))
    if places > MOST_PLACES:
        why = (
            f"its waits would have to be worked out for {places} tiles and k steps of {dep.consumer}, at most "
            f"{MOST_PLACES} are possible: take larger tiles or stream order"
        )
        raise refuse("plan", dep.name, None, why)


def over_grid(expr: Expr, dep: TileDep) -> IntArray:
    """The expression over (R, C, Z, steps of a whole tile) of the consumer, broadcast over what it does not use."""
    check_places((expr,), dep)
    sizes = _sizes(dep)
    shapes = np.ix_(*(np.arange(size) for size in sizes.values()))
    values = dict(zip(sizes, shapes, strict=True))
    return expr.eval(**{name: values[name] for name in expr.uses()})


def _sizes(dep: TileDep) -> dict[str, int]:
    return dict(zip("rczk", (*dep.consumer_grid, dep.steps), strict=True))


def at_step(dep: TileDep, span: TileSpan, *bounds: Expr) -> Expr | None:
    """Where a wait over *bounds* belongs: None (every step) if they move with k, else the read's own step."""
    if span.at_k is None and any("k" in bound.uses() for bound in bounds):
        return None
    return when(dep, span)


def one_if(low: Expr, high: Expr) -> Expr:
    """1 where low < high, else 0."""
    return maximum(minimum(high - low, 1), 0)


ONE = Const(1)


def constant(value: int) -> Expr:
    """An integer as an expression."""
    return as_expr(value)
