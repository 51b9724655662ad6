"""Shorter expressions for printed code: what a grid makes redundant is left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from cusim.policies.base import Wait
from cusim.program.depends import TileDep, first_step
from cusim.program.expr import Const, Expr, IntArray, Lookup, Op

#: Arrays of the variables' values that broadcast against each other: every place where an expression is evaluated.
Domain: TypeAlias = Mapping[str, IntArray]


def tidy(expr: Expr, domain: Domain) -> Expr:
    """An expression with the same value everywhere in *domain*: a constant or an operand instead where one has it."""
    values = expr.eval(**domain)
    if (values == values.flat[0]).all():
        return Const(int(values.flat[0]))
    match expr:
        case Op(op, left, right):
            for side in (left, right):
                if (values == side.eval(**domain)).all():
                    return tidy(side, domain)
            return Op(op, tidy(left, domain), tidy(right, domain)).subs()
        case Lookup(table, index):
            return Lookup(table, tidy(index, domain))
    return expr


def tickets(count: int) -> Domain:
    """The tickets 0 ... count - 1."""
    return {"t": np.arange(count)}


def producer_tiles(dep: TileDep) -> Domain:
    """The tiles of the producer, which post once each, with z and k of no meaning."""
    rows, cols, _ = dep.producer_grid
    zero = np.zeros(1, dtype=np.int64)
    return {"r": np.arange(rows).reshape(-1, 1), "c": np.arange(cols).reshape(1, -1), "z": zero, "k": zero}


def blocks(dep: TileDep) -> Domain:
    """The blocks of the consumer at the first step of their slice."""
    rows, cols, slices = dep.consumer_grid
    z = np.arange(slices).reshape(1, 1, -1, 1)
    return {
        "r": np.arange(rows).reshape(-1, 1, 1, 1),
        "c": np.arange(cols).reshape(1, -1, 1, 1),
        "z": z,
        "k": np.asarray(first_step(dep).eval(z=z)).reshape(1, 1, -1, 1),
    }


def wait_places(wait: Wait, dep: TileDep) -> Domain:
    """Where a wait is evaluated: each k step of each block, or each block's *at_k*."""
    places = dict(blocks(dep))
    if wait.at_k is not None:
        places["k"] = wait.at_k.eval(**places)
    else:
        places["k"] = np.minimum(places["k"] + np.arange(dep.slice_steps), dep.steps - 1)
    return places
