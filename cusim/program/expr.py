"""Integer expressions over tile coordinates: written once, evaluated with numpy, printed as C.

Policies, orders and accesses are built from these, so that the simulator and the CUDA code that runs on the GPU
read the same formula. Division and remainder round towards minus infinity, as in Python.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cusim.errors import refuse

IntArray: TypeAlias = NDArray[np.int64]
Operand: TypeAlias = "Expr | int"

#: Variables an expression may use: row, column and split-K slice of a tile, k step, ticket.
VARIABLES = ("r", "c", "z", "k", "t")

#: Largest integer, either sign, that an expression read from text may hold.
LARGEST_CONSTANT = 2**62

_PYTHON: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "//": np.floor_divide,
    "%": np.mod,
    "min": np.minimum,
    "max": np.maximum,
}
#: The same on Python's own integers, which do not overflow where numpy's would.
_EXACT: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "min": min,
    "max": max,
}
_C_CALLS = {"//": "cusim_div", "%": "cusim_mod", "min": "cusim_min", "max": "cusim_max"}
_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "//": 2, "%": 2}


class Expr:
    """An integer expression; combine with ``+ - * // %`` and :func:`minimum`, :func:`maximum`."""

    __slots__ = ()

    def __add__(self, other: Operand) -> Expr:
        return _combine("+", self, other)

    def __radd__(self, other: int) -> Expr:
        return _combine("+", other, self)

    def __sub__(self, other: Operand) -> Expr:
        return _combine("-", self, other)

    def __rsub__(self, other: int) -> Expr:
        return _combine("-", other, self)

    def __mul__(self, other: Operand) -> Expr:
        return _combine("*", self, other)

    def __rmul__(self, other: int) -> Expr:
        return _combine("*", other, self)

    def __floordiv__(self, other: Operand) -> Expr:
        return _combine("//", self, other)

    def __rfloordiv__(self, other: int) -> Expr:
        return _combine("//", other, self)

    def __mod__(self, other: Operand) -> Expr:
        return _combine("%", self, other)

    def __rmod__(self, other: int) -> Expr:
        return _combine("%", other, self)

    def eval(self, **values: int | IntArray) -> IntArray:
        """The value for integers or broadcastable arrays of the variables used; int64."""
        raise NotImplementedError

    def cuda(self) -> str:
        """The expression as C text over ``int`` variables of the same names (``cusim_div`` and friends defined)."""
        raise NotImplementedError

    def uses(self) -> frozenset[str]:
        """Names of the variables that the value depends on."""
        raise NotImplementedError

    def subs(self, **values: Operand) -> Expr:
        """The expression with variables replaced by other expressions."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Const(Expr):
    """An integer constant."""

    value: int

    def eval(self, **values: int | IntArray) -> IntArray:
        return np.asarray(self.value, dtype=np.int64)

    def cuda(self) -> str:
        return str(self.value) if self.value >= 0 else f"({self.value})"

    def uses(self) -> frozenset[str]:
        return frozenset()

    def subs(self, **values: Operand) -> Expr:
        return self

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Var(Expr):
    """A variable of :data:`VARIABLES`."""

    name: str

    def eval(self, **values: int | IntArray) -> IntArray:
        return np.asarray(values[self.name], dtype=np.int64)

    def cuda(self) -> str:
        return self.name

    def uses(self) -> frozenset[str]:
        return frozenset((self.name,))

    def subs(self, **values: Operand) -> Expr:
        return as_expr(values.get(self.name, self))

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Op(Expr):
    """Two expressions joined by an operator of ``+ - * // % min max``."""

    op: str
    left: Expr
    right: Expr

    def eval(self, **values: int | IntArray) -> IntArray:
        return np.asarray(_PYTHON[self.op](self.left.eval(**values), self.right.eval(**values)), dtype=np.int64)

    def cuda(self) -> str:
        left, right = self.left.cuda(), self.right.cuda()
        if self.op in _C_CALLS:
            return f"{_C_CALLS[self.op]}({left}, {right})"
        return f"({left} {self.op} {right})"

    def uses(self) -> frozenset[str]:
        return self.left.uses() | self.right.uses()

    def subs(self, **values: Operand) -> Expr:
        return _combine(self.op, self.left.subs(**values), self.right.subs(**values))

    def __str__(self) -> str:
        if self.op in ("min", "max"):
            return f"{self.op}({self.left}, {self.right})"
        mine = _PRECEDENCE[self.op]
        left = f"({self.left})" if _rank(self.left) < mine else str(self.left)
        right = f"({self.right})" if _rank(self.right) <= mine else str(self.right)
        return f"{left} {self.op} {right}"


@dataclass(frozen=True, slots=True)
class Lookup(Expr):
    """An entry of an integer table: how an arbitrary Python policy or order reaches both readers."""

    table: tuple[int, ...]
    index: Expr

    def eval(self, **values: int | IntArray) -> IntArray:
        return np.asarray(self.table, dtype=np.int64)[self.index.eval(**values)]

    def cuda(self) -> str:
        return f"{table_name(self.table)}[{self.index.cuda()}]"

    def uses(self) -> frozenset[str]:
        return self.index.uses()

    def subs(self, **values: Operand) -> Expr:
        return Lookup(self.table, self.index.subs(**values))

    def __str__(self) -> str:
        return f"table({', '.join(map(str, self.table))})[{self.index}]"


r, c, z, k, t = (Var(name) for name in VARIABLES)


def as_expr(value: Operand) -> Expr:
    """The value as an expression; integers become constants."""
    return value if isinstance(value, Expr) else Const(int(value))


def minimum(left: Operand, right: Operand) -> Expr:
    """The smaller of two expressions."""
    return _combine("min", left, right)


def maximum(left: Operand, right: Operand) -> Expr:
    """The larger of two expressions."""
    return _combine("max", left, right)


def ceil_div(left: Operand, right: int) -> Expr:
    """The quotient by a positive integer, rounded up."""
    return (as_expr(left) + (right - 1)) // right


def table_name(table: tuple[int, ...]) -> str:
    """The C name of a table, the same for equal contents."""
    digest = 0
    for entry in table:
        digest = (digest * 1_000_003 + entry + 1) % (1 << 61)
    return f"cusim_table_{len(table)}_{digest:x}"


def tables(expr: Expr) -> set[tuple[int, ...]]:
    """Every lookup table that the expression reads."""
    match expr:
        case Op(_, left, right):
            return tables(left) | tables(right)
        case Lookup(table, index):
            return {table} | tables(index)
        case _:
            return set()


def parse_expr(text: str, variables: tuple[str, ...] = VARIABLES) -> Expr:
    """The expression that *text* spells in Python's syntax; InputError names what is not allowed in it."""
    return expr_of_ast(syntax_tree(text.strip(), text), text, variables)


def syntax_tree(code: str, text: str) -> ast.expr:
    """The syntax tree of one expression; InputError quotes *text* where *code* is none or is nested too deeply."""
    try:
        return ast.parse(code, mode="eval").body
    except SyntaxError as error:
        where = f" (column {error.offset})" if error.offset else ""
        raise refuse("expression", text, None, f"not an expression{where}") from None
    except (ValueError, RecursionError, MemoryError):
        raise refuse("expression", text, None, "not an expression: null bytes, or nested too deeply") from None


_AST_OPS: Mapping[type, str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%"}


def expr_of_ast(node: ast.expr, text: str, variables: tuple[str, ...]) -> Expr:
    """The expression of a parsed syntax tree, by a whitelist of nodes; *text* is quoted in errors.

    Refuses constants beyond 2**62, which the engine's 64-bit integers could not hold, and division by a constant 0.
    """
    try:
        found = _walk(node, text, variables)
    except RecursionError:
        raise refuse("expression", text, None, "nested too deeply") from None
    if any(abs(value) > LARGEST_CONSTANT for value in _constants(found)):
        raise refuse("expression", text, None, "an integer in it is beyond 2**62")
    return found


def _walk(node: ast.expr, text: str, variables: tuple[str, ...]) -> Expr:
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return Const(value)
        case ast.Name(id=name) if name in variables:
            return Var(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return 0 - _walk(operand, text, variables)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _AST_OPS:
            sides = (_walk(left, text, variables), _walk(right, text, variables))
            if _AST_OPS[type(op)] in ("//", "%") and sides[1] == Const(0):
                raise refuse("expression", text, None, f"column {right.col_offset + 1} divides by zero")
            return _combine(_AST_OPS[type(op)], *sides)
        case ast.Call(func=ast.Name(id="min" | "max" as name), args=[left, right], keywords=[]):
            return _combine(name, _walk(left, text, variables), _walk(right, text, variables))
        case ast.Subscript(value=ast.Call(func=ast.Name(id="table"), args=entries, keywords=[]), slice=index):
            values = [_walk(entry, text, ()) for entry in entries]
            table = tuple(value.value for value in values if isinstance(value, Const))
            return Lookup(table, _walk(index, text, variables))
    allowed = f"integers, {' '.join(variables)}, + - * // % min max"
    raise refuse("expression", text, None, f"column {node.col_offset + 1} is not allowed; allowed: {allowed}")


def _constants(expr: Expr) -> set[int]:
    match expr:
        case Const(value):
            return {value}
        case Op(_, left, right):
            return _constants(left) | _constants(right)
        case Lookup(table, index):
            return {*table} | _constants(index)
        case _:
            return set()


def _rank(expr: Expr) -> int:
    """How tightly an expression binds when printed."""
    if isinstance(expr, Op) and expr.op in _PRECEDENCE:
        return _PRECEDENCE[expr.op]
    return 0 if isinstance(expr, Const) and expr.value < 0 else 3


def _combine(op: str, left: Operand, right: Operand) -> Expr:
    """Joins two expressions, folding what is known, so that printed code stays readable."""
    a, b = as_expr(left), as_expr(right)
    if isinstance(a, Const) and isinstance(b, Const) and not (op in ("//", "%") and b.value == 0):
        return Const(_EXACT[op](a.value, b.value))
    if isinstance(b, Const):
        if (op in ("+", "-") and b.value == 0) or (op in ("*", "//") and b.value == 1):
            return a
        if (op == "*" and b.value == 0) or (op == "%" and b.value == 1):
            return Const(0)
        return _fold_right(op, a, b.value) or Op(op, a, b)
    if isinstance(a, Const):
        if (op == "+" and a.value == 0) or (op == "*" and a.value == 1):
            return b
        if op == "*" and a.value == 0:
            return Const(0)
    if a == b and op in ("min", "max"):
        return a
    return Op(op, a, b)


def _fold_right(op: str, a: Expr, value: int) -> Expr | None:
    """Folds ``(x + i) + j`` and exact quotients ``(x * n + i) // n``; None where nothing folds."""
    match a:
        case Op("+", inner, Const(first)) if op in ("+", "-"):
            return _combine("+", inner, first + value if op == "+" else first - value)
        case Op("*", inner, Const(factor)) if op == "//" and value > 0 and factor % value == 0:
            return _combine("*", inner, factor // value)
        case Op("+", Op("*", inner, Const(factor)), Const(rest)) if op == "//" and value > 0 and factor % value == 0:
            return _combine("+", _combine("*", inner, factor // value), rest // value)
    return None
