"""Claims of papers: every status is judged from what the engine says, and nothing that goes wrong is hidden."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from cusim.engine.predict import predict
from cusim.engine.result import Deadlock, Prediction
from cusim.errors import InputError
from cusim.machine.load import load_machine
from cusim.machine.override import with_overrides
from cusim.reproduce import Claim, reproduce
from cusim.reproduce.claim import DIFFERS, FAILED, NOT_ATTEMPTED, SAME, Answer, Question, answered
from cusim.reproduce.document import SCHEMA, VERDICTS, json_text
from cusim.reproduce.lab import Lab, Outcome
from cusim.reproduce.printed import printed
from cusim.reproduce.registry import paper_of
from cusim.reproduce.text import markdown_lines, reasons, text_lines, total

PAPER = paper_of("cusync")
FIELDS = {"claim", "where", "paper", "ours", "baseline", "low", "high", "status", "note", "name", "unit"}


@pytest.fixture(scope="module")
def lab() -> Lab:
    return Lab()


@pytest.fixture(scope="module")
def claims(lab: Lab) -> tuple[Claim, ...]:
    return reproduce("cusync", lab)


def one(name: str, lab: Lab) -> Claim:
    """A single claim, answered in a lab of the test's own."""
    return answered(next(question for question in PAPER.questions if question.name == name), lab)


def wrong(change: Callable[[Prediction, str], Outcome]) -> Lab:
    """A lab whose engine makes a mistake in runs that finish; the change sees the launch of the plan."""

    def broken(program: Any, machine: Any, plan: Any, **how: Any) -> Outcome:
        found = predict(program, machine, plan, **how)
        return change(found, plan.launch) if isinstance(found, Prediction) else found

    return Lab(predict=broken)


def test_every_claim_says_where_it_is_printed_and_what_it_is(claims: tuple[Claim, ...]) -> None:
    assert len({claim.name for claim in claims}) == len(claims)
    for claim in claims:
        assert claim.where
        assert claim.claim
        assert claim.paper
        assert claim.verdict in VERDICTS
        assert bool(claim.why) == (claim.verdict in (DIFFERS, FAILED))


def test_no_claim_fails_and_all_are_answered_or_say_why_not(claims: tuple[Claim, ...]) -> None:
    assert not [claim for claim in claims if claim.verdict == FAILED]
    assert all((claim.ours is None) == (claim.verdict in (NOT_ATTEMPTED, "figure only")) for claim in claims)
    assert all(claim.note for claim in claims if claim.ours is None)


def test_no_result_stands_in_the_file_of_printed_values(claims: tuple[Claim, ...]) -> None:
    assert not [key for row in printed("cusync")["table4"] for key in row if "ours" in key or "status" in key]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("table4.256.stream-rounds", lambda run, launch: replace(run, rounds=run.rounds + 1)),
        ("table4.128.stream-time", lambda run, launch: replace(run, total_ps=2 * run.total_ps)),
        ("table4.128.gain", lambda run, launch: replace(run, total_ps=run.total_ps // (1 + (launch != "stream")))),
        ("table5.R.time", lambda run, launch: replace(run, total_ps=3 * run.total_ps)),
        ("fig1.waits.tile", lambda run, launch: replace(run, waits=run.waits + 1)),
        ("fig1.waits.row", lambda run, launch: replace(run, waits=run.waits - 1)),
        ("fig1.rounds.tile", lambda run, launch: later(run)),
        ("fig1.idle", lambda run, launch: later(run)),
        ("legality.inside", lambda run, launch: hung(run)),
        ("dispatch.launch-order", lambda run, launch: hung(run)),
        ("dispatch.wait-all", lambda run, launch: hung(run)),
    ],
)
def test_a_planted_wrong_result_changes_the_status(
    name: str, change: Callable[[Prediction, str], Outcome], claims: tuple[Claim, ...]
) -> None:
    assert next(claim for claim in claims if claim.name == name).status == SAME
    assert one(name, wrong(change)).verdict == DIFFERS


def later(run: Prediction) -> Prediction:
    """The last block runs alone, long after all others: rounds more."""
    tiles = {name: column.copy() for name, column in run.trace.tiles.items()}
    last = int(tiles["placed"].argmax())
    for name in ("placed", "ready", "first_load", "end", "posted"):
        tiles[name][last] += 200_000_000
    return replace(run, trace=replace(run.trace, tiles=tiles))


def hung(run: Prediction) -> Deadlock:
    return Deadlock(("a waits for b", "b waits for a"), 0, 1, run.verdict, run.trace)


def test_what_differs_agrees_when_the_engine_says_what_is_printed() -> None:
    def fast(run: Prediction, launch: str) -> Outcome:
        return replace(run, total_ps=1_500_000_000 if launch == "stream" else 1_196_000_000)

    assert one("table4.512.stream-time", Lab()).verdict == DIFFERS
    assert one("table4.512.stream-time", wrong(fast)).status == SAME
    assert one("table4.512.gain", wrong(fast)).status == SAME


def test_a_difference_that_no_known_reason_covers_is_unexplained() -> None:
    found = one("table4.256.gain", wrong(lambda run, launch: replace(run, total_ps=1_000_000_000)))
    assert found.status == "differs: ours is 16.0 points less; unexplained"


def test_the_order_of_the_flags_is_found_by_their_times() -> None:
    def by_flags(program: Any, machine: Any, plan: Any, **how: Any) -> Outcome:
        found = predict(program, machine, plan, **how)
        assert isinstance(found, Prediction)
        flags = plan.flags_of("down")
        return replace(found, total_ps=10_000_000 - 1_000_000 * (flags.W + flags.R + flags.T))

    assert one("table5.order", Lab(predict=by_flags)).status == SAME
    assert one("table5.order", Lab()).ours != printed("cusync")["table5"]["order"]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("table1.256.blocks_per_sm", ["limits.registers_per_sm=32768", "limits.registers_per_block=32768"]),
        ("table4.256.waves", ["limits.sms=40"]),
    ],
)
def test_another_machine_changes_what_is_counted(name: str, settings: list[str]) -> None:
    assert one(name, Lab()).status == SAME
    other = with_overrides(load_machine("v100"), settings)
    assert one(name, Lab(machines={"v100": other})).verdict == DIFFERS


@pytest.mark.parametrize("batch", ["512", "1024"])
def test_rows_that_contradict_themselves_are_named_as_such(batch: str, claims: tuple[Claim, ...]) -> None:
    for kind in ("stream-rounds", "total-waves"):
        claim = next(claim for claim in claims if claim.name == f"table4.{batch}.{kind}")
        assert claim.status.startswith("differs: ")
        assert claim.status.endswith("the printed waves contradict the grids beside them")
        assert claim.ours == claim.baseline


def test_gpt3_at_256_is_outside_both_rules_and_hangs_in_the_worst_order(claims: tuple[Claim, ...]) -> None:
    claim = next(claim for claim in claims if claim.name == "legality.gpt3-mlp.v100")
    assert claim.ours == "256"
    assert "can deadlock; worst order deadlocks, launch order finishes" in claim.why


def test_a_claim_that_raises_is_a_failed_claim_and_the_others_are_answered() -> None:
    def bad(program: Any, machine: Any, plan: Any, **how: Any) -> Outcome:
        raise ZeroDivisionError("planted")

    found = reproduce("cusync", Lab(predict=bad))
    assert len(found) == len(PAPER.questions)
    assert {claim.status for claim in found if claim.verdict == FAILED} == {"failed: ZeroDivisionError: planted"}
    assert next(claim for claim in found if claim.name == "table1.256.grids").status == SAME
    assert next(claim for claim in found if claim.name == "fig1.rounds.tile").ours is None


def test_a_run_that_deadlocks_where_a_time_is_asked_for_fails_the_claim() -> None:
    found = one("table4.256.stream-time", wrong(lambda run, launch: hung(run)))
    assert found.status.startswith("failed: CusimError: gpt3-mlp deadlocks")


def test_unknown_papers_are_refused_with_the_closest() -> None:
    with pytest.raises(InputError, match="did you mean cusync"):
        reproduce("cusink")


def test_the_document_has_the_schema_and_every_field(claims: tuple[Claim, ...], lab: Lab) -> None:
    found = json.loads(json_text(PAPER, claims, lab))
    assert found["schema"] == SCHEMA
    assert all(set(claim) == FIELDS for claim in found["claims"])
    assert sum(found["summary"].values()) == len(found["claims"]) == len(claims)
    assert {machine["name"] for machine in found["provenance"]["machines"]} >= {"v100", "a100"}


def test_the_document_is_the_same_each_time(claims: tuple[Claim, ...], lab: Lab) -> None:
    again = Lab()
    assert json_text(PAPER, reproduce("cusync", again), again) == json_text(PAPER, claims, lab)


def test_the_table_has_a_line_a_claim_and_numbers_its_reasons(claims: tuple[Claim, ...]) -> None:
    lines = [line.text for line in text_lines(PAPER, claims)]
    assert lines[-1] == total(claims)
    for claim in claims:
        assert any(line.startswith(claim.where) and claim.claim in line for line in lines)
    for text, number in reasons(claims).items():
        assert f"[{number}] {text}" in lines
    differing = next(claim for claim in claims if claim.verdict == DIFFERS)
    assert any(differing.why in text for text in reasons(claims))
    assert sum(line.startswith("| ") for line in markdown_lines(PAPER, claims)) == len(claims) + 2


def test_failed_claims_are_counted_and_shown() -> None:
    def raises(lab: Lab) -> Answer:
        raise ValueError("two\nlines")

    claim = answered(Question("x", "a claim", "§0", "1", "", raises), Lab())
    assert total([claim]) == "1 claims: 1 failed."
    assert any("failed [1]" in line.text and line.role == "bad" for line in text_lines(PAPER, [claim]))
    assert "[1] ValueError: two lines" in [line.text for line in text_lines(PAPER, [claim])]
