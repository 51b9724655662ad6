"""Parts of a cost, a slot or a wait that nothing else would miss: each test fails where its part is left out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cusim.engine.cost import ACTIVATION_FLOPS, block_cost
from cusim.engine.predict import predict
from cusim.engine.result import Deadlock
from cusim.engine.setup import slots_of
from cusim.engine.verdict import CAN_DEADLOCK, verdict
from cusim.machine import load_machine, occupancy, why_no_block, with_overrides
from cusim.policies.flags import Flags
from cusim.policies.orders import RowOrder, order_table
from cusim.policies.plan import Plan
from cusim.program.buffer import Access
from cusim.program.build import gemm_kernel, tile_kernel, tile_range
from cusim.program.depends import dependences, needed_tiles
from cusim.program.expr import as_expr, r
from cusim.program.kernel import BlockResources, Gemm, Kernel, Stream
from tests.engine_programs import cost, fits, grid_kernel, pair, plan, program_of, ran, tiny

BLOCK = BlockResources(256, 128, 64 * 1024)
#: One byte and one CUDA-core operation a nanosecond an SM.
SLOW = ("clock_hz=1GHz", "sm_l2_bytes_per_clock=1B/clock", "fp32_flops_per_clock_sm=1flop/clock")


def gemm(m: int, n: int, k: int, tile: tuple[int, int, int], **kinds: object) -> Kernel:
    return gemm_kernel("g", Gemm(m, n, k, **kinds), tile, BLOCK)[0]  # type: ignore[arg-type]


def test_the_first_half_of_swiglus_operand_ends_where_the_second_begins() -> None:
    """k = 10 in steps of 4: the third step reads columns 8 and 9, not the second half's 10 and 11."""
    up = gemm_kernel("up", Gemm(4, 20, 4), (4, 2, 4), BLOCK)
    down = gemm_kernel("down", Gemm(4, 4, 10, prologue="swiglu"), (4, 4, 4), BLOCK, a="up")
    first, second = (tuple(bound.eval(k=2) for bound in read.cols) for read in down[0].reads[:2])
    assert (first, second[0]) == ((8, 10), 18)
    (dep,) = dependences(program_of(up, (replace(down[0], steps=1), down[1])))
    assert needed_tiles(dep, 0, 0, 0) == {(0, 0), (0, 1), (0, 5), (0, 6)}
    (whole,) = dependences(program_of(up, down))
    span = whole.spans[0]
    assert [(int(span.c_lo.eval(k=step)), int(span.c_hi.eval(k=step))) for step in range(3)] == [(0, 2), (2, 4), (4, 5)]


@pytest.mark.parametrize(("prologue", "halves"), [("none", 1), ("swiglu", 2)])
def test_a_step_of_swiglu_loads_both_halves_of_operand_a(prologue: str, halves: int) -> None:
    machine = load_machine("h200")
    kernel = gemm(256, 256, 1024, (128, 64, 32), prologue=prologue)
    block = block_cost(kernel, machine, order_table(RowOrder(), kernel.grid), 1)
    loaded = block.l2_bytes_per_s * block.step_ps / 1e12
    assert loaded == pytest.approx((halves * 128 + 64) * 32 * 2, rel=1e-6)


def test_the_tail_of_a_gemm_stores_its_tile_and_applies_its_epilogue() -> None:
    machine = tiny(4, *SLOW, "sm_store_bytes_per_clock=1B/clock", "block.epilogue_ps=7ps")
    table = order_table(RowOrder(), (1, 1, 1))
    plain, gelu = (
        block_cost(gemm(16, 8, 4, (16, 8, 4), epilogue=epilogue), machine, table, 1).tail_ps
        for epilogue in ("none", "gelu")
    )
    assert plain == 7 + 16 * 8 * 2 * 1000
    assert gelu == plain + ACTIVATION_FLOPS * 16 * 8 * 1000


def test_the_last_slice_of_a_serial_split_is_charged_the_steps_that_it_has() -> None:
    """Seven steps in three slices: 3, 3 and 1, one after the other through one slot."""
    program = program_of(grid_kernel("k", (1, 1), 7, split=3))
    assert ran(program, tiny(1), Plan(), {"k": cost(1000, tail=10)}).total == 7 * 1000 + 3 * 10


def test_waits_of_several_dependences_bite_in_the_order_of_their_steps() -> None:
    """c reads b from its first step on and a, issued before b, only before its third: it stands still for b first."""
    late = Access("a", tile_range(r, 1), (as_expr(0), as_expr(1)), "r", at_k=2)
    program = program_of(
        grid_kernel("a", (1, 1)), grid_kernel("b", (1, 4)), grid_kernel("c", (1, 1), 4, a="b", needs=(late,))
    )
    chosen = plan(program, deps=("a>c", "b>c"))
    costs = {"a": cost(10), "b": cost(10_000), "c": cost(1000)}
    run = ran(program, tiny(6, "launch.event_ps=1ps"), chosen, costs)
    assert run.of("c", "first_load") == [max(run.of("b", "left"))]
    assert run.of("c", "left") == [max(run.of("b", "left")) + 4000]
    assert run.of("c", "wait_total") == [max(run.of("b", "left")) - run.of("c", "placed")[0]]


def test_a_kernel_two_steps_downstream_can_shut_the_first_one_out_alone() -> None:
    """c leaves room for b's small block beside its own, but none for a's, which b waits for."""
    program = program_of(
        grid_kernel("a", (1, 1), block=fits(1)),
        grid_kernel("b", (1, 1), 1, a="a", block=fits(8)),
        grid_kernel("c", (1, 2), 1, a="b", block=fits(2)),
    )
    chosen = plan(program, deps=("a>b", "b>c"))
    machine = tiny(2, "launch.gap_ps=1ps")
    assert verdict(program, chosen, machine, slots_of(program, machine)).status == CAN_DEADLOCK
    result = predict(program, machine, chosen, dispatch="adversarial")
    assert isinstance(result, Deadlock)


def test_the_launch_check_counts_a_blocks_warps_by_whole_partitions() -> None:
    """25 warps of 80 x 32 registers would be 64000, but four partitions make 28 of them: 71680."""
    h200 = load_machine("h200")
    assert occupancy(h200, 800, 80, 0).blocks_per_sm == 0
    assert "71680 registers once rounded, H200 allows 65536" in (why_no_block(h200, 800, 80, 0) or "")
    # Where a block may have fewer registers than an SM, the check alone decides: 5 warps of 192 x 32 count as 8.
    half = with_overrides(h200, ["limits.registers_per_block=32768"])
    assert 5 * 192 * 32 <= 32768 < 8 * 192 * 32
    assert occupancy(half, 160, 192, 0).blocks_per_sm == 0
    assert occupancy(h200, 160, 192, 0).blocks_per_sm == 1


def test_a_persistent_kernel_has_no_more_blocks_than_slots() -> None:
    """Once its one block stands, the kernel behind it is placed beside it, not after most of its eight tiles."""
    looping, buffers = grid_kernel("a", (8, 1), block=BlockResources(1024, 32, 0))
    small = tile_kernel("b", (1, 1, 1), BlockResources(32, 16, 0), Stream(1))
    machine = tiny(1, "limits.warps_per_sm=33", "launch.event_ps=5ps")
    placed = {}
    for persistent in (True, False):
        program = program_of((replace(looping, persistent=persistent), buffers), small)
        run = ran(program, machine, plan(program, deps=()), 1000)
        placed[persistent] = run.of("b", "placed")[0]
        assert max(run.of("a", "left")) == 8 * 1000
    assert placed == {True: 5, False: 7000}


@pytest.mark.parametrize(("flags", "behind"), [(Flags(), 200), (Flags(R=True), 0)], ids=str)
def test_without_r_each_wait_costs_a_load_of_the_other_operand(flags: Flags, behind: int) -> None:
    """Four loads of 800 ps are in flight, so a wait takes 200 more; two waits, satisfied before the block starts."""
    program = pair((1, 2), 1, stages=4)
    machine = tiny(4, "launch.event_ps=30000ps", "sync.satisfied_ps=20ps", "block.load_ps=800ps")
    run = ran(program, machine, plan(program, flags=flags), {"a": cost(10_000), "b": cost(1000, prologue=800)})
    assert run.of("b", "wait_total") == [0]
    assert run.of("b", "left")[0] - run.of("b", "placed")[0] == 800 + 2 * 1000 + 2 * (20 + behind)
