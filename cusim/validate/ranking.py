"""Whether predictions choose well: order of decided pairs, hits of the best, and what a wrong choice costs.

Each shape is one choice between its policies. Like :mod:`cusim.validate.scores`, this knows no source of times.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from cusim.validate.scores import Scored, decided, percentile, predicted_close

Choice: TypeAlias = Callable[[Sequence[Scored]], Scored]
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

    def __add__(self, other: Pairs) -> Pairs:
        return Pairs(
            self.concordant + other.concordant, self.discordant + other.discordant,
            self.alike + other.alike, self.tied + other.tied, self.close + other.close,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ranking:
    """The ranking score with its counts and bootstrap interval over groups of shapes, and the choices made.

    *empty_shapes* have no decided pair. *top1_pct* is how often the chosen policy is the fastest measured one,
    *regret_pct* the mean of measured time of the chosen over measured time of the fastest, less one. Both are read in
    the campaign that the predictions are compared with: there is no second one.
    """

    score: float | None
    interval: tuple[float, float] | None
    pairs: Pairs
    shapes: int
    empty_shapes: int
    top1_pct: float | None
    regret_pct: float | None


def rank(rows: Iterable[Scored], choose: Choice | None = None) -> Ranking:
    """Judges the order of the rows' predictions within each shape; *choose* replaces "the least predicted time"."""
    shapes = by_shape(rows)
    counts = {shape: pairs_of(members) for shape, members in shapes.items()}
    total = sum(counts.values(), Pairs())
    groups: dict[str, Pairs] = {}
    for shape, members in shapes.items():
        groups[members[0].group] = groups.get(members[0].group, Pairs()) + counts[shape]
    choices = [(members, (choose or fastest_predicted)(members)) for members in shapes.values() if len(members) > 1]
    timed = choose is not None or all(row.predicted_ps is not None for members in shapes.values() for row in members)
    regrets = [regret(members, chosen) for members, chosen in choices] if timed else []
    return Ranking(
        score=total.score,
        interval=bootstrap(list(groups.values())),
        pairs=total,
        shapes=len(shapes),
        empty_shapes=sum(1 for pairs in counts.values() if not pairs.decided),
        top1_pct=100.0 * sum(r == 0 for r in regrets) / len(regrets) if regrets else None,
        regret_pct=sum(regrets) / len(regrets) if regrets else None,
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


def fastest_predicted(members: Sequence[Scored]) -> Scored:
    """The row with the least predicted time; the first of those that are alike."""
    return min(members, key=lambda row: row.predicted_ps if row.predicted_ps is not None else 2**63)


def always(policy: str) -> Choice:
    """A choice that looks at nothing: *policy* wherever a shape has it, else the shape's first."""

    def choose(members: Sequence[Scored]) -> Scored:
        return next((row for row in members if row.policy == policy), members[0])

    return choose


def regret(members: Sequence[Scored], chosen: Scored) -> float:
    """Percent that the chosen row takes longer than the fastest of its shape, both measured."""
    return 100.0 * (chosen.measured_ps / min(row.measured_ps for row in members) - 1.0)


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
