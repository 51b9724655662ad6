"""From words to plans, and plans to JSON and back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cusim.errors import InputError
from cusim.policies.batched import BatchedPolicy
from cusim.policies.flags import Flags
from cusim.policies.orders import ColumnOrder, GroupOrder, RowOrder, TableOrder
from cusim.policies.plan import Plan
from cusim.policies.plan_serial import plan_digest, plan_from_json, plan_to_json
from cusim.policies.registry import (
    build_plan,
    describe,
    is_assignment,
    parse_assignment,
    parse_launch,
    parse_policy,
    policy_names,
    split_sweep,
)
from cusim.policies.row import RowPolicy
from cusim.policies.tabulated import tabulate
from cusim.policies.tile import TilePolicy
from cusim.program.buffer import Access
from cusim.program.build import gemm_kernel, tile_range
from cusim.program.depends import dependences
from cusim.program.expr import c, r
from cusim.program.kernel import Gemm
from cusim.program.program import Program
from tests.policy_cases import BLOCK, chain, only_dep, program_of


def two() -> Program:
    return chain(12, 16, 8, (4, 4, 2), (4, 4, 2))


def three() -> Program:
    """``out`` reads ``down`` and, one tile at a time, ``up``: three dependences."""
    also = Access("up", tile_range(r, 4), tile_range(c, 4), "r", 0)
    up = gemm_kernel("up", Gemm(12, 16, 8), (4, 4, 4), BLOCK)
    down = gemm_kernel("down", Gemm(12, 16, 16), (4, 4, 4), BLOCK, a="up")
    out = gemm_kernel("out", Gemm(12, 16, 16), (4, 4, 4), BLOCK, a="down", needs=(also,))
    return program_of(up, down, out)


def reasons(**words: Any) -> str:
    program = words.pop("program", None) or two()
    with pytest.raises(InputError) as caught:
        build_plan(program, **words)
    return caught.value.text()


def test_words_of_policies() -> None:
    assert [parse_policy(word) for word in ("tile", " row ", "batched:4", "batched")] == [
        TilePolicy(),
        RowPolicy(),
        BatchedPolicy(4),
        BatchedPolicy(2),
    ]
    assert policy_names() == ("batched", "row", "tile")
    assert all(parse_policy(parse_policy(name).name) == parse_policy(name) for name in policy_names())
    assert describe("row") == "A consumer waits once for whole rows of producer tiles: fewest waits, latest start."
    assert all(describe(name).endswith(".") for name in policy_names())


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("tiel", "did you mean tile"),
        ("row:3", "row takes no number"),
        ("batched:0", "a number from 1"),
        ("batched:x", "a number from 1"),
        ("batched:", "a number from 1"),
        ("", "allowed: batched:N row stream tile"),
    ],
)
def test_unknown_policies_are_refused(word: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        parse_policy(word)


def test_launches() -> None:
    assert parse_launch("wait-all") == "wait-all"
    with pytest.raises(InputError, match="did you mean wait-first"):
        parse_launch("wait-fist")


def test_one_policy_for_all_or_one_for_each_dependence() -> None:
    deps = dependences(three())
    assert parse_assignment("tile", deps) == dict.fromkeys(("up>down", "up>out", "down>out"), TilePolicy())
    assert parse_assignment("up>down:row, down>out:batched:4,up>out:tile", deps) == {
        "up>down": RowPolicy(),
        "down>out": BatchedPolicy(4),
        "up>out": TilePolicy(),
    }


def test_all_mistakes_of_an_assignment_are_reported_together() -> None:
    with pytest.raises(InputError) as caught:
        parse_assignment("up>down:rwo,up>dwon:tile,up>out:row,up>out:tile", dependences(three()))
    text = caught.value.text()
    assert "4 errors" in text
    for part in ("did you mean row", "did you mean up>down", "given twice", "every dependence needs a policy"):
        assert part in text


def test_sweeps_are_told_from_assignments() -> None:
    names = ("up>down", "up>out")
    assert not is_assignment("row,tile", names)
    assert is_assignment("up>dwon:row", names)
    assert split_sweep("row,tile", names) == ("row", "tile")
    assert split_sweep("up>down:row,up>out:tile", names) == ("up>down:row,up>out:tile",)
    text = "stream,up>down:row,up>out:tile,up>down:tile,up>out:tile,batched:4"
    assert split_sweep(text, names) == (
        "stream",
        "up>down:row,up>out:tile",
        "up>down:tile,up>out:tile",
        "batched:4",
    )


def test_a_stream_plan_has_no_policy() -> None:
    plan = build_plan(two(), policy="stream", order="g=8")
    assert (plan.launch, plan.overlapped, dict(plan.sync)) == ("stream", False, {})
    assert plan.order_of("up") == plan.order_of("down") == GroupOrder(8)


def test_an_overlapped_plan_waits_for_the_first_producer_block_unless_told() -> None:
    assert build_plan(two(), policy="row").launch == "wait-first"
    assert build_plan(two(), policy="row", launch="wait-all").launch == "wait-all"
    plan = build_plan(two(), policy="tile", order="up:group:8,down:column", flags="down:RA")
    assert (plan.order_of("up"), plan.order_of("down")) == (GroupOrder(8), ColumnOrder())
    assert (plan.flags_of("up"), plan.flags_of("down")) == (Flags(), Flags(R=True, A=True))


def test_flag_w_and_launch_none_mean_each_other() -> None:
    by_flag, by_launch = build_plan(two(), policy="row", flags="W"), build_plan(two(), policy="row", launch="none")
    assert by_flag.launch == by_launch.launch == "none"
    assert by_flag.flags == by_launch.flags == {"up": Flags(W=True), "down": Flags(W=True)}
    partly = build_plan(two(), policy="row", launch="none", flags="down:R")
    assert partly.flags == {"up": Flags(W=True), "down": Flags(W=True, R=True)}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ({"policy": "stream", "launch": "wait-first"}, "policy stream runs kernels one after the other"),
        ({"policy": "stream", "flags": "R"}, "no waits to which flags apply"),
        ({"policy": "row", "launch": "stream"}, "an overlapped plan has no stream order"),
        ({"policy": "row", "flags": "W", "launch": "wait-first"}, "flag W means no wait-kernel, launch none"),
        ({"policy": "row", "flags": "up:W"}, "W is for the whole plan"),
        ({"policy": "row", "flags": "T", "order": "group:2"}, "flag T leaves the order to the hardware"),
        ({"policy": "row", "flags": "A"}, "a store keeps only the last post"),
        ({"policy": "rwo"}, "did you mean row"),
        ({"policy": "row", "order": "upp:column"}, "did you mean up"),
        ({"policy": "row", "flags": "dwn:R"}, "did you mean down"),
        ({"policy": "row", "order": "clumn"}, "did you mean column"),
        ({"policy": "row", "launch": "wait"}, "did you mean wait"),
    ],
)
def test_contradictions_are_refused(words: dict[str, str], why: str) -> None:
    assert why in reasons(**words)


def test_mistakes_of_all_words_are_reported_together() -> None:
    text = reasons(policy="rwo", order="clumn", flags="X", launch="wait")
    assert text.startswith("4 errors in plan")


def test_flag_t_accepts_orders_that_are_row_order_in_effect() -> None:
    assert build_plan(two(), policy="row", flags="T", order="g=1").flags_of("up").T


def test_a_table_must_fit_every_kernel_it_is_given_to(tmp_path: Path) -> None:
    path = tmp_path / "order.json"
    path.write_text(json.dumps([[row, col] for row in range(3) for col in range(4)]))
    assert "order.down" in reasons(policy="row", order=str(path))
    plan = build_plan(two(), policy="row", order=f"up:{path}")
    assert isinstance(plan.order_of("up"), TableOrder)


def test_buffers_that_are_written_again_need_a_stream() -> None:
    up = gemm_kernel("up", Gemm(8, 8, 8), (4, 4, 4), BLOCK)
    down = gemm_kernel("down", Gemm(8, 8, 8), (4, 4, 4), BLOCK, a="up")
    kernel, buffers = gemm_kernel("third", Gemm(8, 8, 8), (4, 4, 4), BLOCK, a="down")
    again = replace(kernel, writes=(replace(kernel.writes[0], buffer="up"),))
    program = program_of(up, down, (again, buffers))
    text = reasons(program=program, policy="tile")
    assert "third writes what up writes" in text
    assert "third writes what down reads" in text
    assert build_plan(program, policy="stream").launch == "stream"


def full_plan() -> Plan:
    """A plan with every kind of part."""
    program = two()
    dep = only_dep(program)
    table = tabulate("mine", dep, lambda r, c: (r, c + 1), lambda r, c, z, k: [(r, 10, 1)] * (k % 2 == 0))
    order = TableOrder(tuple((row, col, 0) for col in range(4) for row in range(3)), "mine.json")
    return Plan(
        {"up>down": table, "a>b": BatchedPolicy(4), "c>d": TilePolicy()},
        {"up": order, "down": GroupOrder(8), "x": RowOrder()},
        {"up": Flags(A=True), "down": Flags(W=True, T=True)},
        "wait-value",
        streams=3,
        label="mine",
    )


@pytest.mark.parametrize("plan", [Plan(), full_plan(), build_plan(two(), policy="row", flags="WRT", order="g=1")])
def test_plans_survive_json(plan: Plan) -> None:
    back = plan_from_json(json.loads(json.dumps(plan_to_json(plan))), "plan.json")
    assert back == plan
    assert plan_digest(back) == plan_digest(plan)


def test_the_digest_names_what_is_chosen() -> None:
    plan = full_plan()
    others = [
        replace(plan, launch="none"),
        replace(plan, streams=None),
        replace(plan, sync={**plan.sync, "c>d": RowPolicy()}),
        replace(plan, order={**plan.order, "x": ColumnOrder()}),
        replace(plan, flags={}),
    ]
    digests = {plan_digest(other) for other in (plan, *others)}
    assert len(digests) == 6
    assert all(len(digest) == 12 for digest in digests)
    renamed = replace(plan, label="other", order={**plan.order, "up": replace(plan.order["up"], name="other")})
    assert plan_digest(renamed) == plan_digest(plan)


def test_a_policy_of_no_known_kind_has_a_digest_but_no_json() -> None:
    class Unknown(RowPolicy):
        __slots__ = ()

    plan = Plan({"up>down": Unknown("mine")}, launch="none")
    assert len(plan_digest(plan)) == 12
    with pytest.raises(InputError, match="only registered and tabulated policies"):
        plan_to_json(plan)


def changed(path: tuple[str | int, ...], value: object) -> dict[str, Any]:
    """The full plan's document with one entry exchanged, or left out where *value* is ``...``."""
    document: Any = json.loads(json.dumps(plan_to_json(full_plan())))
    part = document
    for key in path[:-1]:
        part = part[key]
    if value is ...:
        del part[path[-1]]
    else:
        part[path[-1]] = value
    return dict(document)


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        (("schema",), "cusim.plan/2", 'allowed: "cusim.plan/1"'),
        (("schema",), ..., 'allowed: "cusim.plan/1"'),
        (("lunch",), "none", "did you mean launch"),
        (("launch",), "wait", "did you mean wait"),
        (("launch",), ..., "launch   missing"),
        (("scheduler",), "ace", "allowed: in-order"),
        (("streams",), 0, "must be 1 or more"),
        (("streams",), "2", "must be an integer"),
        (("label",), 3, "must be a string"),
        (("sync",), [], "must be a table"),
        (("sync", "a>b"), "rwo", "did you mean row"),
        (("sync", "a>b"), 3, "must be a string"),
        (("sync", "up>down", "post_add"), [1], "must hold 12 integers"),
        (("sync", "up>down", "post_add", 0), -1, "must hold 12 integers"),
        (("sync", "up>down", "steps"), 0, "must be 1 or more"),
        (("sync", "up>down", "post_index", 0), 10**23, "at most 2147483647"),
        (("sync", "up>down", "semaphores"), 2, "use semaphores up to 2"),
        (("sync", "up>down", "wait_tables", 0, "count"), ..., "missing"),
        (("sync", "up>down", "wait_tables", 0, "more"), 1, "unknown key"),
        (("sync", "up>down", "wait_tables"), 1, "must be an array of tables"),
        (("sync", "up>down", "consumer_grid"), [1, 2], "must hold 3 integers"),
        (("order", "down"), "here.json", "allowed: "),
        (("order", "down"), 8, "must be a string"),
        (("order", "up", "table"), [[0, 0]], r"must be an array of [r, c, z]"),
        (("order", "up", "table", 0, 0), 10**23, "all integers of 0 to 2147483647"),
        (("order", "up", "name"), ..., "missing"),
        (("flags", "up"), "Q", "the letters W R T A"),
    ],
)
def test_other_documents_are_refused(path: tuple[str | int, ...], value: object, why: str) -> None:
    with pytest.raises(InputError) as caught:
        plan_from_json(changed(path, value), "plan.json")
    text = caught.value.text()
    assert "in plan.json" in text
    assert why in text


def test_what_is_no_table_is_refused() -> None:
    for document in (None, [], 3, "plan"):
        with pytest.raises(InputError, match="must be a table"):
            plan_from_json(document, "plan.json")
