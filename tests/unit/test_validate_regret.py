"""What a choice costs, worked out by hand: picked on one occasion and read on another, ties, and rules."""

from dataclasses import replace

import pytest

from cusim.validate.ranking import rank
from cusim.validate.regret import Regret, always, fastest_predicted, preferring, regret_of, shared
from cusim.validate.rivals import Rule, best_fixed
from cusim.validate.scores import Scored


def row(policy: str, predicted: int | None, *times: int, order: str = "row") -> Scored:
    occasions = {f"day {place}": time for place, time in enumerate(times, start=1)}
    return Scored("a", "a", policy, sum(times) // len(times), 1, predicted, order=order, occasions=occasions)


#: On day 1 tile is the best by luck, on day 2 it is not; row is what is predicted to be the fastest.
DAYS = (row("stream", 1000, 1000, 1000), row("row", 900, 940, 940), row("tile", 950, 930, 970))


def test_the_best_of_one_day_is_read_on_the_other() -> None:
    """Best of day 1 is tile, 970 on day 2, where row takes 940; best of day 2 is row itself."""
    found = regret_of(DAYS, fastest_predicted)
    assert found is not None
    assert found.across_pct == pytest.approx(100 * ((940 / 970 - 1) + 0.0) / 2)
    assert found.pct == found.across_pct
    assert found.pct < 0
    assert (found.pooled_pct, found.top1) == (0.0, 1.0)


def test_the_same_day_would_flatter_nobody() -> None:
    wrong = [replace(r, predicted_ps=800) if r.policy == "stream" else r for r in DAYS]
    found = regret_of(wrong, fastest_predicted)
    assert found is not None
    assert found.across_pct == pytest.approx(100 * ((1000 / 970 - 1) + (1000 / 940 - 1)) / 2)
    assert found.pooled_pct == pytest.approx(100 * (1000 / 940 - 1))
    assert found.top1 == 0.0


def test_plans_of_one_day_alone_are_in_the_pooled_figure_only() -> None:
    once = row("batched:2", 800, 900)
    found = regret_of([*DAYS, once], fastest_predicted)
    assert found is not None
    assert found.pooled_pct == 0.0
    assert found.across_pct == regret_of(DAYS, fastest_predicted).across_pct  # type: ignore[union-attr]
    assert regret_of([DAYS[0], once], fastest_predicted) == Regret(0.0, None, 1.0)


def test_the_occasions_that_share_most_plans_are_read() -> None:
    third = [replace(r, occasions={**r.occasions, "day 3": 1}) if r.policy == "row" else r for r in DAYS]
    assert [(one, other, len(rows)) for one, other, rows in shared(third)] == [
        ("day 1", "day 2", 3), ("day 2", "day 1", 3),
    ]  # fmt: skip
    assert shared(DAYS[:1]) == []


def test_rows_told_alike_count_with_their_mean_unless_the_baseline_is_among_them() -> None:
    alike = [replace(r, predicted_ps=900) for r in DAYS]
    mean = regret_of(alike, fastest_predicted)
    kept = regret_of(alike, preferring("stream"))
    assert mean is not None
    assert kept is not None
    assert mean.pooled_pct == pytest.approx(100 * ((1000 + 940 + 950) / 3 / 940 - 1))
    assert mean.top1 == pytest.approx(1 / 3)
    assert kept.pooled_pct == pytest.approx(100 * (1000 / 940 - 1))


def test_a_rule_that_is_silent_has_no_regret() -> None:
    silent = [replace(r, predicted_ps=None) for r in DAYS]
    assert regret_of(silent, fastest_predicted) is None
    assert rank(silent).regret_pct is None
    # A plan without a prediction cannot be chosen, but others are held against it.
    half = [replace(r, predicted_ps=None) if r.policy == "row" else r for r in DAYS]
    found = regret_of(half, fastest_predicted)
    assert found is not None
    assert found.pooled_pct == pytest.approx(100 * (950 / 940 - 1))


def test_a_fixed_rule_is_a_policy_and_an_order() -> None:
    rows = [row("row", 1, 900, 900), row("row", 1, 800, 800, order="group:8"), row("stream", 1, 850, 850)]
    assert best_fixed(rows) == Rule("row", "group:8")
    assert best_fixed(rows, ["stream"]) == Rule("stream", "row")
    assert [r.measured_ps for r in always("row", "group:8")(rows)] == [800]
    assert [r.measured_ps for r in always("row", "column")(rows)] == [900]


def test_the_ranking_says_how_many_shapes_were_read_on_another_day() -> None:
    other = [replace(r, shape="b", occasions={}) for r in DAYS]
    found = rank([*DAYS, *other])
    assert (found.choices, found.across_shapes) == (2, 1)
    assert found.regret_pct == pytest.approx(100 * (940 / 970 - 1) / 4)
    assert found.pooled_regret_pct == 0.0
