"""What choosing by a rule costs: the measured time of the chosen plan over that of the best, less one.

The best of many noisy times is partly luck. Where plans were measured on several occasions the best is therefore picked
on one and read, as the chosen plan is, on another.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cusim.validate.scores import Scored

#: From the rows of a shape to the one that a rule would run, or several that it tells alike; empty where it is silent.
Choice: TypeAlias = Callable[[Sequence[Scored]], Sequence[Scored]]


@dataclass(frozen=True, slots=True)
class Regret:
    """The cost of a rule on one shape, in percent; rows that the rule tells alike count with their mean.

    *pooled_pct* is over all plans, each at its pooled time. *across_pct* is over the plans that two occasions share,
    the best picked on one and read on the other, the mean of both ways; None without two such occasions. It can be
    negative. *top1* is the share of the chosen rows whose pooled time is the least.
    """

    pooled_pct: float
    across_pct: float | None
    top1: float

    @property
    def pct(self) -> float:
        """Read on another occasion where there is one."""
        return self.pooled_pct if self.across_pct is None else self.across_pct


def regret_of(members: Sequence[Scored], choose: Choice) -> Regret | None:
    """The regret of *choose* on the rows of one shape; None where it is silent."""
    chosen = choose(members)
    if not chosen:
        return None
    best = min(row.measured_ps for row in members)
    top1 = statistics.fmean(row.measured_ps == best for row in chosen)
    return Regret(statistics.fmean(_over(row.measured_ps, best) for row in chosen), _across(members, choose), top1)


def fastest_predicted(members: Sequence[Scored]) -> Sequence[Scored]:
    """The rows with the least predicted time; none where nothing is predicted."""
    times = [row.predicted_ps for row in members if row.predicted_ps is not None]
    return [row for row in members if row.predicted_ps == min(times)] if times else []


def first_fastest(members: Sequence[Scored]) -> Sequence[Scored]:
    """The first of the rows with the least predicted time: rows in an order of preference."""
    return fastest_predicted(members)[:1]


def preferring(baseline: str) -> Choice:
    """The rows with the least predicted time, but the baseline's own where it is as fast: no change without a gain."""

    def choose(members: Sequence[Scored]) -> Sequence[Scored]:
        fastest = fastest_predicted(members)
        return [row for row in fastest if row.policy == baseline] or fastest

    return choose


def always(policy: str, order: str = "") -> Choice:
    """A choice that looks at nothing: *policy* in *order* wherever a shape has it, else the policy's first, else the
    shape's first.
    """

    def choose(members: Sequence[Scored]) -> Sequence[Scored]:
        own = [row for row in members if row.policy == policy]
        return ([row for row in own if row.order == order] or own or members)[:1]

    return choose


def shared(members: Sequence[Scored]) -> list[tuple[str, str, list[Scored]]]:
    """The pairs of occasions that share the most of a shape's rows, two at least, both ways, with these rows."""
    names = dict.fromkeys(name for row in members for name in row.occasions)
    found = [
        (one, other, [row for row in members if one in row.occasions and other in row.occasions])
        for one, other in itertools.permutations(names, 2)
    ]
    most = max((len(rows) for _, _, rows in found), default=0)
    return [pair for pair in found if len(pair[2]) == most > 1]


def _across(members: Sequence[Scored], choose: Choice) -> float | None:
    costs = []
    for picked_on, read_on, rows in shared(members):
        best = min(rows, key=lambda row: row.occasions[picked_on]).occasions[read_on]
        chosen = choose(rows)
        if chosen:
            costs.append(statistics.fmean(_over(row.occasions[read_on], best) for row in chosen))
    return statistics.fmean(costs) if costs else None


def _over(time_ps: int, best_ps: int) -> float:
    return 100.0 * (time_ps / best_ps - 1.0)
