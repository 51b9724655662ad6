"""Figures of recorded rows by hand: against stream order in their own order, at the best orders, ties and rivals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cusim.machine import load_machine
from cusim.validate.judging import best_of_orders, judge, policies_of
from cusim.validate.recorded_tables import RecordedTable
from cusim.validate.recorded_validation import validate_recordings
from cusim.validate.recordings import load_recordings
from cusim.validate.scores import Scored
from tests.recordings import SINGLE, chain_rows, timed, written

MACHINE = load_machine("h200")
#: A size where policies gain nothing, and one where they gain a quarter.
SIZES = (256, 768)


def row(policy: str, order: str, measured: int, predicted: int | None, shape: str = "a", noise: int = 1) -> Scored:
    return Scored(shape, shape, policy, measured, noise, predicted, predicted is None, order, "128x128x64")


#: Stream order is best in bands, and predicted so; row in row order, and predicted in bands.
ROWS = [
    row("stream", "row", 1100, 1050), row("stream", "group:2", 1000, 1000),
    row("row", "row", 900, 960), row("row", "group:2", 990, 950),
]  # fmt: skip


def test_a_row_is_held_against_stream_order_in_its_own_order() -> None:
    own = judge(ROWS).errors
    points = [100 * abs(1050 / 960 - 1100 / 900), 100 * abs(1000 / 950 - 1000 / 990)]
    assert own.speedup_err_mean_pts == pytest.approx(sum(points) / 2)
    # The second row gains 1 % only, and is asked for no sign.
    assert (own.decided, own.sign_right_pct) == (1, 100.0)


def test_each_side_at_its_own_best_order() -> None:
    base, best = best_of_orders(ROWS)
    assert (base.measured_ps, base.predicted_ps, base.given) == (1000, 1000, True)
    assert (best.measured_ps, best.predicted_ps, best.given) == (900, 950, False)
    found = judge(ROWS).best
    assert found is not None
    assert found.speedup_err_pts == pytest.approx(100 * abs(1000 / 950 - 1000 / 900))
    assert found.n == 1


def test_orders_that_one_side_lacks_are_left_out() -> None:
    assert best_of_orders(ROWS[:3]) == []
    third = [*ROWS, row("row", "column", 100, 100)]
    assert best_of_orders(third)[1].measured_ps == 900
    silent = [*ROWS[:3], replace(ROWS[3], predicted_ps=None, given=True)]
    assert best_of_orders(silent)[1].predicted_ps is None
    assert judge(silent).best.n == 0  # type: ignore[union-attr]


def test_policies_are_told_apart() -> None:
    found = policies_of([*ROWS, row("row wait-all", "group:2", 980, 950)])
    assert list(found) == ["stream", "row", "row wait-all"]
    own, best = found["row"]
    assert (own.n, best.n) == (2, 1)
    assert found["row wait-all"][1].n == 0
    assert found["stream"][0].n == 2


def test_a_sign_that_noise_hides_is_no_sign() -> None:
    loud = [replace(r, noise_ps=200) for r in ROWS]
    assert judge(loud).errors.decided == 0
    assert judge(loud).ranking.pairs.tied == 6


def test_alike_predictions_are_not_told_right() -> None:
    """(C - D) / (C + D) leaves them out; the share of pairs that are right does not."""
    alike = [replace(r, predicted_ps=1000 if r.policy == "stream" else 950) for r in ROWS]
    figures = judge(alike).to_json()
    assert (figures["concordant_pairs"], figures["discordant_pairs"], figures["alike_pairs"]) == (4, 0, 2)
    assert figures["rank_score"] == 1.0
    assert figures["pairs_right_pct"] == pytest.approx(100 * 4 / 6, abs=1e-3)


def tables(folder: Path, factors: tuple[float, ...]) -> dict[tuple[str, str], RecordedTable]:
    paths = [written(folder / f"{place}.csv", chain_rows(factor, SIZES)) for place, factor in enumerate(factors)]
    found = validate_recordings(load_recordings(paths, MACHINE), MACHINE, workers=1)
    return {(table.label, table.kind): table for table in found.tables}


def test_a_machine_that_is_right_scores_so_and_its_rivals_do_not(tmp_path: Path) -> None:
    chain = tables(tmp_path, (1.0,))["dev", "chain"]
    own = chain.summary.to_json()
    assert own["mape_pct"] < 0.01
    assert own["sign_right_pct"] == own["pairs_right_pct"] == 100.0
    assert own["rank_score"] == 1.0
    assert own["regret_pct"] == pytest.approx(0.0, abs=0.01)
    assert set(chain.rivals) == {
        "no-gain", "always-row", "best-fixed", "sum-of-kernels", "ceil-wave", "roofline", "constant",
    }  # fmt: skip
    others = {name: rival.to_json() for name, rival in chain.rivals.items()}
    assert all(set(other) == set(own) for other in others.values())
    assert others["roofline"]["bias_pct"] < -5
    assert min(others[name]["mape_pct"] for name in ("no-gain", "roofline", "constant")) > own["mape_pct"]
    assert {others[name]["mape_pct"] for name in ("always-row", "best-fixed")} == {None}
    assert others["best-fixed"]["regret_pct"] <= others["always-row"]["regret_pct"]
    assert chain.rules["always-row"].startswith("row ")


def test_a_machine_that_is_off_by_a_factor_is_told_so(tmp_path: Path) -> None:
    """Measured 10 % slower everywhere: errors show, order and choices stay right."""
    own = tables(tmp_path, (1.1,))["dev", "chain"].summary.to_json()
    assert own["bias_pct"] == pytest.approx(100 * (1 / 1.1 - 1), abs=0.02)
    assert own["speedup_err_pts"] < 0.1
    assert own["rank_score"] == 1.0


def test_two_days_are_pooled_and_read_across(tmp_path: Path) -> None:
    chain = tables(tmp_path, (0.98, 1.02))["dev", "chain"]
    own = chain.summary.to_json()
    assert own["n"] == 12
    assert own["mape_pct"] < 0.05
    assert own["across_shapes"] == own["choices"] == 2
    noise = [r.scored.noise_ps / r.scored.measured_ps for r in chain.rows]
    assert noise == pytest.approx([0.02 * 2**0.5] * 12, rel=0.01)


def test_choosing_among_all_tiles_is_one_choice_a_size(tmp_path: Path) -> None:
    rows = [*chain_rows(), *(timed(r, 10**6, tile="128x128x64") for r in chain_rows())]
    found = validate_recordings(load_recordings([written(tmp_path / "a.csv", rows)], MACHINE), MACHINE, workers=1)
    one, wide = (t for t in found.tables if t.label == "dev")
    assert (one.kind, one.summary.ranking.shapes) == ("chain", 4)
    assert (wide.kind, wide.summary.ranking.shapes) == ("chain-any-tile", 2)
    assert "128x" in wide.rules["best-fixed"]
    assert one.worst[0].cut == "128x128x64"
    assert one.worst[0].errors.bias_pct is not None
    assert one.worst[0].errors.bias_pct < -50


def test_single_kernels_have_no_policies_to_choose(tmp_path: Path) -> None:
    rows = [SINGLE, timed(SINGLE, 9000, order="group:2")]
    found = validate_recordings(load_recordings([written(tmp_path / "a.csv", rows)], MACHINE), MACHINE, workers=1)
    (table,) = found.tables
    assert list(table.rivals) == ["best-fixed", "roofline", "constant"]
    assert table.summary.errors.decided == 0
