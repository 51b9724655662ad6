"""Where time goes, how far a gain carries, and the strongest stream order."""

from __future__ import annotations

from dataclasses import replace

import pytest

import cusim
from cusim.machine.machine import Machine
from cusim.policies.plan import Plan
from cusim.program.kernel import Kernel, Measured
from cusim.program.program import Program
from cusim.program.toml_read import parse_program
from cusim.tune.bound import least_ps
from cusim.tune.break_even import LONGEST_PS, gain_ends_after, seen_within_ps
from cusim.tune.strongest import CLOSE, MOST_BLOCKS, ORDERS, _alone_ps, _cuts, strongest_stream
from cusim.tune.why import breakdown
from cusim.workloads.defaults import architecture_of

_UNKNOWN = "blocks of other tiles are not known for this machine"


@pytest.fixture(scope="module")
def machine() -> Machine:
    return cusim.load_machine("h200")


def planned(policy: str, m: int = 768) -> tuple[Program, Plan]:
    choice = cusim.build_workload("gpt3-mlp", "h200", m=m).choice(policy)
    return choice.program, cusim.build_plan(choice.program, policy=policy, order=choice.order, flags=choice.flags)


@pytest.mark.parametrize("policy", ["stream", "row", "tile"])
@pytest.mark.parametrize("m", [512, 768])
def test_parts_sum_to_the_total(machine: Machine, policy: str, m: int) -> None:
    program, plan = planned(policy, m)
    found = breakdown(program, machine, plan)
    assert found is not None
    assert sum(part.ps for part in found.parts) == found.total_ps == cusim.predict(program, machine, plan).total_ps  # type: ignore[union-attr]


def test_a_cause_that_is_made_larger_takes_the_time(machine: Machine) -> None:
    """Ten times the launch gap of stream order's two kernels lands in the part for launches, and nowhere else."""
    program, plan = planned("stream")
    slow = cusim.with_overrides(machine, ["machine.launch.gap_ps=14.2us"])
    before, after = breakdown(program, machine, plan), breakdown(program, slow, plan)
    assert before is not None
    assert after is not None
    moved = {b.cause: a.ps - b.ps for a, b in zip(after.parts, before.parts, strict=True) if a.ps != b.ps}
    assert moved == {"launches and placement": 2 * (14_200_000 - machine.launch.gap_ps)}


def test_what_blocks_wait_for_is_named_by_dependence(machine: Machine) -> None:
    program, plan = planned("row", 512)
    found = breakdown(program, machine, plan)
    assert found is not None
    waited = {part.cause: part.ps for part in found.parts}["waiting for up>down"]
    assert waited > 50_000_000  # nearly a round of down stands still behind the rows of up


def test_a_hang_has_no_parts(machine: Machine) -> None:
    one = cusim.with_overrides(machine, ["machine.sms=1", "machine.launch.event_ps=0us"])
    program, _ = planned("row")
    assert breakdown(program, one, cusim.build_plan(program, policy="row", launch="none")) is None


def test_the_latency_that_eats_the_gain_is_where_the_totals_meet(machine: Machine) -> None:
    program, plan = planned("row")
    whole, in_order = planned("stream")
    stream = cusim.predict(whole, machine, in_order)
    assert isinstance(stream, cusim.Prediction)
    seen = seen_within_ps(program, machine, plan, stream.total_ps)
    assert seen is not None
    assert seen < LONGEST_PS
    for late, gains in ((seen, True), (seen + 20_000, False)):
        slow = cusim.with_overrides(machine, [f"machine.sync.visible_ps={late - machine.sync.post_ps}ps"])
        result = cusim.predict(program, slow, plan)
        assert isinstance(result, cusim.Prediction)
        assert (result.total_ps < stream.total_ps) is gains


def test_no_latency_helps_a_plan_that_loses(machine: Machine) -> None:
    program, plan = planned("row", 512)
    assert seen_within_ps(program, machine, plan, 1) is None


def test_a_gain_that_comes_and_goes_ends_at_its_last_size() -> None:
    gains = {256: 0.0, 512: 20.0, 768: 1.0, 1024: 5.0, 1280: 0.0}
    assert gain_ends_after(gains.__getitem__, sorted(gains), 2.0) == 1024
    assert gain_ends_after(gains.__getitem__, sorted(gains), 30.0) is None


def test_the_strongest_stream_order_is_no_worse_than_any_given_one(machine: Machine) -> None:
    program, plan = planned("stream")
    found = strongest_stream(program, machine, architecture_of("h200"))
    best, given = (cusim.predict(p, machine, chosen) for p, chosen in ((found.program, found.plan), (program, plan)))
    assert isinstance(best, cusim.Prediction)
    assert isinstance(given, cusim.Prediction)
    assert best.total_ps <= given.total_ps
    assert 0 < found.predicted <= found.candidates


@pytest.mark.parametrize(("machine_name", "m"), [("h200", 256), ("a100", 64), ("v100", 64)])
def test_bounds_skip_no_better_candidate(machine_name: str, m: int) -> None:
    """Every candidate of both kernels, predicted without a bound: none beats its bound, none is a percent better."""
    machine, rule = cusim.load_machine(machine_name), architecture_of(machine_name)
    program = cusim.build_workload("llama-mlp", machine_name, m=m).program
    found = strongest_stream(program, machine, rule)
    assert found.complete
    for kernel, chosen in zip(program.kernels, found.program.kernels, strict=True):
        totals = []
        for cut in _cuts(kernel, rule):
            for order in ORDERS:
                totals.append(_alone_ps(cut, order, program, machine))
                assert totals[-1] >= least_ps(cut, machine)
        best = _alone_ps(chosen, found.plan.order_of(kernel.name), program, machine)
        assert CLOSE * best <= min(totals) <= best


def test_a_small_budget_ends_the_search_and_says_so(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    program, plan = planned("stream", 256)
    rule = architecture_of("h200")
    monkeypatch.setattr("cusim.tune.strongest.MOST_BLOCKS", 2)
    hasty = strongest_stream(program, machine, rule, plan)
    assert (hasty.complete, hasty.predicted) == (False, 2)
    monkeypatch.undo()
    whole = strongest_stream(program, machine, rule, plan)
    assert (whole.complete, whole.predicted > 2) == (True, True)


@pytest.mark.parametrize("m", [256, 4096])
def test_a_search_simulates_few_more_blocks_than_its_budget(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, m: int
) -> None:
    """Times far above every bound give no reason to leave a cut out: the budget alone ends the search."""
    simulated: dict[str, list[int]] = {"up": [], "down": []}

    def slow(kernel: Kernel, *_: object) -> int:
        simulated[kernel.name].append(kernel.blocks)
        return 10**12

    monkeypatch.setattr("cusim.tune.strongest._alone_ps", slow)
    program, _ = planned("stream", m)
    unseen = cusim.with_overrides(machine, ["machine.sms=131"])  # searches are remembered
    found = strongest_stream(program, unseen, architecture_of("h200"))
    budget = MOST_BLOCKS // 2
    assert found.complete == all(sum(blocks) < budget for blocks in simulated.values())
    assert all(sum(blocks[:-1]) < budget for blocks in simulated.values())


def test_three_warpgroups_fill_the_rounds_that_powers_of_two_do_not(machine: Machine) -> None:
    """GPT-3's MLP at 768 rows: tiles of 192 x 192 cut it into 128 and 256, on 132 SMs."""
    program, _ = planned("stream")
    found = strongest_stream(program, machine, architecture_of("h200"))
    assert [(kernel.tile, kernel.grid) for kernel in found.program.kernels] == [
        ((192, 192, 64), (4, 32, 1)), ((192, 192, 64), (4, 64, 1)),
    ]  # fmt: skip
    best, given = (cusim.predict(p, machine, plan) for p, plan in ((found.program, found.plan), planned("stream")))
    assert isinstance(best, cusim.Prediction)
    assert isinstance(given, cusim.Prediction)
    assert (best.rounds, given.rounds) == (1 + 2, 2 + 3)
    assert best.total_ps < 0.75 * given.total_ps


@pytest.mark.parametrize(("machine_name", "sides"), [("h200", {64, 128, 192, 256}), ("a100", {64, 128, 256})])
def test_sides_of_192_are_for_warpgroups_of_64_rows(machine_name: str, sides: set[int]) -> None:
    kernel = cusim.build_workload("gpt3-mlp", machine_name, m=768).program.kernels[0]
    tiles = {cut.tile[:2] for cut in _cuts(kernel, architecture_of(machine_name))}
    assert {rows for rows, _ in tiles} == {cols for _, cols in tiles} == sides
    assert (256, 256) not in tiles  # no registers, or no shared memory


def test_the_order_that_was_given_is_tried_too(machine: Machine) -> None:
    """Of one kernel of measured time only the order is free, and it stays as it is where none is faster."""
    program, _ = planned("stream", 512)
    up = replace(program.kernels[0], cost=Measured(280_000_000, "h200", program.kernels[0].gemm))
    column = cusim.build_plan(program, policy="stream", order="column")
    found = strongest_stream(replace(program, kernels=(up, program.kernels[1])), machine, None, column)
    assert found.program.kernels == (up, program.kernels[1])
    assert dict(found.fixed) == {"up": "measured at this tile", "down": _UNKNOWN}
    assert found.candidates == 2 * (len(ORDERS) + 1)


def test_a_kernel_that_is_no_gemm_is_left_alone(machine: Machine) -> None:
    text = """
schema = "cusim.program/1"
[[kernel]]
name = "copy"
grid = [6, 48]
tile_bytes = 196608
block = { threads = 256, registers = 32, shared_kib = 0 }
"""
    program = parse_program(text, "copy.toml", "copy")
    found = strongest_stream(program, machine, architecture_of("h200"))
    assert (found.program, found.predicted, dict(found.fixed)) == (program, 0, {"copy": "no GEMM"})


def test_a_plan_that_hangs_without_its_delays_has_no_parts(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """On one SM only the time that an event takes keeps the consumer's blocks behind the producer's."""
    program, _ = planned("row")
    plan = cusim.build_plan(program, policy="row", launch="none")
    one = cusim.with_overrides(machine, ["machine.sms=1"])

    def without_events(machine: Machine, plan: Plan) -> tuple[Machine, Plan]:
        return replace(machine, launch=replace(machine.launch, event_ps=0)), plan

    assert breakdown(program, one, plan) is not None
    monkeypatch.setattr("cusim.tune.why._CAUSES", (("events", without_events),))
    assert breakdown(program, one, plan) is None


def test_measured_kernels_keep_their_tile(machine: Machine) -> None:
    program, _ = planned("stream")
    up = replace(program.kernels[0], cost=Measured(280_000_000, "h200", program.kernels[0].gemm))
    found = strongest_stream(replace(program, kernels=(up, program.kernels[1])), machine, architecture_of("h200"))
    assert found.program.kernels[0] == up
