"""Graphs and early starts on the command line: one more stream row, or a policy without a wait-kernel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import PROGRAM, Call

PREDICT = ("predict", "pair.toml", "--machine", "h200", "--no-best-stream", "-q", "--json")


@pytest.fixture(autouse=True)
def _program(call: Call) -> None:
    Path("pair.toml").write_text(PROGRAM)


def rows(call: Call, *options: str) -> list[dict[str, Any]]:
    done = call(*PREDICT, *options)
    assert done.exit_code == 0, done.stderr
    return list(json.loads(done.stdout)["rows"])


@pytest.mark.parametrize(
    ("options", "seen"),
    [
        (("--launch", "graph"), [("stream", "stream"), ("stream", "graph")]),
        (("--launch", "graph", "--policy", "stream"), [("stream", "stream"), ("stream", "graph")]),
        (("--launch", "pdl", "--policy", "stream"), [("stream", "stream"), ("stream", "pdl")]),
        (("--launch", "pdl", "--policy", "row"), [("stream", "stream"), ("row", "pdl")]),
        (
            ("--launch", "stream,pdl,wait-all", "--policy", "stream,row"),
            [("stream", "stream"), ("stream", "pdl"), ("row", "pdl"), ("row", "wait-all")],
        ),
    ],
)
def test_each_launch_meets_the_policies_that_it_can_have(
    call: Call, options: tuple[str, ...], seen: list[tuple[str, str]]
) -> None:
    assert [(row["policy"], row["launch"]) for row in rows(call, *options)] == seen


def test_shorter_gaps_and_early_starts_save_time_and_cannot_hang(call: Call) -> None:
    found = rows(call, "--launch", "graph,pdl,wait-first", "--policy", "stream,row", "--order", "row", "--flags", "-")
    time = {(row["policy"], row["launch"]): row["total_ns"] for row in found}
    assert time["stream", "graph"] < time["stream", "stream"]
    assert time["stream", "pdl"] < time["stream", "stream"]
    assert time["row", "pdl"] < time["row", "wait-first"]
    assert {row["deadlock"] for row in found if row["launch"] != "wait-first"} == {"safe by construction"}
    waiting = {(row["policy"], row["launch"]): row["waiting_pct"] for row in found}
    assert waiting["stream", "pdl"] > waiting["stream", "graph"] == 0


def test_the_default_policies_meet_pdl_too_and_the_words_say_so(call: Call) -> None:
    done = call("predict", "pair.toml", "--machine", "h200", "--no-best-stream", "--launch", "graph,pdl")
    assert done.exit_code == 0
    table = done.stdout[done.stdout.index("\npolicy ") :].split("\n\n")[0].splitlines()[2:]
    assert [line.split()[0] for line in table] == ["stream"] * 3 + ["row", "tile", "batched:2"]
    assert "left out" not in done.stderr
    assert "stream (order row, launch " in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--launch", "graph", "--policy", "row"), "an overlapped plan has no stream order"),
        (("--launch", "wait-all", "--policy", "stream"), "stream order has no waits that this could change"),
        (("--launch", "pdl", "--policy", "row", "--flags", "W"), "flag W means no wait-kernel"),
    ],
)
def test_what_a_launch_cannot_have_is_refused_by_name(call: Call, options: tuple[str, ...], why: str) -> None:
    done = call("predict", "pair.toml", "--machine", "h200", *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert why in done.stderr


@pytest.mark.parametrize("launch", ["graph", "pdl"])
def test_a_run_keeps_its_trace_and_the_picture_shows_both_rows(call: Call, launch: str) -> None:
    done = call("run", "pair.toml", "--machine", "h200", "--policy", "stream", "--launch", launch, "-o", "one.npz")
    assert done.exit_code == 0, done.stderr
    assert f"launch {launch}" in done.stdout
    assert call("plot", "one.npz").exit_code == 0
    assert Path("one.png").stat().st_size > 0
    Path("both.json").write_text(call(*PREDICT, "--launch", launch, "--policy", "stream").stdout)
    assert call("plot", "both.json", "-o", "both.svg").exit_code == 0
    drawn = Path("both.svg").read_text()
    assert f"stream  {launch}" in drawn
    assert "stream  stream" in drawn


def test_a_waiting_block_waits_for_the_kernel_ahead_in_the_exported_trace(call: Call) -> None:
    call("run", "pair.toml", "--machine", "h200", "--policy", "stream", "--launch", "pdl", "-o", "one.npz")
    done = call("export", "one.npz", "-o", "one.json")
    assert done.exit_code == 0, done.stderr
    events = json.loads(Path("one.json").read_text())["traceEvents"]
    assert {event["name"] for event in events if event.get("cat") == "wait"} == {"wait up>down"}
