"""The figures of recorded rows: each against stream order in its own order, and each side at its own best order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cusim.validate.judged import BASELINE
from cusim.validate.ranking import rank
from cusim.validate.regret import Choice, preferring
from cusim.validate.scores import Errors, Scored, errors
from cusim.validate.summary import Summary, by_policy

#: Signs are asked of differences beyond this, in percent of stream order's time: below, nobody would change a plan.
BEYOND_PCT = 2.0
#: A plan that is as fast as stream order is no reason to leave it.
_CAUTIOUS = preferring(BASELINE)


def judge(rows: Sequence[Scored], choose: Choice = _CAUTIOUS) -> Summary:
    """Errors, ranking and regret of *rows*; *choose* is what is run of a shape."""
    return Summary(
        errors(rows, BASELINE, BEYOND_PCT), rank(rows, choose), errors(best_of_orders(rows), BASELINE, BEYOND_PCT)
    )


def policies_of(rows: Sequence[Scored]) -> dict[str, tuple[Errors, Errors]]:
    """Errors of each policy: row by row, and at its best order against stream order at its own."""
    best = by_policy(best_of_orders(rows), BASELINE, BEYOND_PCT)
    nothing = errors((), BASELINE)
    return {name: (found, best.get(name, nothing)) for name, found in by_policy(rows, BASELINE, BEYOND_PCT).items()}


def best_of_orders(rows: Sequence[Scored]) -> list[Scored]:
    """For each shape and policy that has two orders or more in common with stream order: the least time of each over
    these orders, measured and predicted apart, as a shape of its own.
    """
    shapes: dict[str, dict[str, dict[str, Scored]]] = {}
    for row in rows:
        shapes.setdefault(row.shape, {}).setdefault(row.policy, {})[row.order] = row
    found = []
    for shape, policies in shapes.items():
        base = policies.get(BASELINE, {})
        for policy, orders in policies.items():
            common = [order for order in orders if order in base]
            if policy != BASELINE and len(common) > 1:
                name = f"{shape} {policy}"
                found += [replace(_least(base, common), shape=name, given=True)]
                found += [replace(_least(orders, common), shape=name)]
    return found


def _least(orders: Mapping[str, Scored], common: Sequence[str]) -> Scored:
    """The fastest measured row with the least predicted time, whichever row that is of; no order of its own."""
    rows = [orders[order] for order in common]
    times = [row.predicted_ps for row in rows]
    known = [time for time in times if time is not None]
    fastest = min(rows, key=lambda row: row.measured_ps)
    least = min(known) if len(known) == len(times) else None
    return replace(fastest, predicted_ps=least, given=least is None, order="", occasions={})
