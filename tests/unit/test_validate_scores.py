"""Errors, signs and decided differences against figures worked out by hand."""

from dataclasses import replace

import pytest

from cusim.validate.scores import Scored, decided, error_pct, errors, percentile, pooled_ps, sign_right
from cusim.validate.summary import by_policy, summarise


def row(shape: str, policy: str, measured: int, predicted: int | None, noise: int = 1, given: bool = False) -> Scored:
    return Scored(shape, shape, policy, measured, noise, predicted, given)


#: Two shapes. a: row gains 20 % and is predicted to gain 10 %; tile loses 10 %, predicted to gain 5 %.
#: b: row is level within noise, predicted to gain 2 %.
ROWS = (
    row("a", "stream", 1000, 1000, given=True),
    row("a", "row", 800, 900),
    row("a", "tile", 1100, 950),
    row("b", "stream", 500, 500, noise=10, given=True),
    row("b", "row", 495, 490, noise=10),
)


def test_errors_by_hand() -> None:
    found = errors(ROWS, "stream")
    signed = [100 * (900 / 800 - 1), 100 * (950 / 1100 - 1), 100 * (490 / 495 - 1)]
    assert found.n == 3
    assert found.mape_pct == pytest.approx((12.5 + 13.636363636 + 1.01010101) / 3)
    assert found.median_pct == pytest.approx(12.5)
    assert found.worst_pct == pytest.approx(-13.636363636)
    assert found.bias_pct == pytest.approx(sum(signed) / 3)
    assert found.p95_pct is None


def test_speed_up_errors_by_hand() -> None:
    points = [
        100 * abs(1000 / 900 - 1000 / 800),
        100 * abs(1000 / 950 - 1000 / 1100),
        100 * abs(500 / 490 - 500 / 495),
    ]
    found = errors(ROWS, "stream")
    assert found.speedup_err_pts == pytest.approx(sorted(points)[1])
    assert found.speedup_err_mean_pts == pytest.approx(sum(points) / 3)


def test_signs_count_decided_rows_only() -> None:
    found = errors(ROWS, "stream")
    assert found.decided == 2
    assert found.sign_right_pct == pytest.approx(50.0)


def test_a_given_row_counts_in_no_error_and_a_planted_mistake_does() -> None:
    told = [replace(r, predicted_ps=3 * r.measured_ps) if r.given else r for r in ROWS]
    assert errors(told, "stream").mape_pct == errors(ROWS, "stream").mape_pct
    planted = [replace(r, predicted_ps=1200) if r.policy == "row" and r.shape == "a" else r for r in ROWS]
    found = errors(planted, "stream")
    assert found.worst_pct == pytest.approx(50.0)
    assert found.sign_right_pct == pytest.approx(0.0)


def test_no_predicted_difference_is_no_sign() -> None:
    base, other = row("a", "stream", 1000, 1000), row("a", "row", 900, 1000)
    assert sign_right(other, base) is False
    assert sign_right(replace(other, predicted_ps=None), base) is None


def test_a_sign_that_is_chance_is_counted() -> None:
    assert errors(ROWS, "stream").close == 0
    near = [replace(r, predicted_ps=999) if r.policy == "row" and r.shape == "a" else r for r in ROWS]
    found = errors(near, "stream")
    assert (found.close, found.decided) == (1, 2)


def test_decided_needs_more_than_twice_the_pooled_noise() -> None:
    one, other = row("a", "stream", 1000, None, noise=3), row("a", "row", 990, None, noise=4)
    assert pooled_ps(one, other) == pytest.approx((25 / 2) ** 0.5)
    assert decided(one, other)
    assert not decided(one, replace(other, measured_ps=993))


def test_rows_without_a_prediction_have_no_errors() -> None:
    found = errors([replace(r, predicted_ps=None) for r in ROWS], "stream")
    assert (found.n, found.decided) == (3, 2)
    assert {found.mape_pct, found.worst_pct, found.speedup_err_pts, found.sign_right_pct} == {None}


def test_a_95th_percentile_from_forty_rows_on() -> None:
    many = [row(f"s{i}", "row", 100, 100 + i) for i in range(41)]
    assert errors(many[:39], "stream").p95_pct is None
    assert errors(many, "stream").p95_pct == pytest.approx(38.0)
    assert percentile([1.0, 2.0, 4.0], 50) == 2.0


def test_policies_are_judged_apart() -> None:
    found = by_policy(ROWS, "stream")
    assert list(found) == ["row", "tile"]
    assert found["row"].n == 2
    assert found["tile"].mape_pct == pytest.approx(abs(error_pct(ROWS[2]) or 0.0))
    assert found["tile"].sign_right_pct == 0.0


def test_the_summary_names_what_the_document_promises() -> None:
    named = set(summarise(ROWS, "stream").to_json())
    assert {
        "mape_pct", "median_pct", "worst_pct", "bias_pct", "speedup_err_pts", "sign_right_pct", "rank_score",
        "top1_pct", "regret_pct", "n",
    } <= named  # fmt: skip
