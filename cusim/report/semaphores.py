"""Which semaphore every tile of a trace posts to, from the policies' expressions that the trace carries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cusim.errors import InputError
from cusim.program.expr import Expr, parse_expr
from cusim.trace.trace import Trace


def posted_semaphores(trace: Trace) -> dict[str, list[NDArray[np.int64]]]:
    """By dependence, for each post of its policy, the semaphore of every row of the trace's tiles.

    Read from ``meta["posts"]``: by dependence, the index expressions over r and c of the producer's tiles. What is not
    there, or is no such expression, is left out: arrows are then drawn by kernel alone.
    """
    given = trace.meta.get("posts")
    found: dict[str, list[NDArray[np.int64]]] = {}
    for name, texts in given.items() if isinstance(given, Mapping) else ():
        producer = str(name).partition(">")[0]
        exprs = _exprs(texts)
        if exprs and producer in trace.kernels:
            mine = trace.tiles["kernel"] == trace.kernels.index(producer)
            columns = [_evaluated(expr, trace, mine) for expr in exprs]
            if all(column is not None for column in columns):
                found[name] = [column for column in columns if column is not None]
    return found


def _exprs(texts: Any) -> list[Expr]:
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        return []
    try:
        return [parse_expr(text, ("r", "c")) for text in texts]
    except InputError:
        return []


def _evaluated(expr: Expr, trace: Trace, mine: NDArray[np.bool_]) -> NDArray[np.int64] | None:
    """The expression at the tiles of *mine*; None where it has no value there."""
    values = np.zeros(trace.blocks, dtype=np.int64)
    try:
        with np.errstate(all="raise"):
            values[mine] = expr.eval(r=trace.tiles["r"][mine], c=trace.tiles["c"][mine])
    except (ArithmeticError, IndexError):
        return None
    return values
