"""What a fit knows of each parameter at its solution, and what it does not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cusim.calibrate.fixed import value_of
from cusim.calibrate.parameters import Fitted
from cusim.calibrate.scaled import Floats, Scaled
from cusim.machine.machine import Machine

#: A parameter whose whole size moves no row by this much (relative) is not seen by the rows.
BLIND = 1e-4
#: Nearer to a bound than this, in parts of its usual size, a parameter stands on it.
_AT_BOUND = 1e-3
#: Directions of the parameters that rows see less than this, relative to the best seen, count as this.
_FAINT = 1e-9


@dataclass(frozen=True, slots=True)
class Estimate:
    """A fitted parameter: *value* and *stderr* in the leaf's internal unit; *why* it is not fixed, empty where it is.

    One that no row sees (*seen* False) keeps the value that the machine had.
    """

    parameter: Fitted
    value: float
    stderr: float | None
    why: str = ""
    seen: bool = True


def unseen(parameter: Fitted, machine: Machine) -> Estimate:
    """The estimate of a parameter that no row depends on."""
    why = "no row depends on it; it keeps what it had"
    return Estimate(parameter, value_of(machine, parameter.path), None, why, seen=False)


def blind_columns(jacobian: Floats) -> NDArray[np.bool_]:
    """Which parameters move no row."""
    return np.asarray(np.abs(jacobian).max(axis=0) < BLIND)


def estimated(scaled: Scaled, at: Floats) -> list[Estimate]:
    """Each parameter at *at*, with the standard error that the Jacobian there and the residuals' variance give.

    Rows of one shape err alike, so that the errors are the least that they can be.
    """
    jacobian, residuals = scaled.jacobian(at), scaled.residuals(at)
    covariance = _inverse(jacobian) * float(residuals @ residuals) / (len(residuals) - len(at))
    blind = blind_columns(jacobian)
    found = []
    for place, parameter in enumerate(scaled.parameters):
        stderr = float(np.sqrt(covariance[place, place]))
        why = _why_not(scaled, at, place, covariance, bool(blind[place]))
        scale = float(scaled.scale[place])
        found.append(Estimate(parameter, float(at[place]) * scale, None if why else stderr * scale, why))
    return found


def _why_not(scaled: Scaled, at: Floats, place: int, covariance: Floats, blind: bool) -> str:
    """Why the rows do not fix a parameter; empty where they do."""
    if min(at[place] - scaled.bounds[0][place], scaled.bounds[1][place] - at[place]) < _AT_BOUND:
        return "it ended on a bound"
    if blind:
        return "no row depends on it where the fit ended"
    stderr = float(np.sqrt(covariance[place, place]))
    if stderr <= abs(at[place]) / 2:
        return ""
    told = f"its standard error is {100 * stderr / abs(at[place]):.3g} % of its value"
    if len(at) == 1:
        return told
    other, strength = _companion(covariance, place)
    return f"{told}; it goes with {scaled.parameters[other].path} (correlation {strength:.2f})"


def _inverse(jacobian: Floats) -> Floats:
    """The inverse of J'J; what rows do not see at all comes out as very uncertain, not as an error."""
    _, sizes, directions = np.linalg.svd(jacobian, full_matrices=False)
    sizes = np.maximum(sizes, max(float(sizes.max()) * _FAINT, np.finfo(float).tiny))
    return np.asarray((directions.T / sizes**2) @ directions)


def _companion(covariance: Floats, place: int) -> tuple[int, float]:
    """The other parameter that this one is most correlated with, and how strongly."""
    spread = np.sqrt(np.diag(covariance))
    strength = covariance[place] / (spread * spread[place])
    strength[place] = 0.0
    other = int(np.abs(strength).argmax())
    return other, float(strength[other])
