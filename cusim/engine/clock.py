"""Simulated time: a SimPy environment that counts integer picoseconds."""

from __future__ import annotations

from simpy import Environment


class Clock(Environment):
    """A SimPy environment whose time is an integer number of picoseconds, so that runs repeat exactly."""

    @property
    def now(self) -> int:
        """The simulated time, in ps."""
        return self._now  # type: ignore[return-value]
