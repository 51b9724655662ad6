"""Whether predictions choose well: order of decided pairs, hits of the best, and what a wrong choice costs.

Each shape is one choice between its policies. Like :mod:`cusim.validate.scores`, this knows no source of times.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cusim.validate.regret import Choice, first_fastest, regret_of
from cusim.validate.scores import Scored, decided, percentile, predicted_close

#: Resamples of the bootstrap, and its seed: the interval is the same on every run.
RESAMPLES, SEED = 2000, 0
_LEVEL = 95.0


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of policies of one shape that measurement decides: predicted in that order, the other way, or alike.

    *tied* pairs it does not decide. Of the decided ones, *close* are predicted so near to each other that their order
    is chance.
    """

    concordant: int = 0
    discordant: int = 0
    alike: int = 0
    tied: int = 0
    close: int = 0

    @property
    def decided(self) -> int:
        """Pairs that measurement decides."""
        return self.concordant + self.discordant + self.alike

    @property
    def score(self) -> float | None:
        """(C - D) / (C + D): 1 all in order, -1 all reversed; None without an ordered pair."""
        ordered = self.concordant + self.discordant
        return (self.concordant - self.discordant) / ordered if ordered else None

    @property
    def right_pct(self) -> float | None:
        """Percent of the decided pairs that are predicted in their order: pairs predicted alike are not."""
        return 100.0 * self.concordant / self.decided if self.decided else None

    def __add__(self, other: Pairs) -> Pairs:
        return Pairs(
            self.concordant + other.concordant, self.discordant + other.discordant,
            self.alike + other.alike, self.tied + other.tied, self.close + other.close,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ranking:
    """The ranking score with its counts and bootstrap interval over groups of shapes, and the choices made.

    *empty_shapes* have no decided pair. *top1_pct* is how often the chosen policy is the fastest measured one,
    *regret_pct* the mean of measured time of the chosen over measured time of the fastest, less one: picked on one
    occasion and read on another in *across_shapes* of the *choices* (shapes with more than one row), read where it was
    picked elsewhere, as *pooled_regret_pct* is everywhere.
    """

    score: float | None
    interval: tuple[float, float] | None
    pairs: Pairs
    shapes: int
    empty_shapes: int
    top1_pct: float | None
    regret_pct: float | None
    pooled_regret_pct: float | None
    choices: int
    across_shapes: int


def rank(rows: Iterable[Scored], choose: Choice = first_fastest) -> Ranking:
    """Judges the order of the rows' predictions within each shape, and what *choose* would run."""
    shapes = by_shape(rows)
    counts = {shape: pairs_of(members) for shape, members in shapes.items()}
    total = sum(counts.values(), Pairs())
    groups: dict[str, Pairs] = {}
    for shape, members in shapes.items():
        groups[members[0].group] = groups.get(members[0].group, Pairs()) + counts[shape]
    costs = [regret_of(members, choose) for members in shapes.values() if len(members) > 1]
    regrets = [cost for cost in costs if cost is not None]
    return Ranking(
        score=total.score,
        interval=bootstrap(list(groups.values())),
        pairs=total,
        shapes=len(shapes),
        empty_shapes=sum(1 for pairs in counts.values() if not pairs.decided),
        top1_pct=_mean([100.0 * cost.top1 for cost in regrets]),
        regret_pct=_mean([cost.pct for cost in regrets]),
        pooled_regret_pct=_mean([cost.pooled_pct for cost in regrets]),
        choices=len(regrets),
        across_shapes=sum(cost.across_pct is not None for cost in regrets),
    )


def by_shape(rows: Iterable[Scored]) -> Mapping[str, list[Scored]]:
    """The rows of each shape, in order."""
    shapes: dict[str, list[Scored]] = {}
    for row in rows:
        shapes.setdefault(row.shape, []).append(row)
    return shapes


def pairs_of(members: Sequence[Scored]) -> Pairs:
    """Every pair of a shape's policies; pairs without predicted times count in nothing."""
    total = Pairs()
    for one, other in itertools.combinations(members, 2):
        if one.predicted_ps is None or other.predicted_ps is None:
            continue
        if not decided(one, other):
            total += Pairs(tied=1)
            continue
        product = (one.predicted_ps - other.predicted_ps) * (one.measured_ps - other.measured_ps)
        close = int(predicted_close(one, other))
        total += Pairs(int(product > 0), int(product < 0), int(product == 0), close=close)
    return total


def bootstrap(groups: Sequence[Pairs]) -> tuple[float, float] | None:
    """The 95 % interval of the score when groups are drawn again with replacement; None below two groups."""
    if len(groups) < 2 or sum(groups, Pairs()).score is None:
        return None
    counts = np.array([(g.concordant, g.discordant) for g in groups])
    drawn = np.random.default_rng(SEED).integers(0, len(groups), (RESAMPLES, len(groups)))
    sums = counts[drawn].sum(axis=1)
    ordered = sums[sums.sum(axis=1) > 0]
    scores = [float((c - d) / (c + d)) for c, d in ordered]
    tail = (100.0 - _LEVEL) / 2
    return percentile(scores, tail), percentile(scores, 100.0 - tail)


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None
