"""Affine forms of tile coordinates: sums of variables times integers and a constant, in one canonical spelling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cusim.errors import refuse
from cusim.program.expr import Const, Expr, Op, Var, as_expr

VARIABLES = ("r", "c", "k")


@dataclass(frozen=True, slots=True)
class Reached:
    """A value that an affine form takes, and a tile where it does."""

    value: int
    at: tuple[tuple[str, int], ...]

    def where(self) -> str:
        """The tile as ``r = 5, k = 3``."""
        return ", ".join(f"{name} = {value}" for name, value in self.at) or "every tile"


@dataclass(frozen=True, slots=True)
class Affine:
    """r * *r* + c * *c* + k * *k* + *constant*; equal forms are equal objects."""

    r: int = 0
    c: int = 0
    k: int = 0
    constant: int = 0

    def terms(self) -> tuple[tuple[str, int], ...]:
        """Variables that matter and their factors: the positive ones first."""
        factors = [(name, getattr(self, name)) for name in VARIABLES if getattr(self, name)]
        return tuple(sorted(factors, key=lambda term: term[1] < 0))

    def expr(self) -> Expr:
        """The form as an expression, always built in the same way."""
        terms = self.terms()
        total = as_expr(self.constant if not terms or terms[0][1] < 0 else 0)
        for position, (name, factor) in enumerate(terms):
            term = Var(name) * abs(factor)
            total = total - term if factor < 0 else term if position == 0 else total + term
        return total + self.constant if terms and terms[0][1] > 0 else total

    def __str__(self) -> str:
        text = ""
        for name, factor in self.terms():
            times = "" if abs(factor) == 1 else f"{abs(factor)}*"
            sign = ("-" if factor < 0 else "") if not text else (" - " if factor < 0 else " + ")
            text += f"{sign}{times}{name}"
        if not text:
            return str(self.constant)
        return text + (f" {'-' if self.constant < 0 else '+'} {abs(self.constant)}" if self.constant else "")

    def smallest(self, sizes: Mapping[str, int]) -> Reached:
        """The least value over r, c and k of 0 ... size - 1."""
        return self._extreme({name: 0 if factor > 0 else sizes[name] - 1 for name, factor in self.terms()})

    def largest(self, sizes: Mapping[str, int]) -> Reached:
        """The greatest value over r, c and k of 0 ... size - 1."""
        return self._extreme({name: sizes[name] - 1 if factor > 0 else 0 for name, factor in self.terms()})

    def divided(self, size: int) -> Affine:
        """The form divided by *size*; InputError where it does not divide."""
        parts = (self.r, self.c, self.k, self.constant)
        if any(part % size for part in parts):
            raise refuse("affine", str(self), None, f"is no multiple of {size}")
        return Affine(*(part // size for part in parts))

    def _extreme(self, at: Mapping[str, int]) -> Reached:
        value = self.constant + sum(factor * at[name] for name, factor in self.terms())
        return Reached(value, tuple((name, at[name]) for name in VARIABLES if name in at))


def affine_of(expr: Expr) -> Affine:
    """The affine form of an expression; InputError where it is none."""
    match expr:
        case Const(value):
            return Affine(constant=value)
        case Var(name) if name in VARIABLES:
            return Affine(**{name: 1})
        case Op("+" | "-" as op, left, right):
            return _sum(affine_of(left), affine_of(right), 1 if op == "+" else -1)
        case Op("*", left, right):
            a, b = affine_of(left), affine_of(right)
            if not b.terms():
                return _sum(Affine(), a, b.constant)
            if not a.terms():
                return _sum(Affine(), b, a.constant)
    raise refuse("affine", str(expr), None, "must be affine: sums of r, c, k times integers, and an integer")


def _sum(left: Affine, right: Affine, times: int) -> Affine:
    return Affine(
        left.r + times * right.r,
        left.c + times * right.c,
        left.k + times * right.k,
        left.constant + times * right.constant,
    )
