"""Ranking score, hits and regret against figures worked out by hand."""

from dataclasses import replace

import pytest

from cusim.validate.ranking import Pairs, bootstrap, pairs_of, rank
from cusim.validate.regret import always, first_fastest
from cusim.validate.scores import Scored


def shape(name: str, measured: tuple[int, ...], predicted: tuple[int | None, ...], noise: int = 1) -> list[Scored]:
    return [
        Scored(name, name, policy, took, noise, says)
        for policy, took, says in zip(("stream", "row", "tile"), measured, predicted, strict=True)
    ]


#: a is predicted in order, b has row and tile the wrong way round, c is level within its noise.
A = shape("a", (1000, 800, 900), (1000, 700, 900))
B = shape("b", (1000, 950, 900), (1000, 850, 880))
C = shape("c", (1000, 1001, 999), (1000, 900, 800), noise=10)


def test_pairs_by_hand() -> None:
    assert pairs_of(A) == Pairs(concordant=3)
    assert pairs_of(B) == Pairs(concordant=2, discordant=1)
    assert pairs_of(C) == Pairs(tied=3)
    assert pairs_of(shape("d", (3000, 2000, 1000), (5, 5, 5))) == Pairs(alike=3, close=3)
    assert pairs_of(shape("e", (3000, 2000, 1000), (None, 5, 4))) == Pairs(concordant=1)


def test_the_ranking_of_three_shapes() -> None:
    found = rank([*A, *B, *C])
    assert found.score == pytest.approx((5 - 1) / (5 + 1))
    assert (found.pairs.decided, found.pairs.tied) == (6, 3)
    assert (found.shapes, found.empty_shapes) == (3, 1)
    assert found.top1_pct == pytest.approx(100 * 2 / 3)
    assert found.regret_pct == pytest.approx((0.0 + 100 * (950 / 900 - 1) + 0.0) / 3)


def test_a_planted_reversal_shows() -> None:
    wrong = [replace(row, predicted_ps=2000 - (row.predicted_ps or 0)) for row in A]
    assert rank(A).score == 1.0
    assert rank(wrong).score == -1.0
    assert rank(wrong).regret_pct == pytest.approx(25.0)


def test_a_fixed_choice_has_regret_and_no_score() -> None:
    blind = [replace(row, predicted_ps=None) for row in (*A, *B)]
    found = rank(blind, always("row"))
    assert found.score is None
    assert found.top1_pct == pytest.approx(50.0)
    assert found.regret_pct == pytest.approx((0.0 + 100 * (950 / 900 - 1)) / 2)
    assert rank(blind).regret_pct is None


def test_a_choice_that_a_shape_lacks_is_its_first() -> None:
    assert [row.policy for row in always("tile")(A[:2])] == ["stream"]


def test_the_first_of_alike_predictions_is_chosen() -> None:
    assert [row.policy for row in first_fastest(shape("d", (3, 2, 1), (5, 5, 5)))] == ["stream"]


def test_a_shape_with_one_row_is_no_choice() -> None:
    assert rank(A[:1]).regret_pct is None


def test_the_interval_is_over_groups_and_repeats() -> None:
    groups = [Pairs(concordant=3), Pairs(concordant=2, discordant=1), Pairs(discordant=3)]
    low, high = bootstrap(groups) or (0.0, 0.0)
    assert -1.0 <= low < sum(groups, Pairs()).score < high <= 1.0  # type: ignore[operator]
    assert bootstrap(groups) == (low, high)
    assert bootstrap(groups[:1]) is None
    # Repeats of one experiment widen nothing and narrow nothing: they are one group.
    again = [replace(row, shape="a2", group="a") for row in A]
    assert rank([*A, *again]).interval is None
