"""Bounded robust least squares over the engine's own predictions: parameters that only whole kernels show."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cusim.calibrate.estimates import Estimate, blind_columns, estimated, unseen
from cusim.calibrate.fixed import value_of
from cusim.calibrate.parameters import Fitted
from cusim.calibrate.scaled import Floats, Scaled, Watch
from cusim.calibrate.scan import scanned
from cusim.errors import refuse
from cusim.machine.machine import Machine
from cusim.recording.cells import cell_of
from cusim.recording.rows import Row

#: Relative residual up to which a row counts by its square; beyond, by its size (soft_l1). Far from the solution most
#: rows would count as outliers, so that the first fit takes them all in earnest.
EARNEST, SOFT = 0.2, 0.02
#: Distinct cells that find the solution, and those that settle it in the last rounds; of more, evenly spread ones.
FEW_CELLS, MANY_CELLS = 64, 192
#: Rows that must be there beyond one a parameter.
SPARE = 5
#: The fit ends where a step gains less than this part of what is left, or moves no parameter by more.
_TOLERANCE, _MOST_ROUNDS, _LAST_ROUNDS = 1e-3, 20, 3


@dataclass(frozen=True, slots=True)
class Fit:
    """The machine with the fitted numbers in it, an estimate of each parameter, and the rows that settled them."""

    machine: Machine
    estimates: tuple[Estimate, ...]
    rows: int


def fit(
    rows: Sequence[Row],
    machine: Machine,
    parameters: Sequence[Fitted],
    workers: int | None = None,
    watch: Watch = lambda _: None,
) -> Fit:
    """Fits *parameters* of *machine* to the times of *rows*, all of which the model must be able to predict.

    Residuals are relative, parameters in units of their usual size, and the Jacobian is by finite differences. Raises
    InputError for too few rows, or without SciPy.
    """
    least_squares = _least_squares()
    check_enough(len(rows), len(parameters))
    if not parameters:
        return Fit(machine, (), 0)
    many = thinned(rows, MANY_CELLS)
    few, at = _begun(Scaled(thinned(rows, FEW_CELLS), machine, tuple(parameters), workers, watch))
    if not few.parameters:
        return Fit(machine, tuple(unseen(each, machine) for each in parameters), len(few.rows))
    every = few.over(many)
    for scaled, soft, rounds in ((few, EARNEST, _MOST_ROUNDS), (few, SOFT, _MOST_ROUNDS), (every, SOFT, _LAST_ROUNDS)):
        found = least_squares(
            scaled.residuals, at, jac=scaled.jacobian, bounds=scaled.bounds, loss="soft_l1", f_scale=soft,
            ftol=_TOLERANCE, xtol=_TOLERANCE, gtol=None, max_nfev=rounds,
        )  # fmt: skip
        at = np.asarray(found.x)
    estimates = {each.parameter.path: each for each in estimated(every, at)}
    ordered = tuple(estimates.get(each.path) or unseen(each, machine) for each in parameters)
    return Fit(every.machine_at(at), ordered, len(many))


def check_enough(rows: int, parameters: int) -> None:
    """Raises InputError where so many rows are too few to fix so many parameters."""
    if rows < parameters + SPARE:
        why = (
            f"{rows} rows are too few for {parameters} parameters: at least {parameters + SPARE}, or fit fewer (--fit)"
        )
        raise refuse("the recordings", "label", "calibrate", why)


def thinned(rows: Sequence[Row], most: int) -> Sequence[Row]:
    """The rows of at most *most* distinct cells: all of them, or every so many of the cells by tile, order and size."""
    cells = sorted({_place(row) for row in rows})
    if len(cells) <= most:
        return rows
    kept = {cells[(2 * place + 1) * len(cells) // (2 * most)] for place in range(most)}
    return [row for row in rows if _place(row) in kept]


def _place(row: Row) -> tuple[Any, ...]:
    size = math.prod(cell_of(row).gemm or (row.m,))
    return (row.tile, row.split_k, row.order, row.policy, row.launch, row.flags, size, row.workload, row.m)


def _begun(every: Scaled) -> tuple[Scaled, Floats]:
    """The parameters that rows see, and where their fit begins: near the machine's own values, where these make sense.

    What has no effect, such as a limit that binds nowhere around, is left as it was.
    """
    own = np.array([value_of(every.machine, each.path) for each in every.parameters]) / every.scale
    inside = (own > every.bounds[0]) & (own < every.bounds[1])
    at = scanned(every, np.where(inside, own, 1.0), EARNEST)
    blind = blind_columns(every.jacobian(at))
    seen = tuple(each for each, dark in zip(every.parameters, blind, strict=True) if not dark)
    return every.only(seen), at[~blind]


def _least_squares() -> Callable[..., Any]:
    try:
        from scipy.optimize import least_squares
    except ImportError:
        why = "is not installed, and the fit needs it: pip install 'cusim-tiles[calibrate]'"
        raise refuse("cusim calibrate", "scipy", None, why) from None
    return least_squares  # type: ignore[no-any-return]
