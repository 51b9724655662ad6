"""Residuals of recorded rows, and their slopes, as functions of a machine's parameters in units of their usual size."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from cusim.calibrate.fixed import with_values
from cusim.calibrate.parameters import Fitted
from cusim.machine.machine import Machine
from cusim.machine.quantity import kind_of
from cusim.recording.rows import Row
from cusim.validate.recorded import predict_rows

Floats = NDArray[np.float64]
Watch = Callable[[str], None]

#: Step of the finite differences, in parts of a parameter: engine times are whole picoseconds and shared rates change
#: in quanta, so that smaller steps would see rounding. One near 0 is stepped as if it were a quarter of its size.
STEP, _SMALLEST = 0.02, 0.25
_PS_PER_NS = 1000


class Scaled:
    """Relative residuals of *rows* as a function of *parameters*, the rest of the machine as it is.

    *scale* is the usual size of each parameter in the leaf's internal unit, and *bounds* are in parts of it.
    """

    def __init__(
        self, rows: Sequence[Row], machine: Machine, parameters: tuple[Fitted, ...], workers: int | None, watch: Watch
    ) -> None:
        self.rows, self.machine, self.parameters = rows, machine, parameters
        self._workers, self._watch = workers, watch
        self._measured = np.array([row.total_ns for row in rows], float) * _PS_PER_NS
        # The last of each, with where it was: a fit, what comes before it and what comes after ask for the same twice.
        self._last_residuals: tuple[bytes, Floats] | None = None
        self._last_jacobian: tuple[bytes, Floats] | None = None
        self.scale = np.array([internal(each, each.start) for each in parameters])
        self.bounds = (
            np.array([internal(each, each.least) for each in parameters]) / self.scale,
            np.array([internal(each, each.most) for each in parameters]) / self.scale,
        )

    def only(self, parameters: tuple[Fitted, ...]) -> Scaled:
        """The same rows as a function of these parameters alone."""
        return (
            self
            if parameters == self.parameters
            else Scaled(self.rows, self.machine, parameters, self._workers, self._watch)
        )

    def over(self, rows: Sequence[Row]) -> Scaled:
        """The same parameters over other rows."""
        return self if rows == self.rows else Scaled(rows, self.machine, self.parameters, self._workers, self._watch)

    def machine_at(self, at: Floats) -> Machine:
        """The machine with the parameters at *at*."""
        values = zip(self.parameters, at * self.scale, strict=True)
        return with_values(self.machine, {each.path: float(value) for each, value in values})

    def residuals(self, at: Floats) -> Floats:
        """Predicted over measured, less one, a row each."""
        if self._last_residuals is None or self._last_residuals[0] != at.tobytes():
            self._last_residuals = (at.tobytes(), self._residuals(at, "residuals"))
        return self._last_residuals[1].copy()  # the solver scales what it is given in place

    def jacobian(self, at: Floats) -> Floats:
        """The slope of every residual along every parameter, by a step upwards, or downwards beside the upper bound."""
        if self._last_jacobian is None or self._last_jacobian[0] != at.tobytes():
            self._last_jacobian = (at.tobytes(), self._jacobian(at))
        return self._last_jacobian[1].copy()

    def _jacobian(self, at: Floats) -> Floats:
        here, columns = self.residuals(at), []
        for place, parameter in enumerate(self.parameters):
            step = STEP * max(abs(at[place]), _SMALLEST)
            if at[place] + step > self.bounds[1][place]:
                step = -step
            moved = at.copy()
            moved[place] += step
            columns.append((self._residuals(moved, parameter.path) - here) / step)
        return np.stack(columns, axis=1)

    def _residuals(self, at: Floats, what: str) -> Floats:
        self._watch(f"fit: {what} of {len(self.rows)} rows")
        # None cannot be among them: rates change times, not which rows can be predicted.
        predicted = np.array(predict_rows(self.rows, self.machine_at(at), self._workers), float)
        return np.asarray(predicted / self._measured - 1.0)


def internal(parameter: Fitted, value: float) -> float:
    """A value in the parameter's own unit in the internal unit of its leaf."""
    return float(value) * float(kind_of(parameter.path.rpartition(".")[2]).units[parameter.unit])
