"""Faults that the engine once had, each as the smallest run that showed it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cusim.engine.cost import FULL_PIPE, block_cost
from cusim.engine.predict import predict
from cusim.engine.result import Deadlock, Prediction
from cusim.engine.simulate import simulate
from cusim.engine.verdict import SAFE
from cusim.errors import InputError
from cusim.machine import load_machine, with_overrides
from cusim.policies.flags import Flags
from cusim.policies.orders import RowOrder, TableOrder, order_table
from cusim.policies.plan import Plan
from cusim.policies.row import RowPolicy
from cusim.policies.tile import TilePolicy
from cusim.program.buffer import Access
from cusim.program.build import gemm_kernel, tile_kernel, tile_range
from cusim.program.expr import c, r
from cusim.program.kernel import BlockResources, Gemm, Measured, Stream
from cusim.program.program import Program
from tests.engine_programs import cost, fits, grid_kernel, pair, plan, program_of, ran, tiny

H200 = load_machine("h200")
SMALL = BlockResources(256, 32, 40 * 1024)
#: Memory that never binds.
AMPLE = tuple(f"{rate}_bytes_per_s=1000TB/s" for rate in ("hbm", "l2", "l2_link"))


def test_small_copy_kernel_is_not_slowed_in_its_fixed_parts_by_memory():
    """132 blocks of 4 KiB: 0.13 us of HBM. Fixed parts 2.0 + 0.432 + 0.23 us, gap 1.42 us: about 4.2 us, not 11.5."""
    program = program_of(tile_kernel("copy", (132, 1, 1), SMALL, Stream(4096)))
    got = predict(program, H200, Plan())
    b, m = H200.block, 132 * 4096 / H200.rates.hbm_bytes_per_s * 1e12
    serial = H200.launch.gap_ps + b.prologue_ps + b.load_ps + b.epilogue_ps + 4096 / (64 * 1.98e-3) + m + 132 * 485
    assert got.total_ps <= serial * 1.02, (got.total_ps / 1e6, serial / 1e6)


def test_two_blocks_share_the_pipe_only_in_their_main_loops():
    """Two blocks an SM, each prologue 5000 and loop 1000 on a full pipe: 5000 + 2000, not 2 x 6000."""
    program = program_of(grid_kernel("k", (2, 1), block=fits(2)))
    assert ran(program, tiny(1), Plan(), {"k": cost(1000, prologue=5000, pipe=FULL_PIPE)}).total <= 7000


def test_what_if_on_the_machine_a_time_was_measured_on_keeps_the_time_per_round():
    """A time measured on the h200 must not be taken as measured on an h200 with half its SMs."""
    measured = (231_000_000, "h200")
    program = program_of(
        gemm_kernel(
            "up", Gemm(768, 6144, 12288), (128, 256, 64), BlockResources(384, 168, 196 * 1024), measured=measured
        )
    )
    whole = predict(program, H200, Plan()).span_ps  # 144 tiles: 2 rounds
    half = predict(program, with_overrides(H200, ["machine.sms=36"]), Plan()).span_ps  # 4 rounds
    assert half == pytest.approx(2 * whole, rel=0.02)


def test_prologue_runs_before_the_first_load_so_it_hides_under_a_wait():
    """sections.Block: prologue_ps runs from the block's start to its first load; load_ps is one load round trip.
    A consumer that waited longer than its prologue has only the load and its steps left."""
    program = pair((1, 2), 1)
    machine = tiny(
        3,
        "launch.event_ps=1ps",
        "block.prologue_ps=500ps",
        "block.load_ps=80ps",
        "clock_hz=1GHz",
        "sm_l2_bytes_per_clock=1B/clock",
    )
    got = predict(program, machine, plan(program, policy=RowPolicy(), flags=Flags(R=True)))
    kernel = got.trace.tiles["kernel"].tolist().index(1)
    tiles = got.trace.tiles
    block = block_cost(program.kernels[1], machine, order_table(RowOrder(), program.kernels[1].grid), 1)
    after = int(tiles["end"][kernel] - tiles["first_load"][kernel])
    assert int(tiles["wait_total"][kernel]) > 0
    assert after == 80 + 2 * block.step_ps + block.tail_ps


def test_first_load_is_the_first_load_not_the_end_of_the_first_stall():
    program = program_of(grid_kernel("a", (1, 3)), grid_kernel("b", (1, 1), 3, a="a"))
    machine = tiny(2, "launch.wait_value_ps=1ps")
    run = ran(program, machine, plan(program, "wait-value"), {"a": cost(10_000), "b": cost(4000)})
    assert run.of("b", "placed") == [10_000]
    assert run.of("b", "first_load") == [10_000]  # tile 0 and tile 1 are there; only step 2 stalls


def test_first_load_of_a_serial_slice_is_not_its_wait_for_the_slice_before():
    program = program_of(grid_kernel("k", (1, 1), 2, split=2))
    run = ran(program, tiny(2, "sync.visible_ps=40ps"), Plan(), {"k": cost(1000, tail=200)})
    assert run.of("k", "first_load") == [0, 0]


def test_persistent_blocks_that_come_later_still_come():
    """a holds 2 of 4 slots for 10 tiles' time; b is persistent with 4 blocks; after a ends all four must work."""
    program = program_of(grid_kernel("a", (2, 1)), grid_kernel("b", (40, 1)))
    program = Program((program.kernels[0], replace(program.kernels[1], persistent=True)), program.buffers)
    run = ran(program, tiny(4, "launch.event_ps=1ps"), plan(program, deps=()), {"a": cost(10_000), "b": cost(1000)})
    assert set(run.of("b", "sm")) == {0, 1, 2, 3}
    assert run.total <= 16_000  # 20 tiles by 10,001; the other 20 in 5 rounds of 4


def test_independent_chains_can_hang_each_other():
    """a>c and b>d: c and d together fill the slots that a and b need; each alone leaves half of them."""
    program = program_of(
        grid_kernel("a", (1, 6)),
        grid_kernel("b", (1, 6)),
        grid_kernel("c", (1, 2), 6, a="a"),
        grid_kernel("d", (1, 2), 6, a="b"),
    )
    machine = tiny(4, "launch.event_ps=1ps")
    chosen = Plan(sync={"a>c": TilePolicy(), "b>d": TilePolicy()}, launch="none")
    got = predict(program, machine, chosen, dispatch="adversarial")
    assert isinstance(got, Deadlock)
    assert got.verdict.status != SAFE


def test_unequal_consumers_together_shut_out_a_large_producer():
    """One SM of 8 warps; a needs 6, b takes 2, c takes 1: b and c leave 5."""
    blocks = [BlockResources(32 * w, 16, 1024) for w in (6, 2, 1)]
    program = program_of(
        grid_kernel("a", (1, 1), block=blocks[0]),
        grid_kernel("b", (1, 1), 1, a="a", block=blocks[1]),
        grid_kernel("c", (1, 1), 1, a="a", block=blocks[2]),
    )
    machine = tiny(1, "warps_per_sm=8", "threads_per_sm=256", "threads_per_block=256", "launch.gap_ps=1ps")
    got = predict(program, machine, plan(program, deps=("a>b", "a>c")), dispatch="adversarial")
    assert isinstance(got, Deadlock)
    assert got.verdict.status != SAFE


def test_a_slice_handed_out_early_and_a_consumer_fill_the_slots_together():
    program = program_of(grid_kernel("a", (1, 1), 2, split=2), grid_kernel("b", (1, 3), 1, a="a"))
    machine = tiny(4, "launch.gap_ps=1ps")
    chosen = Plan(sync={"a>b": TilePolicy()}, order={"a": TableOrder(((0, 0, 1), (0, 0, 0)))}, launch="none")
    got = predict(program, machine, chosen, dispatch="adversarial")
    assert isinstance(got, Deadlock)
    assert got.verdict.status != SAFE


def test_the_cycle_of_a_slice_names_the_slice_that_is_missing():
    program = program_of(grid_kernel("k", (2, 1), 2, split=2))
    got = predict(program, tiny(2), Plan(order={"k": TableOrder(((0, 0, 1), (1, 0, 1), (0, 0, 0), (1, 0, 0)))}))
    assert isinstance(got, Deadlock)
    assert any("k tile (0, 0, 0)" in link for link in got.cycle), got.cycle


def reader(at_k, steps, split=1):
    up = tile_kernel("a", (1, 1, 1), fits(1), Stream(64))
    need = Access("a", tile_range(r, 1), tile_range(c, 1), "r", at_k)
    down = tile_kernel("b", (1, 1, split), fits(1), Stream(64), needs=(need,), steps=steps)
    return program_of(up, down)


def test_a_read_placed_after_the_last_step_is_still_waited_for():
    """policies.semaphores: such a read 'happens before the tile ends'."""
    program = reader(1, 1)
    run = ran(program, tiny(3, "launch.event_ps=1ps"), plan(program), {"a": cost(10_000), "b": cost(1000)})
    assert run.of("b", "left")[0] >= 10_000


def test_a_read_placed_after_the_last_step_of_a_slice_does_not_crash():
    program = reader(1, 2, split=2)
    run = ran(program, tiny(3, "launch.event_ps=1ps"), plan(program), {"a": cost(10_000), "b": cost(1000)})
    assert min(run.of("b", "left")) >= 10_000


def test_streams_within_the_hardware_queues_share_none():
    """Three streams, eight queues: k11 (stream 2) must not wait for k3 (stream 0) to start."""
    program = program_of(*(grid_kernel(f"k{i}", (1, 1)) for i in range(12)))
    costs = {f"k{i}": cost(100) for i in range(12)} | {"k0": cost(1_000_000)}
    run = ran(program, tiny(16), plan(program, deps=(), streams=3), costs)
    assert run.event("k11", "arrive") < 1000


def test_random_and_adversarial_spread_blocks_as_the_machine_does():
    program = program_of(grid_kernel("k", (4, 1), block=fits(2)))
    for rule in ("random", "adversarial"):
        assert ran(program, tiny(4), Plan(), 1000, rule).of("k", "sm") == [0, 1, 2, 3]


def test_events_that_never_came_are_none_in_a_deadlock():
    program = pair((3, 2), 2)
    got = predict(program, tiny(4, "launch.gap_ps=1ps"), plan(program), dispatch="adversarial")
    assert isinstance(got, Deadlock)
    assert got.trace.events["done"].tolist() == [-1, -1]


def test_a_deadlock_is_dated_by_the_last_block_not_by_a_stale_event():
    """k's later slice stands still at 2000; z then has the pipe to itself and ends at 4000, not at its old event."""
    program = program_of(
        grid_kernel("z", (1, 1), block=fits(8)),
        grid_kernel("k", (1, 1), 2, split=2, block=BlockResources(32, 16, 150 * 1024)),
    )
    chosen = Plan(order={"k": TableOrder(((0, 0, 1), (0, 0, 0)))}, launch="none")
    run = ran(program, tiny(1), chosen, {"z": cost(3000, pipe=FULL_PIPE), "k": cost(1000, pipe=FULL_PIPE)}, stuck=True)
    assert run.finished.unfinished == 2
    assert run.of("z", "left") == [4000]
    assert run.finished.last_ps <= 4000


def test_a_wait_first_consumer_is_released_when_the_block_starts():
    """Placements are 1000 ps apart; b's first block starts 4000 ps after its claim, so c may not come before it."""
    program = program_of(grid_kernel("a", (4, 1)), grid_kernel("b", (2, 1)), grid_kernel("c", (2, 1), 1, a="b"))
    machine = tiny(12, "dispatch.block_ps=1000ps", "launch.event_ps=1ps")
    run = ran(program, machine, plan(program, "wait-value", deps=("b>c",)), 50_000)
    assert run.event("c", "arrive") >= run.event("b", "launch")


def test_a_measured_memory_bound_kernel_takes_its_time():
    """Measured faster than the model's HBM would allow: the measurement must win (or be refused), not be ignored."""
    for us in (12.0, 40.0, 100.0):
        program = program_of(tile_kernel("k", (264, 1, 1), SMALL, Measured(round(us * 1e6), "h200", Stream(1 << 20))))
        got = predict(program, H200, Plan())
        assert got.span_ps == pytest.approx(us * 1e6, abs=10_000), us


def test_measured_gemm_with_many_blocks_an_sm():
    block = BlockResources(128, 64, 40 * 1024)
    for us in (60.0, 150.0, 300.0, 900.0):
        program = program_of(
            gemm_kernel("up", Gemm(2048, 6144, 4096), (64, 128, 64), block, measured=(round(us * 1e6), "h200"))
        )
        got = predict(program, H200, Plan())
        assert got.span_ps == pytest.approx(us * 1e6, abs=10_000), us


def test_spin_kernels_on_every_sm_are_part_of_the_verdict():
    """Blocks that take whole SMs: the wait-kernel of c sits where b's only SM is."""
    whole = BlockResources(1024, 64, 0)
    program = program_of(
        *(grid_kernel(n, (1, 1), 1, a=p, block=whole) for n, p in (("a", None), ("b", "a"), ("c", "b")))
    )
    for launch in ("wait-first", "wait-all"):
        got = predict(program, tiny(1, "launch.event_ps=1ps"), plan(program, launch, deps=("a>b", "b>c")))
        assert isinstance(got, Prediction) or got.verdict.status not in (SAFE, "safe if arrival order holds"), launch


def test_a_stall_pays_for_the_other_operand_once():
    program = pair((1, 2), 1, stages=4)
    machine = tiny(3, "launch.event_ps=1ps", "block.load_ps=800ps")
    left = {}
    for flags in (Flags(R=True), Flags()):
        run = ran(
            program, machine, plan(program, policy=RowPolicy(), flags=flags), {"a": cost(10_000), "b": cost(1000)}
        )
        left[str(flags)] = run.of("b", "left")[0]
    assert left["-"] - left["R"] == 200


def test_flag_t_means_block_order():
    """flags.py: T = blocks take the tile of their block index."""
    from cusim.policies.orders import ColumnOrder

    program = pair((3, 2), 2)
    chosen = Plan(sync={"a>b": TilePolicy()}, order={"a": ColumnOrder()}, flags={"a": Flags(T=True)}, launch="none")
    try:
        run = ran(program, tiny(4, "launch.event_ps=1ps"), chosen, 1000)
    except InputError:
        return
    assert run.of("a", "r")[:3] == [0, 0, 1]


def test_first_load_of_a_tile_with_two_producers_is_not_before_either():
    """Two stalls at step 0: the end of the first is taken for the first load of both operands' tiles."""
    both = grid_kernel("x", (1, 1), 1, a="b")[0].reads[0]
    program = program_of(
        grid_kernel("a", (1, 1)), grid_kernel("b", (1, 1)), grid_kernel("c", (1, 1), 1, a="a", needs=(both,))
    )
    run = ran(
        program,
        tiny(3, "launch.event_ps=1ps"),
        plan(program, deps=("a>c", "b>c")),
        {"a": cost(1000), "b": cost(5000), "c": cost(10)},
    )
    assert run.of("c", "first_load")[0] >= run.of("b", "left")[0]


def test_bench_imports_and_builds():
    from cusim.engine import bench

    bench.chain(1000, bench.WIDE)


def test_a_consumer_never_queues_ahead_of_the_producer_that_released_it():
    """wait_kernel_ps=0: producer and consumer arrive at one instant, and the seed may put the consumer ahead."""
    program = program_of(grid_kernel("a", (1, 2)), grid_kernel("b", (1, 1), 2, a="a"))
    for launch in ("wait-first", "wait-value"):
        for seed in range(8):
            got = predict(program, tiny(1), plan(program, launch), seed=seed)
            assert isinstance(got, Prediction), (launch, seed)


def test_the_pipe_of_an_sm_is_used_in_full_by_paired_gemms():
    """Two 8-warp blocks an SM, memory aside: a full round takes its pipe time, one prologue and one tail."""
    block = BlockResources(256, 128, 98 * 1024)
    program = program_of(gemm_kernel("k", Gemm(11 * 128, 24 * 128, 1024), (128, 128, 64), block))
    kernel = program.kernels[0]
    machine = with_overrides(H200, [*AMPLE, "clock_droop=0", "contention_sharpness=1000"])
    part = block_cost(kernel, machine, order_table(RowOrder(), kernel.grid), 2)
    (run,) = simulate(program, machine, Plan(), {}).setup.runs
    span = run.done_ps - run.placed[0]
    loops = max(2 * part.pipe_load / FULL_PIPE, 1) * kernel.steps * part.step_ps
    assert span <= (part.prologue_ps + loops + part.tail_ps) * 1.01, (span, part.prologue_ps + loops + part.tail_ps)


@pytest.mark.parametrize("share", [1.0, 0.8])
def test_no_power_budget_counts_the_pipe_of_an_sm_twice(share):
    """Two blocks an SM, each of which fills the pipe alone: the pipe is busy for the loops' time, not for more."""
    block = BlockResources(256, 128, 98 * 1024)
    program = program_of(gemm_kernel("k", Gemm(11 * 128, 24 * 128, 4096), (128, 128, 64), block))
    machine = with_overrides(H200, [*AMPLE, "clock_droop=0", "contention_sharpness=1000", f"sustained_share={share}"])
    free = simulate(program, machine, Plan(), {}).total_ps
    got = predict(program, machine, Plan()).total_ps
    assert got == free if share == 1 else free < got <= free / share * 1.01
