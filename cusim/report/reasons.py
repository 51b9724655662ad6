"""What explains a plan's time, as data: its parts, and the points at which its gain ends."""

from __future__ import annotations

from dataclasses import dataclass

#: A gain below this, in percent, is taken as gone.
LEAST_GAIN_PCT = 2.0


@dataclass(frozen=True, slots=True)
class PlanParts:
    """A plan's total and where it goes, in ns; the parts sum to the total, the work takes what flooring leaves."""

    policy: str
    order: str
    launch: str
    total_ns: int
    parts: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Seen:
    """How late a post may be seen after its start, in ns, for *policy* to beat *rival*; None if it never does.

    *here_ns* is how late it is seen on the machine; *unbounded* says that it beats the rival with any time tried.
    """

    policy: str
    rival: str
    within_ns: int | None
    here_ns: int
    unbounded: bool


@dataclass(frozen=True, slots=True)
class Fade:
    """The sizes M looked at, ascending, and the largest at which *policy* gains :data:`LEAST_GAIN_PCT` or more."""

    policy: str
    sizes: tuple[int, ...]
    last: int | None


@dataclass(frozen=True, slots=True)
class Why:
    """The parts of stream order and of the best policy, and where the policy's gain ends.

    *partless* are policies that would hang without one of the causes, so that no part can be found.
    """

    plans: tuple[PlanParts, ...]
    seen: tuple[Seen, ...]
    fade: Fade | None
    partless: tuple[str, ...] = ()
