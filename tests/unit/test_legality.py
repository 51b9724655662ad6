"""The published rules for W, R, T and A, on shapes that stand inside, between and outside them."""

from __future__ import annotations

import pytest

from cusim.policies.base import SyncPolicy
from cusim.policies.batched import BatchedPolicy
from cusim.policies.flags import Flags, parse_flags
from cusim.policies.legality import FlagVerdict, legality
from cusim.policies.plan import Plan
from cusim.policies.row import RowPolicy
from cusim.policies.tabulated import tabulate
from cusim.policies.tile import TilePolicy
from cusim.program.build import gemm_kernel
from cusim.program.kernel import Gemm
from cusim.program.program import Program
from tests.policy_cases import BLOCK, chain, figure_1, gpt3_mlp_256, only_dep, program_of


def verdicts(program: Program, policy: SyncPolicy, flags: str, slots: int, **by_kernel: str) -> list[FlagVerdict]:
    """The verdicts of one policy and set of flags for all kernels, unless given by kernel."""
    names = [kernel.name for kernel in program.kernels]
    chosen = {name: parse_flags(by_kernel.get(name, flags)) for name in names}
    plan = Plan({"up>down": policy}, flags=chosen, launch="none" if "W" in flags else "wait-first")
    return list(legality(program, plan, dict.fromkeys(names, slots)))


def status(found: list[FlagVerdict]) -> dict[tuple[str, str], str]:
    return {(verdict.where, verdict.flag): verdict.status for verdict in found}


def test_gpt3_at_256_on_a_v100_stands_outside_both_rules() -> None:
    """The shipped setting: 384 blocks on 2 x 80 slots are 2.4 waves; it works through the launch order alone."""
    found = verdicts(gpt3_mlp_256(), TilePolicy(), "WT", 160)
    assert status(found) == {("up>down", "W"): "warn", ("up", "T"): "legal", ("up>down", "T"): "warn"}
    wait_kernel, producer, order = found
    assert wait_kernel.reason.startswith("outside both rules: both kernels take 2.4 waves")
    assert "all 2 stages take 2.4, and the repository allows 1" in wait_kernel.reason
    assert order.reason.startswith("outside both rules")
    assert "its time, not its safety" in producer.reason


@pytest.mark.parametrize(
    ("slots", "w", "t"),
    [
        (12, "legal", "legal"),  # 12 blocks in one wave
        (11, "warn", "warn"),  # above one wave: outside the repository's rules only
        (6, "warn", "warn"),  # two waves: the paper forbids W and allows T
        (5, "warn", "warn"),
    ],
)
def test_rules_of_two_stages_by_number_of_slots(slots: int, w: str, t: str) -> None:
    found = verdicts(figure_1(), TilePolicy(), "WT", slots)
    assert status(found) == {("up>down", "W"): w, ("up", "T"): "legal", ("up>down", "T"): t}


@pytest.mark.parametrize(
    ("slots", "w", "t"),
    [
        (11, "outside the repository's rule", "outside the repository's rule"),
        (6, "outside both rules", "outside the repository's rule"),
        (5, "outside both rules", "outside both rules"),
    ],
)
def test_the_reason_names_the_rule_that_fails(slots: int, w: str, t: str) -> None:
    wait_kernel, _, order = verdicts(figure_1(), TilePolicy(), "WT", slots)
    assert wait_kernel.reason.partition(":")[0] == w
    assert order.reason.partition(":")[0] == t


def test_three_stages_may_take_two_waves_in_hardware_order() -> None:
    sizes = ("up", None), ("down", "up"), ("out", "down")
    kernels = [gemm_kernel(name, Gemm(4, 4, 4), (1, 1, 1), BLOCK, a=a) for name, a in sizes]
    program = program_of(*kernels)
    plan = Plan({"up>down": TilePolicy(), "down>out": TilePolicy()}, flags={"out": Flags(T=True)}, launch="wait-all")
    (legal,), (warned,) = (
        [verdict for verdict in legality(program, plan, dict.fromkeys(("up", "down", "out"), n)) if verdict.flag == "T"]
        for n in (24, 23)
    )
    assert (legal.where, legal.status) == ("down>out", "legal")
    assert (warned.status, "all 3 stages take 2.09, and the repository allows 2" in warned.reason) == ("warn", True)


def test_a_store_is_legal_only_where_one_tile_posts_once() -> None:
    program = gpt3_mlp_256()
    assert status(verdicts(program, TilePolicy(), "A", 160)) == {("up>down", "A"): "legal"}
    (refused,) = verdicts(program, RowPolicy(), "A", 160)
    assert (refused.status, refused.where) == ("refused", "up>down")
    assert refused.reason.startswith("semaphore 0 of policy row is posted by 48 tiles")
    assert status(verdicts(program, BatchedPolicy(1), "A", 160)) == {("up>down", "A"): "refused"}


def test_a_store_is_judged_by_evaluation_not_by_name() -> None:
    dep = only_dep(chain(12, 4, 4, (4, 4, 4), (4, 4, 4)))
    program = chain(12, 4, 4, (4, 4, 4), (4, 4, 4))
    assert dep.producer_grid == (3, 1, 1)
    assert status(verdicts(program, RowPolicy(), "A", 160)) == {("up>down", "A"): "legal"}
    shared = tabulate("shared", dep, lambda r, c: (r // 2, 1), lambda r, c, z, k: [(r // 2, 1, 1)])
    assert "posted by 2 tiles" in verdicts(program, shared, "A", 160)[0].reason


@pytest.mark.parametrize(
    ("policy", "flags", "stages", "expected"),
    [
        (RowPolicy(), "R", 4, "warn"),
        (RowPolicy(), "R", 2, "legal"),
        (RowPolicy(), "", 4, None),
        (TilePolicy(), "", 4, "warn"),
        (TilePolicy(), "", 2, None),
        (TilePolicy(), "R", 4, "legal"),
        (BatchedPolicy(2), "R", 3, "warn"),
    ],
)
def test_reordered_loads_against_cusyncs_multistage_kernel(
    policy: SyncPolicy, flags: str, stages: int, expected: str | None
) -> None:
    program = chain(12, 8, 4, (4, 4, 4), (4, 4, 4), stages=stages)
    found = verdicts(program, policy, flags, 160)
    assert [verdict.status for verdict in found] == ([] if expected is None else [expected])
    if expected == "warn":
        assert "cusim's kernels wait at the derived points, so the result is right" in found[0].reason
        assert f"{stages} stages" in found[0].reason


def test_a_stream_plan_has_nothing_to_judge() -> None:
    program = figure_1()
    assert legality(program, Plan(flags={"up": Flags(A=True)}), {"up": 1, "down": 1}) == ()
