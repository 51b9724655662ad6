"""Rows, recommendation and words, from outcomes that are made up: nothing here depends on the engine's numbers."""

import csv
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cusim.engine.result import Deadlock, Prediction, Verdict
from cusim.policies.plan import Plan
from cusim.policies.registry import build_plan
from cusim.program.program import Program
from cusim.program.toml_read import parse_program
from cusim.report.advice import wave_notes
from cusim.report.csv import csv_text
from cusim.report.json import document
from cusim.report.line import Line, fold, table
from cusim.report.rows import Contender, Report, compare
from cusim.report.summary import verdict_word
from cusim.report.text import markdown_lines, text_lines
from cusim.trace.trace import EVENT_COLUMNS, TILE_COLUMNS, WAIT_COLUMNS, Trace, column_table
from tests.machines import uncalibrated

SAFE, IF_ARRIVAL, CAN = "safe by construction", "safe if arrival order holds", "can deadlock"
MACHINE = uncalibrated()


def program(tile: str = "128x128x64") -> Program:
    block = "block = { threads = 256, registers = 128, shared_kib = 128 }"
    text = f"""
schema = "cusim.program/1"
name = "pair"
[[kernel]]
name = "up"
gemm = {{ m = 384, n = 512, k = 256, dtype = "fp16" }}
tile = "{tile}"
{block}
[[kernel]]
name = "down"
gemm = {{ m = 384, n = 256, k = 512, dtype = "fp16" }}
a = "up"
tile = "{tile}"
{block}
"""
    return parse_program(text, "pair.toml")


def outcome(total_us: float, status: str = SAFE) -> Prediction:
    """A run whose only block works for 3/4 of the time and waits for the rest, on one SM of 132."""
    tile = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4_000_000, 4_000_000, 1_000_000)
    trace = Trace(
        ("up", "down"),
        column_table([tile], TILE_COLUMNS),
        column_table([(0, 0, 0, 0, 4_000_000)], EVENT_COLUMNS),
        column_table([], WAIT_COLUMNS),
    )
    return Prediction(round(total_us * 1e6), round(total_us * 1e6) - 1500, 4, 12, Verdict(status, "because"), trace)


def stuck() -> Deadlock:
    trace = outcome(1).trace
    return Deadlock(("down tile (0, 0) waits for up", "up waits for a slot"), 5, 3, Verdict(CAN, "because"), trace)


def report(times: dict[str, Any], *, held: Any = None, **more: Any) -> Report:
    """A comparison in which each policy takes the outcome given; ``stream`` is a stream plan, ``row/2`` another row.

    *held* is what the recommended plan takes under launch wait-all, if that is asked for.
    """
    pair = program()
    plans = {word: build_plan(pair, policy=word.partition("/")[0]) for word in times}
    answers = {id(plan): times[word] for word, plan in plans.items()}

    def predict(_: Program, __: Any, plan: Plan, **___: Any) -> Any:
        return answers.get(id(plan)) or held or outcome(1000)

    contenders = [Contender(word.partition("/")[0], pair, plan) for word, plan in plans.items()]
    return compare(contenders, MACHINE, predict=predict, **more)


def test_the_whole_answer_is_laid_out_as_documented() -> None:
    made = report({"stream": outcome(100), "row": outcome(80, IF_ARRIVAL), "tile": stuck()}, held=outcome(80.5, SAFE))
    assert [line.text for line in text_lines([made])] == [
        "pair  m=384  fp16   on H200, 132 SMs   (preset, not calibrated: times ±15 %)",
        "",
        "kernel    M x   N x   K  tile        grid r x c  tiles  blocks/SM          waves",
        "up      384 x 512 x 256  128x128x64       3 x 4     12  1 (shared memory)   0.09",
        "down    384 x 256 x 512  128x128x64       3 x 2      6  1 (shared memory)   0.05",
        "",
        "policy  order  launch      time us  vs stream  rounds  working %  waiting %  empty %  deadlock",
        "stream  row    stream        100.0     1.000x       4        0.6        0.2     99.2  safe",
        "row     row    wait-first     80.0     1.250x       4        0.6        0.2     99.2  if arrival order",
        "tile    row    wait-first        -          -       -          -          -        -  deadlocks",
        "",
        "Deadlock: tile (order row, launch wait-first) never finishes. 3 blocks never finish: down tile (0, 0) waits "
        "for up -> up waits for a slot.",
        "Recommended: row (order row, launch wait-first) takes 20.0 % less time than the best stream plan, "
        "stream (order row).",
        "That it cannot hang rests on blocks being placed in the order in which kernels arrive, which is undocumented "
        "and was seen broken on an H200; --launch wait-all takes 80.5 us and is safe by construction.",
    ]
    assert [line.role for line in text_lines([made])][7:10] == ["", "good", "bad"]


@pytest.mark.parametrize(
    ("times", "recommended", "said"),
    [
        ({"stream": outcome(100), "row": outcome(84.9)}, "row", "Recommended: row"),
        ({"stream": outcome(100), "row": outcome(85.1)}, None, "Tie within ±15 %"),
        ({"stream": outcome(100), "row": outcome(100)}, None, "No gain"),
        ({"stream": outcome(100), "row": outcome(104)}, None, "Predicted loss: even the best policy, row"),
        ({"stream": outcome(100), "row": outcome(104)}, None, "4.0 % more time than stream (order row), a tie"),
        ({"stream": outcome(100), "row": outcome(130)}, None, "30.0 % more time than stream (order row). Keep"),
        ({"stream": outcome(100), "row": stuck()}, None, "No policy to recommend"),
        ({"stream": outcome(100), "row": outcome(50, CAN)}, None, "No policy to recommend"),
        ({"stream": outcome(100), "row": outcome(50, CAN), "tile": outcome(80)}, "tile", "Recommended: tile"),
        ({"stream": outcome(100), "row": outcome(70, IF_ARRIVAL), "tile": outcome(70.5)}, "tile", "Recommended: tile"),
        ({"stream": outcome(100), "row": outcome(70, IF_ARRIVAL), "tile": outcome(72)}, "row", "Recommended: row"),
        ({"stream": outcome(100)}, None, "Only stream order was asked for"),
    ],
)
def test_recommendation(times: dict[str, Any], recommended: str | None, said: str) -> None:
    made = report(times)
    assert [row.policy for row in made.rows if row.recommended] == ([recommended] if recommended else [])
    assert said in " ".join(made.verdict)


@pytest.mark.parametrize(("row_us", "recommended"), [(94.9, True), (95.1, False)])
def test_a_calibrated_machine_recommends_down_to_its_own_band(row_us: float, recommended: bool) -> None:
    pair, learnt = program(), replace(MACHINE, state="calibrated", band_pct=5.0)
    plans = {word: build_plan(pair, policy=word) for word in ("stream", "row")}
    times = {id(plans["stream"]): 100.0, id(plans["row"]): row_us}
    contenders = [(word, pair, plan) for word, plan in plans.items()]
    made = compare(contenders, learnt, predict=lambda _, __, plan, **___: outcome(times[id(plan)]))
    assert [row.recommended for row in made.rows] == [False, recommended]
    assert text_lines([made])[0].text.endswith("(calibrated: times ±5 %)")
    assert ("Tie within ±5 %" in " ".join(made.verdict)) is not recommended


def test_a_caveat_goes_only_with_a_recommendation_that_needs_it() -> None:
    assert report({"stream": outcome(100), "row": outcome(50, IF_ARRIVAL)}).caveats
    assert not report({"stream": outcome(100), "row": outcome(50)}).caveats
    assert not report({"stream": outcome(100), "row": outcome(95, IF_ARRIVAL)}).caveats


def test_every_row_is_measured_against_the_best_stream_row() -> None:
    made = report({"stream": outcome(110), "stream/2": outcome(100), "row": outcome(80)})
    assert [row.reference for row in made.rows] == [False, True, False]
    assert [row.speedup_vs_stream for row in made.rows] == [0.9091, 1.0, 1.25]
    assert [row.advice for row in made.rows] == ["tie within ±15 %", "reference", "gains 20.0 %"]


def test_a_stream_row_is_added_for_every_order_when_none_was_asked_for() -> None:
    pair = program()
    plans = [build_plan(pair, policy="row", order=order) for order in ("row", "group:2")]
    made = compare([("row", pair, plan) for plan in plans], MACHINE, predict=lambda *_, **__: outcome(1))
    assert [(row.policy, row.order) for row in made.rows] == [
        ("stream", "row"), ("stream", "group:2"), ("row", "row"), ("row", "group:2"),
    ]  # fmt: skip


def test_shares_sum_to_exactly_100() -> None:
    row = report({"stream": outcome(100)}).rows[0]
    assert row.working_pct is not None
    assert row.waiting_pct is not None
    assert row.empty_pct is not None
    assert row.working_pct + row.waiting_pct + row.empty_pct == pytest.approx(100, abs=1e-9)
    assert row.working_pct == pytest.approx(3 * row.waiting_pct, abs=0.02)


def test_rows_of_different_tiles_say_so() -> None:
    plans = [(program(tile), build_plan(program(tile))) for tile in ("128x128x64", "128x64x64")]
    made = compare([("stream", pair, plan) for pair, plan in plans], MACHINE, predict=lambda *_, **__: outcome(1))
    assert any(note.startswith("rows differ in tile or split-K") for note in made.notes)
    assert len(made.kernels) == 4


def test_the_document_has_the_fields_of_its_schema_in_whole_nanoseconds() -> None:
    found = document([report({"stream": outcome(100), "row": stuck()}, seed=7)])
    assert list(found)[:6] == ["schema", "program", "machine", "machines", "rows", "kernels"]
    assert found["schema"] == "cusim.predict/1"
    assert found["machine"]["digest"] == MACHINE.digest
    assert found["provenance"]["seed"] == [7]
    first, second = found["rows"]
    assert (first["total_ns"], first["span_ns"], first["deadlock"]) == (100_000, 99_998, SAFE)
    assert (second["total_ns"], second["speedup_vs_stream"], second["deadlock"]) == (None, None, "deadlocks")
    assert {"policy", "order", "flags", "launch", "rounds", "working_pct", "recommended", "scheduler"} <= set(first)
    assert found["kernels"][0]["limited_by"] == "shared memory"


def test_csv_has_one_line_a_row_and_markdown_one_table_line() -> None:
    made = report({"stream": outcome(100), "row": stuck()})
    head, first, second = csv_text([made]).splitlines()
    cells = next(csv.DictReader([head, second]))
    assert (cells["policy"], cells["total_ns"], cells["recommended"]) == ("row", "", "false")
    assert first.startswith("stream,row,-,stream,in-order,384,128x128x64,1,100000,99998,1.0,4,12,")
    assert cells["program"] == "pair"
    assert "| stream | row | stream | 100.0 | 1.000x | 4 | 0.6 | 0.2 | 99.2 | safe |" in (markdown_lines([made]))


def test_several_cases_get_columns_and_their_caveats_once() -> None:
    made = [report({"stream": outcome(100), "row": outcome(50, IF_ARRIVAL)}, seed=seed) for seed in (1, 2)]
    lines = [line.text for line in text_lines(made)]
    assert lines[6].startswith("seed  policy")
    assert sum(line.startswith("That it cannot hang") for line in lines) == 1
    at = next(place for place, line in enumerate(lines) if line.startswith("seed  best policy"))
    assert [line.split()[:2] for line in lines[at + 1 : at + 3]] == [["1", "row"], ["2", "row"]]
    assert all(line.endswith("1000.0  recommended, if arrival order") for line in lines[at + 1 : at + 3])


@pytest.mark.parametrize(
    ("times", "word"),
    [
        ({"stream": outcome(100), "row": outcome(80)}, "recommended"),
        ({"stream": outcome(100), "row": outcome(80, IF_ARRIVAL)}, "recommended, if arrival order"),
        ({"stream": outcome(100), "row": outcome(95)}, "tie"),
        ({"stream": outcome(100), "row": outcome(105)}, "tie"),
        ({"stream": outcome(100), "row": outcome(100)}, "no gain"),
        ({"stream": outcome(100), "row": outcome(130)}, "loss"),
        ({"stream": outcome(100), "row": outcome(50, CAN)}, "no policy is safe"),
        ({"stream": outcome(100), "row": stuck()}, "no policy is safe, one deadlocks"),
        ({"stream": outcome(100)}, "stream only"),
    ],
)
def test_a_sweep_says_each_verdict_in_a_word(times: dict[str, Any], word: str) -> None:
    assert verdict_word(report(times)) == word


def test_deadlocks_of_a_sweep_keep_their_cycle() -> None:
    made = [report({"stream": outcome(100), "row": stuck()}, seed=seed) for seed in (1, 2)]
    lines = [line.text for line in text_lines(made)]
    assert [line.split(":")[0] for line in lines if "never finishes" in line] == ["seed=1", "seed=2"]


def test_of_equal_rows_the_safer_unwarned_and_plainer_is_best() -> None:
    def best(**rows: tuple[float, str, dict[str, str]]) -> str:
        pair = program()
        made = {word: build_plan(pair, policy="row", **options) for word, (_, _, options) in rows.items()}
        answers = {id(made[word]): outcome(total, status) for word, (total, status, _) in rows.items()}
        contenders = [("stream", pair, build_plan(pair)), *((word, pair, plan) for word, plan in made.items())]
        found = compare(contenders, MACHINE, predict=lambda _, __, plan, **___: answers.get(id(plan), outcome(100)))
        (row,) = [row for row in found.rows if row.recommended]
        return row.policy

    assert best(a=(50, IF_ARRIVAL, {}), b=(50.4, SAFE, {"launch": "wait-all"})) == "b"
    assert best(a=(50, IF_ARRIVAL, {}), b=(50.6, SAFE, {"launch": "wait-all"})) == "a"
    assert best(a=(50, SAFE, {"flags": "R"}), b=(50.4, SAFE, {})) == "b"
    assert best(a=(50, SAFE, {"launch": "wait-value"}), b=(50.4, SAFE, {})) == "b"
    assert best(a=(50.1, SAFE, {}), b=(50, SAFE, {})) == "b"


def test_the_time_under_wait_all_is_named_with_what_it_costs() -> None:
    def said(held: Any) -> str:
        return report({"stream": outcome(100), "row": outcome(50, IF_ARRIVAL)}, held=held).caveats[0]

    assert said(outcome(50.4)).endswith("--launch wait-all takes 50.4 us and is safe by construction.")
    assert said(outcome(55)).endswith("--launch wait-all takes 55.0 us, 10.0 % more, and is safe by construction.")
    assert said(outcome(50, IF_ARRIVAL)).endswith("--launch wait-all does not rely on it.")
    assert said(stuck()).endswith("--launch wait-all does not rely on it.")


def test_without_the_order_of_arrival_what_rests_on_it_is_not_recommended() -> None:
    times = {"stream": outcome(100), "row": outcome(50, IF_ARRIVAL), "tile": outcome(60)}
    for dispatch in ("random", "adversarial"):
        made = report(times, dispatch=dispatch)
        assert [row.policy for row in made.rows if row.recommended] == ["tile"]
        assert [line.text.rsplit("  ", 1)[-1] for line in text_lines([made])[7:10]] == [
            "safe", "can deadlock (did not here)", "safe",
        ]  # fmt: skip
        assert f"dispatch {dispatch}, seed 0" in text_lines([made])[0].text


def test_a_narrow_table_leaves_out_what_follows_and_says_so() -> None:
    made = report({"stream": outcome(100), "row": outcome(80)})
    narrow = [line.text for line in fold(text_lines([made], width=80), 80)]
    assert max(map(len, narrow)) <= 80
    assert "(no room for: waiting %, empty %)" in narrow
    assert not any("no room" in line.text for line in text_lines([made]))


def test_what_is_folded_hangs_in_its_own_column() -> None:
    lines = table(["key", "source"], [["a", "one two three four five six"]], [False, False])
    assert [line.text for line in fold(lines, 28)] == ["key  source", "a    one two three four five", "     six"]
    assert [line.text for line in fold([Line("x" * 50)], 20)] == ["x" * 50]


@pytest.mark.parametrize(("unit", "shown"), [("ns", "100000"), ("us", "100.0"), ("ms", "0.100")])
def test_time_units_change_the_display_only(unit: str, shown: str) -> None:
    made = report({"stream": outcome(100)})
    lines = [line.text for line in text_lines([made], unit)]
    assert f"time {unit}" in lines[6]
    assert f" {shown} " in lines[7]


def test_wave_notes_tell_how_full_the_last_wave_is() -> None:
    assert wave_notes(report({"stream": outcome(1)}))[0] == (
        "up: 0.09 waves; in stream order its last wave fills 12 of 132 block slots (9 %)"
    )


def test_a_time_measured_elsewhere_is_marked(capsys: pytest.CaptureFixture[str]) -> None:
    text = """
schema = "cusim.program/1"
[[kernel]]
name = "one"
grid = [6, 48]
time_us = 12.4
measured_on = "a100"
block = { threads = 128, registers = 32, shared_kib = 0 }
"""
    lone = parse_program(text, "one.toml", "one")
    made = compare([("stream", lone, build_plan(lone))], MACHINE, predict=_fake_one)
    assert [row.cost for row in made.kernels] == ["rescaled from a100"]
    assert "time from" in text_lines([made])[2].text
    assert any("rescaled from a100" in note for note in made.notes)


def _fake_one(*_: Any, **__: Any) -> Prediction:
    made = outcome(1)
    trace = Trace(("one",), made.trace.tiles, made.trace.events, made.trace.waits)
    return Prediction(made.total_ps, made.span_ps, 1, 0, made.verdict, trace)


@given(
    st.lists(st.integers(1, 10_000), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(1, 10_000), st.sampled_from((SAFE, IF_ARRIVAL, CAN))), max_size=4),
)
def test_what_is_recommended_gains_more_than_the_band_and_cannot_hang(
    streams: list[int], others: list[tuple[int, str]]
) -> None:
    times: dict[str, Any] = {f"stream/{place}": outcome(total) for place, total in enumerate(streams)}
    times |= {f"row/{place}": outcome(total, status) for place, (total, status) in enumerate(others)}
    made = report(times)
    (reference,) = [row for row in made.rows if row.reference]
    assert reference.total_ns == 1000 * min(streams)
    chosen = [row for row in made.rows if row.recommended]
    usable = [total for total, status in others if status != CAN]
    if usable and min(usable) < 0.84 * min(streams):
        assert len(chosen) == 1
    for row in chosen:
        assert row.total_ns is not None
        assert row.total_ns < 0.851 * 1000 * min(streams)
        assert row.total_ns <= 1010 * min(usable)
        assert row.deadlock != CAN
    assert made.verdict
