"""The stronger rival in tables, words and JSON: stream order at its own best tile."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from cusim.engine.result import Prediction, Verdict
from cusim.policies.registry import build_plan
from cusim.program.program import Program
from cusim.program.toml_read import parse_program
from cusim.report.result import Report
from cusim.report.rows import compare
from cusim.report.stream_best import rule_of, tile_options
from cusim.report.summary import verdict_word
from cusim.report.text import text_lines
from cusim.trace.trace import EVENT_COLUMNS, TILE_COLUMNS, WAIT_COLUMNS, Trace, column_table
from tests.machines import uncalibrated

Call = Callable[..., Result]

MACHINE = uncalibrated()
MLP = ("predict", "gpt3-mlp", "--m", "768", "--machine", "h200")


def rows_of(done: Result) -> dict[str, Any]:
    return {row["policy"]: row for row in json.loads(done.stdout)["rows"]}


def test_the_row_stands_behind_stream_order_with_its_tile_in_a_footnote(call: Call) -> None:
    done = call(*MLP, "-q")
    lines = done.stdout.splitlines()
    at = next(place for place, line in enumerate(lines) if line.startswith("policy "))
    assert [line.split()[0] for line in lines[at + 1 : at + 6]] == ["stream", "stream-best", "row", "tile", "batched:2"]
    said = " ".join(done.stdout.split())
    assert "stream-best is stream order at its own best tile, order and split-K, chosen by the model alone: up " in said
    assert "tile" not in lines[at]  # the tiles that were asked for are all alike


def test_json_has_its_tile_and_the_speedup_against_it(call: Call) -> None:
    rows = rows_of(call(*MLP, "--json"))
    best, stream, row = rows["stream-best"], rows["stream"], rows["row"]
    assert best["total_ns"] < stream["total_ns"]
    assert (best["tile"], best["split_k"]) != (stream["tile"], stream["split_k"])
    assert (best["speedup_vs_best_stream"], best["reference"], stream["reference"]) == (1.0, False, True)
    assert row["speedup_vs_stream"] == pytest.approx(stream["total_ns"] / row["total_ns"], abs=1e-4)
    assert row["speedup_vs_best_stream"] == pytest.approx(best["total_ns"] / row["total_ns"], abs=1e-4)


def test_a_gain_that_a_better_tile_has_too_is_no_recommendation(call: Call) -> None:
    """At 768 rows tiles of 192 x 192 fill their rounds in stream order: nothing is left for semaphores to gain."""
    said = " ".join(call(*MLP, "-q").stdout.split())
    assert "No recommendation" in said
    assert "stream order at a better tile (stream-best)" in said
    rows = rows_of(call(*MLP, "--json"))
    assert rows["stream-best"]["total_ns"] < rows["row"]["total_ns"] < rows["stream"]["total_ns"]
    assert not any(row["recommended"] for row in rows.values())
    assert rows_of(call(*MLP, "--json", "--no-best-stream"))["row"]["recommended"]


def test_it_can_be_switched_off(call: Call) -> None:
    done = call(*MLP, "--json", "--no-best-stream")
    rows = rows_of(done)
    assert "stream-best" not in rows
    assert rows["row"]["speedup_vs_best_stream"] is None
    assert json.loads(done.stdout)["footnotes"] == []


def test_advice_names_the_options_that_give_policies_its_tiles(call: Call) -> None:
    done = call(*MLP, "--policy", "row")
    (note,) = [line for line in done.stderr.splitlines() if "policies at the tiles of stream-best: " in line]
    best = rows_of(call(*MLP, "--json"))["stream-best"]
    options = note.partition("stream-best: ")[2].split()
    there = rows_of(call(*MLP, "--json", "--policy", "row", *options))
    assert there["stream"]["total_ns"] == pytest.approx(best["total_ns"], rel=0.01)


def test_a_sweep_says_what_it_is_by_case_and_what_the_gain_on_it_is(call: Call) -> None:
    done = call("predict", "gpt3-mlp", "--m", "256,768", "--machine", "h200", "--policy", "row", "-q")
    lines = done.stdout.splitlines()
    at = lines.index("stream-best is stream order at its own best tile, order and split-K, chosen by the model alone:")
    assert lines[at + 1].startswith("m=256: up ")
    assert "on stream-best %" in done.stdout
    assert [line.split()[0] for line in lines if line.endswith((" stream-best", "verdict"))] == ["m", "256", "768"]


TIMED = """\
schema = "cusim.program/1"
[[kernel]]
name = "up"
gemm = { m = 768, n = 6144, k = 12288, dtype = "fp16" }
tile = "128x256x64"
block = { threads = 384, registers = 168, shared_kib = 196 }
time_us = 231.0
measured_on = "h200"
[[kernel]]
name = "down"
gemm = { m = 768, n = 12288, k = 6144, dtype = "fp16" }
a = "up"
tile = "128x256x64"
block = { threads = 384, registers = 168, shared_kib = 196 }
"""


def test_kernels_of_measured_time_keep_their_tile_and_the_footnote_says_so(call: Call, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(TIMED, encoding="utf-8")
    best = rows_of(call("predict", "mine.toml", "--json"))["stream-best"]
    assert best["tile"].startswith("up:128x256x64 down:")
    said = " ".join(call("predict", "mine.toml", "-q").stdout.split())
    assert "; tile and split-K of up stay: measured at this tile" in said
    assert "note: policies at the tiles" not in call("predict", "mine.toml").stderr  # a file says its own


def program() -> Program:
    block = "block = { threads = 256, registers = 128, shared_kib = 128 }"
    text = "".join(
        f'[[kernel]]\nname = "{name}"\ngemm = {{ m = 384, n = {n}, k = {k} }}\ntile = "128x128x64"\n{more}{block}\n'
        for name, n, k, more in (("up", 512, 256, ""), ("down", 256, 512, 'a = "up"\n'))
    )
    return parse_program(f'schema = "cusim.program/1"\nname = "pair"\n{text}', "pair.toml")


def outcome(total_us: float) -> Prediction:
    tile = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4_000_000, 4_000_000, 1_000_000)
    trace = Trace(
        ("up", "down"),
        column_table([tile], TILE_COLUMNS),
        column_table([(0, 0, 0, 0, 4_000_000)], EVENT_COLUMNS),
        column_table([], WAIT_COLUMNS),
    )
    total = round(total_us * 1e6)
    return Prediction(total, total, 4, 12, Verdict("safe by construction", "because"), trace)


def report(stream: float, best: float, row: float) -> Report:
    """A comparison in which stream order, stream-best and row take the times given."""
    pair = program()
    plans = {word: build_plan(pair, policy=word) for word in ("stream", "row")}
    times = {id(plans["stream"]): stream, id(plans["row"]): row}
    contenders = [(word, pair, plan) for word, plan in plans.items()]
    made = compare(
        contenders, MACHINE, best_stream=True, predict=lambda _, __, plan, **___: outcome(times.get(id(plan), best))
    )
    assert [r.policy for r in made.rows] == ["stream", "stream-best", "row"]
    return made


@pytest.mark.parametrize(
    ("times", "recommended", "word", "said"),
    [
        (
            (100, 95, 70),
            True,
            "recommended",
            "30.0 % less time than the best stream plan, stream (order row), and 26.3 %",
        ),
        ((100, 75, 70), False, "tie with stream-best", "most of that gain is also had"),
        ((100, 82, 72), False, "tie with stream-best", "there the gain is 12.2 %, within ±15 %. No recommendation."),
        ((100, 83, 84), False, "tie with stream-best", "there it is a loss of 1.2 %"),
        ((100, 60, 80), False, "behind stream-best", "but 33.3 % more than stream order at a better tile"),
        ((100, 60, 95), False, "tie, behind stream-best", "(stream-best) takes 40.0 % less time than at this one."),
        ((100, 60, 130), False, "loss, behind stream-best", "Predicted loss: even the best policy, row"),
        ((100, 98, 95), False, "tie", "Tie within ±15 %"),
        ((100, 120, 70), True, "recommended", "30.0 % less than stream-best."),
    ],
)
def test_what_is_recommended_beats_the_strongest_stream_order_too(
    times: tuple[float, float, float], recommended: bool, word: str, said: str
) -> None:
    made = report(*times)
    assert [row.recommended for row in made.rows] == [False, False, recommended]
    assert verdict_word(made) == word
    assert said in " ".join(made.verdict)


def test_where_nothing_is_faster_the_row_repeats_stream_order_and_says_so() -> None:
    made = report(100, 120, 70)
    stream, best, _ = made.rows
    assert (best.total_ns, best.tile, best.order) == (stream.total_ns, stream.tile, stream.order)
    assert made.footnotes[0].text.endswith("alone: it found none that is faster.")


def test_the_table_has_its_column_where_there_is_room() -> None:
    wide, narrow = ([line.text for line in text_lines([report(100, 75, 70)], width=width)] for width in (160, 90))
    assert any("vs best" in line for line in wide)
    assert not any("vs best" in line for line in narrow)


def test_options_give_tiles_and_splits_as_workloads_take_them(call: Call) -> None:
    made = report(100, 75, 70)
    assert tile_options(made.rows[0]) == "--tile 128x128x64 --split-k 1"


def test_a_machine_of_ones_own_is_known_by_its_architecture() -> None:
    from dataclasses import replace

    known = rule_of(MACHINE)
    assert known is not None
    assert rule_of(replace(MACHINE, name="mine")) == known
    assert rule_of(replace(MACHINE, name="mine", arch="sm_1")) is None
