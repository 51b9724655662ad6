"""Rows, bounds, rivals and the left-out error: what the tables of a validation are made of."""

from dataclasses import replace
from fractions import Fraction

import pytest

from cusim.machine.load import load_machine
from cusim.program.kernel import Gemm
from cusim.validate.bound import filled, work_conserving_ps
from cusim.validate.cases import Shape, shapes_of
from cusim.validate.held_out import choose
from cusim.validate.machines import judged_machine
from cusim.validate.predict_rows import alone_ps, anchored_ps, cold_ps, kernel_times
from cusim.validate.published import PublishedSet, load_published
from cusim.validate.rivals import Rated, Rule, best_fixed, ceil_wave_ps, kernel_sum_ps, rivals, roofline_ps
from cusim.validate.scores import Scored
from cusim.validate.tables import tables_of

V100, A100 = load_published("published/gpt3-mlp")


def shape(published: PublishedSet, m: int) -> Shape:
    return next(found for found in shapes_of(published) if found.m == m)


@pytest.mark.parametrize(("published", "m"), [(V100, 1), (V100, 256), (V100, 2304), (A100, 1024), (A100, 2560)])
def test_the_engine_finds_the_stream_rows_that_it_was_given(published: PublishedSet, m: int) -> None:
    found = shape(published, m)
    predicted = anchored_ps(found.stream, found, judged_machine(published.gpu))
    assert predicted == pytest.approx(found.stream.reading.total_ps, rel=1e-3)


def test_an_unchanged_kernel_takes_its_published_time_less_the_gap() -> None:
    found = shape(V100, 512)
    times = kernel_times(found.cases[1], found, judged_machine("v100"))
    assert times == {"up": 799_490_000, "down": 752_560_000}


def test_a_changed_kernel_is_scaled_by_the_model() -> None:
    found, machine = shape(V100, 64), judged_machine("v100")
    tile = found.cases[2]
    new, old = (alone_ps(case.program.kernel("up"), case.program, machine) for case in (tile, found.stream))
    times = kernel_times(tile, found, machine)
    assert new != old
    assert times["up"] == round((227_100_000 - 6_000_000) * new / old)
    assert times["down"] == 198_880_000 - 6_000_000


def test_cold_predictions_know_no_published_time() -> None:
    found, machine = shape(V100, 512), judged_machine("v100")
    case = found.stream
    other = replace(case, reading=replace(case.reading, total_ps=1, own_ps=(1, 1)))
    assert cold_ps(case, machine) == cold_ps(other, machine)


def test_the_bound_by_hand() -> None:
    program = shape(V100, 512).stream.program
    assert (filled(96, 80), filled(80, 80), filled(8, 80)) == (Fraction(3, 5), 1, Fraction(1, 10))
    assert work_conserving_ps({"up": 1000, "down": 500}, program, {"up": 80, "down": 160}) == 600 + 300


def test_rivals_by_hand() -> None:
    program, machine = shape(V100, 512).stream.program, load_machine("v100")
    gap = machine.launch.gap_ps
    rated = Rated(Scored("a", "a", "row", 10, 1, None), program, {"up": 10_000, "down": 5_000}, 20_000)
    assert kernel_sum_ps(rated, machine) == 15_000 + 2 * gap
    streamed = replace(rated, scored=replace(rated.scored, policy="stream"))
    assert ceil_wave_ps(streamed, machine, overlapped=False) == 15_000 + 2 * gap
    assert ceil_wave_ps(rated, machine, overlapped=True) == 6_000 + 3_000 + gap
    gemm = program.kernel("up").gemm
    assert isinstance(gemm, Gemm)
    flops_s = 2 * (2 * 512 * 6144 * 12288) / (1024 * 80 * 1.53e9)
    assert roofline_ps(program, machine) == pytest.approx(flops_s * 1e12)


def test_rivals_that_predict_no_time_have_choices_alone() -> None:
    program, machine = shape(V100, 512).stream.program, load_machine("v100")
    measured = {"stream": 1000, "row": 900, "tile": 800}
    rows = [
        Rated(Scored("a", "a", word, took, 1, took, word == "stream"), program, {"up": 500, "down": 500}, 1000)
        for word, took in measured.items()
    ]
    found = rivals(rows, machine, "stream")
    assert best_fixed([row.scored for row in rows]) == Rule("tile")
    assert found["always-row"].errors.mape_pct is None
    assert found["always-row"].ranking.regret_pct == pytest.approx(12.5)
    assert found["best-fixed"].ranking.regret_pct == 0.0
    assert found["no-gain"].errors.mape_pct == pytest.approx((100 * (1000 / 900 - 1) + 25) / 2)
    assert found["no-gain"].ranking.regret_pct == pytest.approx(25.0)
    assert found["roofline"].errors.n == 2


def test_the_left_out_group_has_no_part_in_the_choice() -> None:
    sizes = {"low": {"a": [1.0], "b": [1.0], "c": [9.0]}, "high": {"a": [2.0], "b": [2.0], "c": [0.0]}}
    found = choose("rates.sustained_share", sizes)
    assert found.chosen == {"a": "high", "b": "high", "c": "low"}
    assert found.mape_pct == pytest.approx((2 + 2 + 9) / 3)
    assert (found.all_chosen, found.all_mape_pct) == ("high", pytest.approx(4 / 3))


def test_tables_keep_changed_rows_apart() -> None:
    few = replace(A100, readings=tuple(r for r in A100.readings if r.m in (512, 768, 1280)))
    tables = {(table.prediction, table.name): table for table in tables_of(few)}
    assert list(tables) == [("anchored", "a100_unchanged"), ("anchored", "a100_changed"), ("cold", "a100")]
    same, changed = tables["anchored", "a100_unchanged"], tables["anchored", "a100_changed"]
    assert [row.case.reading.m for row in same.rows] == [512] * 3
    assert same.summary.errors.n == 2
    assert changed.summary.errors.n == 4
    assert tables["cold", "a100"].summary.errors.n == 9
    below = [(row.case.reading.m, row.scored.policy) for row in changed.rows if row.below_bound]
    assert below == [(1280, "row")]
    assert changed.reachable.n == 3
