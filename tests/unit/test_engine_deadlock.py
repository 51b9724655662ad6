"""Deadlocks: found when a run stops, named tile by tile, and judged before anything runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cusim.engine.predict import predict
from cusim.engine.result import Deadlock, Prediction
from cusim.engine.setup import slots_of
from cusim.engine.verdict import CAN_DEADLOCK, IF_ARRIVAL, SAFE, verdict
from cusim.machine.machine import Machine
from cusim.policies.flags import Flags
from cusim.policies.orders import ColumnOrder, RowOrder, TableOrder
from cusim.policies.plan import Plan
from cusim.program.program import Program
from tests.engine_programs import POLICIES, fits, grid_kernel, pair, plan, program_of, tiny


def status(program: Program, chosen: Plan, machine: Machine) -> str:
    return verdict(program, chosen, machine, slots_of(program, machine)).status


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize("dispatch", ["adversarial", "arrival"])
def test_a_consumer_that_comes_first_and_fills_the_gpu_hangs_it(policy: object, dispatch: str) -> None:
    program = pair((3, 2), 2)
    machine = tiny(4, "launch.gap_ps=1ps")  # the consumer's stream starts a picosecond earlier
    result = predict(program, machine, plan(program, "none", policy), dispatch=dispatch)
    assert isinstance(result, Deadlock)
    assert result.unfinished_blocks == 12
    assert result.trace.tiles["kernel"].tolist() == [1] * 4  # the blocks that stand in the slots, and no other
    assert result.trace.events["done"].tolist() == [-1, -1]
    assert result.verdict.status == CAN_DEADLOCK
    links = " / ".join(result.cycle)
    assert "b tile (0, 0) on SM 0 waits for semaphore 0 of a>b" in links
    assert "a tile (0, 0) should post it and waits for a slot" in links
    assert "held by one of 4 waiting blocks" in links


@pytest.mark.parametrize(("columns", "hangs"), [(1, False), (2, True)])
def test_one_slot_that_the_consumer_leaves_is_enough(columns: int, hangs: bool) -> None:
    """Three consumer tiles leave one of four SMs free; six do not."""
    program = pair((3, 5), columns)
    machine = tiny(4, "launch.gap_ps=1ps")
    result = predict(program, machine, plan(program, "none"), dispatch="adversarial")
    assert isinstance(result, Deadlock) is hangs
    assert result.verdict.status == (CAN_DEADLOCK if hangs else SAFE)


def test_a_slot_that_is_too_small_for_the_producer_is_none() -> None:
    """One of two SMs stays half free, but a's blocks need more than half."""
    program = program_of(grid_kernel("a", (3, 1)), grid_kernel("b", (3, 1), 1, a="a", block=fits(2)))
    machine = tiny(2, "launch.gap_ps=1ps")
    assert isinstance(predict(program, machine, plan(program), dispatch="adversarial"), Deadlock)
    assert status(program, plan(program), machine) == CAN_DEADLOCK
    small = pair((3, 1), 1, block=fits(2))
    assert isinstance(predict(small, machine, plan(small), dispatch="adversarial"), Prediction)
    assert status(small, plan(small), machine) == SAFE


def backwards(rows: int, cols: int) -> TableOrder:
    return TableOrder(tuple((r, c, 0) for r in reversed(range(rows)) for c in reversed(range(cols))))


def test_freed_slots_that_all_go_to_the_consumer_hang_it_half_way() -> None:
    """Two rounds of a: b takes every slot of the first and starts with what the second would make."""
    program = pair((6, 2), 2)
    machine = tiny(4, "launch.event_ps=1ps", "rates.sm_l2_bytes_per_clock=64B/clock")
    chosen = plan(program, "wait-first", order={"b": backwards(6, 2)})
    assert isinstance(predict(program, machine, chosen), Prediction)
    result = predict(program, machine, chosen, dispatch="adversarial")
    assert isinstance(result, Deadlock)
    assert result.verdict.status == IF_ARRIVAL
    assert any("a tile (5, 0) should post it and waits for a slot" in link for link in result.cycle)
    seen = list(zip(*(result.trace.tiles[name].tolist() for name in ("kernel", "r", "c")), strict=True))
    assert seen[:4] == [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1)]  # done
    assert seen[4:] == [(1, 5, 1), (1, 5, 0), (1, 4, 1), (1, 4, 0)]  # standing
    assert result.unfinished_blocks == 24 - 4
    assert result.at_ps == int(result.trace.tiles["end"].max())


@pytest.mark.parametrize("dispatch", ["arrival", "random", "adversarial"])
def test_a_consumer_released_after_the_last_producer_block_cannot_hang(dispatch: str) -> None:
    program = pair((3, 2), 2)
    machine = tiny(4, "launch.event_ps=1ps")
    for seed in range(5):
        result = predict(program, machine, plan(program, "wait-all"), dispatch=dispatch, seed=seed)
        assert isinstance(result, Prediction)
        assert result.verdict.status == SAFE


@pytest.mark.parametrize("dispatch", ["arrival", "random", "adversarial"])
def test_stream_order_cannot_hang(dispatch: str) -> None:
    result = predict(pair((3, 2), 2), tiny(1), Plan(), dispatch=dispatch)
    assert isinstance(result, Prediction)
    assert result.verdict.status == SAFE


@pytest.mark.parametrize("dispatch", ["arrival", "random", "adversarial"])
def test_flag_t_of_a_pure_producer_never_hangs(dispatch: str) -> None:
    program = pair((3, 2), 1)
    chosen = plan(program, "wait-all")
    flagged = Plan(sync=chosen.sync, flags={"a": Flags(T=True)}, launch="wait-all")
    assert isinstance(predict(program, tiny(2, "launch.event_ps=1ps"), flagged, dispatch=dispatch), Prediction)
    assert status(program, flagged, tiny(2)) == status(program, chosen, tiny(2))


def test_flag_w_makes_a_held_consumer_dangerous() -> None:
    program = pair((3, 2), 2)
    machine = tiny(4, "launch.gap_ps=1ps")
    chosen = plan(program, "wait-all", flags=Flags(W=True))
    assert isinstance(predict(program, machine, chosen, dispatch="adversarial"), Deadlock)
    assert status(program, chosen, machine) == CAN_DEADLOCK


def test_two_consumers_that_each_leave_a_slot_can_fill_them_together() -> None:
    program = program_of(
        grid_kernel("a", (2, 1)), grid_kernel("b", (2, 1), 1, a="a"), grid_kernel("c", (2, 1), 1, a="a")
    )
    machine = tiny(4, "launch.gap_ps=1ps")
    chosen = plan(program, deps=("a>b", "a>c"))
    assert isinstance(predict(program, machine, chosen, dispatch="adversarial"), Deadlock)
    assert status(program, chosen, machine) == CAN_DEADLOCK
    assert isinstance(predict(program, tiny(5, "launch.gap_ps=1ps"), chosen, dispatch="adversarial"), Prediction)
    assert status(program, chosen, tiny(5)) == SAFE


def test_the_end_of_a_chain_can_fill_the_slots_of_its_beginning() -> None:
    program = program_of(
        grid_kernel("a", (1, 2)), grid_kernel("b", (1, 1), 2, a="a"), grid_kernel("c", (1, 4), 1, a="b")
    )
    machine = tiny(4, "launch.gap_ps=1ps")
    chosen = plan(program, deps=("a>b", "b>c"))
    result = predict(program, machine, chosen, dispatch="adversarial")
    assert isinstance(result, Deadlock)
    assert result.verdict.status == CAN_DEADLOCK
    assert result.cycle[0].startswith("b tile (0, 0) on SM 0 waits for semaphore 0 of a>b")
    assert isinstance(predict(program, tiny(5, "launch.gap_ps=1ps"), chosen, dispatch="adversarial"), Deadlock)
    assert isinstance(predict(program, tiny(6, "launch.gap_ps=1ps"), chosen, dispatch="adversarial"), Prediction)


def test_middle_and_end_of_a_chain_can_shut_its_beginning_out_together() -> None:
    """Two tiles of b and two of c: neither fills four SMs alone."""
    program = program_of(
        grid_kernel("a", (1, 2)), grid_kernel("b", (1, 2), 2, a="a"), grid_kernel("c", (1, 2), 2, a="b")
    )
    chosen = plan(program, deps=("a>b", "b>c"))
    result = predict(program, tiny(4, "launch.gap_ps=1ps"), chosen, dispatch="adversarial")
    assert isinstance(result, Deadlock)
    assert result.verdict.status == CAN_DEADLOCK
    assert isinstance(predict(program, tiny(5, "launch.gap_ps=1ps"), chosen, dispatch="adversarial"), Prediction)
    assert status(program, chosen, tiny(5)) == SAFE


@pytest.mark.parametrize(("blocks", "hangs"), [(3, False), (4, True)])
def test_persistent_consumers_hang_like_any_others(blocks: int, hangs: bool) -> None:
    """A persistent kernel has as many blocks as slots, or tiles if they are fewer."""
    program = pair((blocks, 3), 1)
    looping = Program((program.kernels[0], replace(program.kernels[1], persistent=True)), program.buffers)
    machine = tiny(4, "launch.gap_ps=1ps")
    result = predict(looping, machine, plan(looping), dispatch="adversarial")
    assert isinstance(result, Deadlock) is hangs
    assert result.verdict.status == (CAN_DEADLOCK if hangs else SAFE)


def test_an_order_that_hands_out_a_later_slice_first_hangs_where_it_fills_the_slots() -> None:
    program = program_of(grid_kernel("k", (2, 1), 2, split=2))
    chosen = Plan(order={"k": TableOrder(((0, 0, 1), (1, 0, 1), (0, 0, 0), (1, 0, 0)))})
    result = predict(program, tiny(2), chosen)
    assert isinstance(result, Deadlock)
    assert result.verdict.status == CAN_DEADLOCK
    links = " / ".join(result.cycle)
    assert "k tile (0, 0, 1) on SM 0 waits for semaphore 0 of k slices" in links
    for safe in (predict(program, tiny(3), chosen), predict(program, tiny(4), chosen)):
        assert isinstance(safe, Prediction)
    assert status(program, chosen, tiny(4)) == SAFE
    for order in (RowOrder(), ColumnOrder()):
        assert status(program, Plan(order={"k": order}), tiny(1)) == SAFE
        assert isinstance(predict(program, tiny(1), Plan(order={"k": order})), Prediction)


def test_slices_added_up_by_the_last_to_arrive_hang_in_no_order() -> None:
    program = program_of(grid_kernel("k", (2, 1), 2, split=2, reduce="last_arriver"))
    chosen = Plan(order={"k": TableOrder(((0, 0, 1), (1, 0, 1), (0, 0, 0), (1, 0, 0)))})
    assert isinstance(predict(program, tiny(1), chosen), Prediction)
    assert status(program, chosen, tiny(1)) == SAFE
