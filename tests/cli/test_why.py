"""`cusim predict --why`: parts that sum to the total, and where the gain ends."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable

import pytest
from click.testing import Result

from cli.why import sizes_from
from cusim.machine import load_machine
from cusim.report.reasons import Fade, PlanParts, Seen, Why
from cusim.report.table import cells_of
from cusim.report.why import why_strips, why_words

Call = Callable[..., Result]

WHY = ("predict", "gpt3-mlp", "--m", "768", "--machine", "h200", "--why")


def test_plans_stand_side_by_side_and_their_parts_sum_to_what_is_printed(call: Call) -> None:
    begun = time.process_time()
    lines = call(*WHY, "-q").stdout.splitlines()
    assert time.process_time() - begun < 6
    at = next(place for place, line in enumerate(lines) if line.startswith("where the time goes"))
    assert re.split(r"\s{2,}", lines[at]) == [
        "where the time goes", "stream us", "%", "stream-best us", "%", "row us", "%",
    ]  # fmt: skip
    end = next(place for place, line in enumerate(lines[at:], at) if line.startswith("total"))
    cells = [[0.0 if c == "-" else float(c) for c in re.split(r"\s{2,}", line)[1:]] for line in lines[at + 1 : end + 1]]
    *parts, total = cells
    assert [round(sum(column), 1) for column in zip(*parts, strict=True)] == total
    assert total[1::2] == [100.0] * 3
    times = {line.split()[0]: line.split()[4] for line in lines if line.startswith(("stream ", "stream-best ", "row "))}
    assert f"{total[0]:.1f}" == times["stream"]


def test_json_has_whole_ns_that_sum_to_the_total_and_the_break_even_points(call: Call) -> None:
    data = json.loads(call(*WHY, "--json").stdout)
    why, totals = data["why"], {row["policy"]: row["total_ns"] for row in data["rows"]}
    assert [plan["policy"] for plan in why["plans"]] == ["stream", "stream-best", "row"]
    for plan in why["plans"]:
        assert all(type(part["ns"]) is int for part in plan["parts"])
        assert sum(part["ns"] for part in plan["parts"]) == plan["total_ns"] == totals[plan["policy"]]
    assert [seen["rival"] for seen in why["post_seen"]] == ["stream", "stream-best"]
    plain, best = (seen["within_ns"] for seen in why["post_seen"])
    assert plain > why["post_seen"][0]["here_ns"] > 0
    assert best is None or best < plain  # none where row loses to stream-best even with posts seen at once
    assert why["gain_by_m"]["m"][0] == 768
    assert len(why["gain_by_m"]["m"]) <= 24
    assert "why" not in json.loads(call(*WHY[:-1], "--json").stdout)


def test_the_latency_that_it_names_is_where_the_gain_is_gone(call: Call) -> None:
    """With posts seen that late after they begin row still wins, and half a microsecond later it loses."""
    post_ns = load_machine("h200").sync.post_ps // 1000
    seen = json.loads(call(*WHY, "--json", "--no-best-stream").stdout)["why"]["post_seen"][0]
    for late_ns, wins in ((seen["within_ns"] - 100, True), (seen["within_ns"] + 500, False)):
        settings = ("--set", f"machine.sync.visible_ps={late_ns - post_ns}ns")
        rows = json.loads(call(*WHY[:-1], "--policy", "row", "--json", *settings, "-q").stdout)["rows"]
        totals = {row["policy"]: row["total_ns"] for row in rows}
        assert (totals["row"] < totals["stream"]) is wins


def test_a_program_of_ones_own_has_parts_and_no_gain_by_size(call: Call, pair: str) -> None:
    data = json.loads(call("predict", pair, "--why", "--json").stdout)
    assert data["why"]["gain_by_m"] is None
    assert data["why"]["plans"]


def test_stream_order_alone_has_its_parts(call: Call) -> None:
    done = call(*WHY, "--policy", "stream", "--no-best-stream")
    assert done.exit_code == 0
    assert "where the time goes" in done.stdout
    assert "as long as a post" not in done.stdout


def test_markdown_has_the_table_too(call: Call) -> None:
    lines = call(*WHY, "--md").stdout.splitlines()
    assert sum(line.startswith("| ---") for line in lines) == 3
    assert any(line.startswith("- row beats stream as long as") for line in lines)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--m", "512"), "explains one case at a time; --m has 2 values"),
        (("--machine", "a100"), "--machine, --set has 2 values"),
        (("--dispatch", "random"), "explains --dispatch arrival, not random"),
        (("--csv",), "CSV has a line a row and no room for it"),
    ],
)
def test_it_is_refused_where_it_cannot_be_answered(call: Call, options: tuple[str, ...], said: str) -> None:
    done = call(*WHY, *options)
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.split())
    assert done.stdout == ""


def why(*parts: tuple[str, int]) -> Why:
    work = "work, spread evenly over the slots"
    total = 100_000
    rest = total - sum(ns for _, ns in parts)
    return Why((PlanParts("row", "row", "wait-first", total, ((work, rest), *parts)),), (), None)


def test_rounding_never_breaks_the_sum() -> None:
    made = why(("a", 33_350), ("b", 33_350), ("c", 33_250), ("nothing", 0), ("less", -40))
    titles, rows, _ = cells_of(why_strips(made, "us"))
    assert titles == ["where the time goes", "row us", "%"]
    assert "nothing" not in [row[0] for row in rows]
    for column in (1, 2):
        *parts, total = (float(row[column]) for row in rows)
        assert round(sum(parts), 1) == total == 100.0


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (
            Seen("row", "stream", 21_400, 1_200, False),
            "as long as a post is seen within 21.4 us of its start (here 1.2 us)",
        ),
        (Seen("row", "stream", 900, 1_200, False), "row would beat stream if a post were seen within 0.9 us"),
        (Seen("row", "stream", None, 1_200, False), "row takes longer than stream even if posts were seen as soon"),
        (Seen("row", "stream", 1_000_000, 1_200, True), "row beats stream even if a post is seen only 1000.0 us after"),
    ],
)
def test_break_even_latency_in_words(seen: Seen, said: str) -> None:
    assert said in " ".join(why_words(Why((), (seen,), None)))


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (256, "stays below 2 % from M = 384 on (looked up to M = 512, every 128)."),
        (512, "is still 2 % or more at M = 512, the largest looked at, every 128."),
        (None, "is below 2 % from M = 128 on (looked up to M = 512, every 128)."),
    ],
)
def test_break_even_size_in_words(last: int | None, said: str) -> None:
    made = Why((), (), Fade("row", (128, 256, 384, 512), last))
    assert said in " ".join(why_words(made))


def test_a_plan_without_parts_is_named() -> None:
    assert "row has no parts" in " ".join(why_words(Why((), (), None, ("row",))))


def test_sizes_begin_at_the_present_m_and_end_at_eight_times_it() -> None:
    assert sizes_from(768, 128, 432)[:3] == [768, 1024, 1280]
    assert sizes_from(768, 128, 432)[-1] == 6144
    assert sizes_from(100, 128, 72)[:3] == [100, 128, 256]
    assert len(sizes_from(65536, 128, 36864)) < 12
    assert sizes_from(1, 128, 72) == [1]
    assert sizes_from(128, 128, 10**9) == [128]
