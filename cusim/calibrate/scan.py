"""A coarse look around before slopes take over: a limit that does not bind where it stands has no slope to follow."""

from __future__ import annotations

import numpy as np

from cusim.calibrate.scaled import Floats, Scaled

#: Each parameter is tried at these multiples of where it stands, and at its usual size.
_FACTORS = (0.35, 0.7, 1.4, 2.8)


def scanned(scaled: Scaled, at: Floats, soft: float) -> Floats:
    """The best of a few values of each parameter, one parameter after another, the others where they stand."""
    best, least = at, cost(scaled.residuals(at), soft)
    for place in range(len(scaled.parameters)):
        around = best
        for value in _values(scaled, around, place):
            moved = around.copy()
            moved[place] = value
            found = cost(scaled.residuals(moved), soft)
            if found < least:
                best, least = moved, found
    return best


def cost(residuals: Floats, soft: float) -> float:
    """The sum that the fit makes least: squares of small residuals, sizes of those beyond *soft* (soft_l1)."""
    return float(np.sum(np.sqrt(1.0 + (residuals / soft) ** 2) - 1.0)) * soft**2


def _values(scaled: Scaled, at: Floats, place: int) -> list[float]:
    """Values within the bounds, without the one where the parameter stands."""
    low, high = scaled.bounds[0][place], scaled.bounds[1][place]
    tried = {min(high, max(low, factor * at[place])) for factor in _FACTORS} | {1.0}
    return sorted(float(value) for value in tried if value not in (low, high, at[place]))
