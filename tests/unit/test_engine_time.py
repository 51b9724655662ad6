"""The engine's clock against closed forms: rounds, gaps, a shared tensor pipe and a shared memory."""

from __future__ import annotations

import math

import pytest

from cusim.engine.cost import FULL_PIPE
from cusim.engine.predict import predict
from cusim.engine.result import Prediction
from cusim.policies.base import SyncPolicy
from cusim.policies.flags import Flags
from cusim.policies.plan import Plan
from cusim.program.build import tile_kernel
from cusim.program.kernel import Stream
from tests.engine_programs import POLICIES, cost, fits, grid_kernel, pair, plan, program_of, ran, tiny

TILE = 1_000_000


@pytest.mark.parametrize("grids", [[(3, 2)], [(3, 2), (3, 3)], [(1, 1), (5, 7), (2, 4)], [(4, 1), (4, 2)]], ids=str)
@pytest.mark.parametrize(("sms", "per_sm"), [(4, 1), (3, 2), (1, 3)])
def test_stream_order_takes_the_sum_of_whole_rounds(grids: list[tuple[int, int]], sms: int, per_sm: int) -> None:
    program = program_of(*(grid_kernel(f"k{i}", grid, block=fits(per_sm)) for i, grid in enumerate(grids)))
    rounds = [math.ceil(rows * cols / (sms * per_sm)) for rows, cols in grids]
    assert ran(program, tiny(sms), Plan(), TILE).total == sum(rounds) * TILE


@pytest.mark.parametrize("gap", [0, 1, 777_777])
def test_every_kernel_of_a_stream_pays_the_gap_once(gap: int) -> None:
    program = program_of(*(grid_kernel(f"k{i}", (2, 3)) for i in range(3)))
    run = ran(program, tiny(4, f"launch.gap_ps={gap}ps"), Plan(), TILE)
    assert run.total == 3 * (gap + 2 * TILE)
    assert [run.event(f"k{i}", "arrive") for i in range(3)] == [gap + i * (gap + 2 * TILE) for i in range(3)]


def test_unequal_kernels_in_stream_order_each_take_their_own_rounds() -> None:
    program = program_of(grid_kernel("k0", (5, 1)), grid_kernel("k1", (3, 1)), grid_kernel("k2", (9, 1)))
    times = {"k0": cost(700), "k1": cost(1100), "k2": cost(13)}
    assert ran(program, tiny(4), Plan(), times).total == 2 * 700 + 1 * 1100 + 3 * 13


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize(("first", "cols", "sms"), [((3, 2), 2, 4), ((4, 2), 3, 4), ((6, 2), 2, 4), ((9, 3), 2, 5)])
def test_overlapped_kernels_that_never_stall_share_their_last_round(
    first: tuple[int, int], cols: int, sms: int, policy: SyncPolicy
) -> None:
    program = pair(first, cols)
    machine = tiny(sms, "launch.wait_value_ps=1ps")
    steps = first[1]
    times = {"a": cost(TILE), "b": cost(TILE // steps, tail=TILE % steps)}
    run = ran(program, machine, plan(program, "wait-value", policy), times)
    tiles = first[0] * (first[1] + cols)
    assert run.trace.tiles["wait_total"].sum() == 0
    assert run.total == math.ceil(tiles / sms) * TILE


@pytest.mark.parametrize(("gap", "event", "join"), [(0, 5000, 5000), (2000, 5000, 3000), (5000, 2000, 0)])
def test_the_end_event_joins_other_streams_by_what_an_event_takes_beyond_a_gap(gap: int, event: int, join: int) -> None:
    program = pair((2, 1), 1)
    machine = tiny(4, f"launch.event_ps={event}ps", f"launch.gap_ps={gap}ps")
    run = ran(program, machine, plan(program), TILE)
    assert (run.event("a", "arrive"), run.event("b", "arrive")) == (gap, event)
    assert run.event("b", "done") == gap + 2 * TILE
    assert run.total == gap + 2 * TILE + join


def test_a_block_is_its_prologue_its_steps_and_its_tail() -> None:
    program = program_of(grid_kernel("k", (2, 2), 7))
    run = ran(program, tiny(4), Plan(), {"k": cost(1000, prologue=30, tail=4)})
    assert [end - start for start, end in zip(run.of("k", "placed"), run.of("k", "left"), strict=True)] == [7034] * 4


def test_the_last_slice_of_a_split_may_have_fewer_steps() -> None:
    program = program_of(grid_kernel("k", (1, 1), 7, split=3, reduce="last_arriver"))
    run = ran(program, tiny(1), Plan(), {"k": cost(1000)})
    took = [end - start for start, end in zip(run.of("k", "placed"), run.of("k", "left"), strict=True)]
    assert took[:2] == [3000, 3000]
    assert 1000 <= took[2] < 2000  # one step, and what the last slice to arrive adds up
    assert run.of("k", "z") == [0, 1, 2]


@pytest.mark.parametrize("load", [0, FULL_PIPE // 2])
def test_blocks_that_leave_the_pipe_room_do_not_slow_each_other(load: int) -> None:
    program = program_of(grid_kernel("k", (2, 4), block=fits(2)))
    assert ran(program, tiny(1), Plan(), {"k": cost(TILE, pipe=load)}).total == 4 * TILE


@pytest.mark.parametrize(("load", "per_sm", "slow"), [(600_000, 2, 1.2), (FULL_PIPE, 2, 2), (500_000, 3, 1.5)])
def test_full_rounds_on_a_shared_pipe_take_as_long_as_the_pipe_needs(load: int, per_sm: int, slow: float) -> None:
    program = program_of(grid_kernel("k", (4, 2 * per_sm), block=fits(per_sm)))
    run = ran(program, tiny(2), Plan(), {"k": cost(TILE, pipe=load)})
    assert run.total == round(4 * slow * TILE)
    work = 8 * per_sm * TILE * load // FULL_PIPE
    assert run.total == work / 2  # the pipes of two SMs never idle


def test_a_lone_block_of_a_partial_round_runs_at_full_speed() -> None:
    program = program_of(grid_kernel("k", (5, 1), block=fits(2)))
    run = ran(program, tiny(2), Plan(), {"k": cost(TILE, pipe=600_000)})
    assert run.of("k", "left") == [1_200_000] * 4 + [2_200_000]


def test_blocks_that_meet_half_way_settle_what_each_had_done() -> None:
    """One SM: b joins a after 400; both run at 1 / 1.2 until a ends at 1120, then b's last 400 are alone."""
    program = program_of(grid_kernel("a", (1, 1), block=fits(2)), grid_kernel("b", (1, 1), block=fits(2)))
    costs = {name: cost(1000, pipe=600_000) for name in "ab"}
    run = ran(program, tiny(1, "launch.event_ps=400ps"), plan(program, deps=()), costs)
    assert (run.of("a", "placed"), run.of("a", "left")) == ([0], [1120])
    assert (run.of("b", "placed"), run.of("b", "left")) == ([400], [1520])


def test_a_waiting_block_leaves_the_pipe_to_its_neighbour() -> None:
    """b waits for a on the same SM from its start: a is never slowed, and b then has the pipe to itself."""
    program = pair((1, 1), 1, block=fits(2))
    costs = {name: cost(1000, pipe=FULL_PIPE) for name in "ab"}
    run = ran(program, tiny(1, "launch.event_ps=1ps"), plan(program), costs)
    assert run.of("a", "left") == [1000]
    assert run.of("b", "left") == [2000]
    assert run.of("b", "wait_total") == [999]


@pytest.mark.parametrize("which", ["hbm", "l2", "link"])
def test_full_rounds_that_memory_binds_move_their_bytes_at_its_bandwidth(which: str) -> None:
    """Eight blocks at a time ask for twice the bandwidth; 24 of them take their bytes / bandwidth."""
    rate = 8 * 10**12
    machine = tiny(4, "hbm_bytes_per_s=8TB/s", "l2_bytes_per_s=8TB/s", "l2_link_bytes_per_s=8TB/s")
    program = program_of(grid_kernel("k", (4, 6), block=fits(2)))
    block = cost(TILE, **{which: 2 * 10**12})
    moved = 24 * 2 * 10**12 * TILE // 10**12
    run = ran(program, machine, Plan(), {"k": block})
    assert run.total == moved * 10**12 // rate == 6 * TILE


def test_the_tighter_of_the_two_memories_binds() -> None:
    machine = tiny(4, "hbm_bytes_per_s=4TB/s", "l2_bytes_per_s=8TB/s")
    program = program_of(grid_kernel("k", (4, 1)))
    block = cost(TILE, l2=4 * 10**12, hbm=3 * 10**12)  # twice what L2 delivers, three times what HBM does
    assert ran(program, machine, Plan(), {"k": block}).total == 3 * TILE


def test_a_partial_round_runs_faster_where_memory_binds() -> None:
    machine = tiny(4, "hbm_bytes_per_s=2TB/s")
    program = program_of(grid_kernel("k", (6, 1)))
    run = ran(program, machine, Plan(), {"k": cost(TILE, hbm=10**12)})
    assert run.total == 2 * TILE + TILE  # four ask for twice the bandwidth, the last two for just all of it


def test_memory_speed_follows_the_working_mix_exactly() -> None:
    """b joins after 400 at twice the draw, so both run at 1/2 until a has done its other 600."""
    machine = tiny(2, "hbm_bytes_per_s=1TB/s", "launch.event_ps=400ps")
    program = program_of(grid_kernel("a", (1, 1)), grid_kernel("b", (1, 1)))
    run = ran(program, machine, plan(program, deps=()), {name: cost(1000, hbm=10**12) for name in "ab"})
    assert run.of("a", "left") == [400 + 1200]
    assert run.of("b", "left") == [400 + 1200 + 400]


def test_a_waiting_block_draws_no_memory() -> None:
    machine = tiny(2, "hbm_bytes_per_s=1TB/s", "launch.event_ps=1ps")
    program = pair((1, 1), 1)
    run = ran(program, machine, plan(program), {name: cost(1000, hbm=10**12) for name in "ab"})
    assert run.of("a", "left") == [1000]
    assert run.of("b", "left") == [2000]


def test_a_copy_kernel_takes_its_bytes_over_the_port_or_over_hbm() -> None:
    clock = ("clock_hz=1GHz", "sm_l2_bytes_per_clock=1B/clock", "l2_bytes_per_s=1000TB/s")
    program = program_of(tile_kernel("copy", (8, 1, 1), fits(1), Stream(5000)))
    wide = predict(program, tiny(4, *clock, "hbm_bytes_per_s=1TB/s"), Plan())
    assert isinstance(wide, Prediction)
    assert wide.total_ps == 2 * 5000 * 1000  # one byte a nanosecond an SM
    narrow = predict(program, tiny(4, *clock, "hbm_bytes_per_s=2GB/s"), Plan())
    assert isinstance(narrow, Prediction)
    bound = 8 * 5000 * 10**12 // (2 * 10**9)
    assert narrow.total_ps == pytest.approx(bound, rel=0.02)  # half speed, but for the time in which it settles


def test_blocks_start_one_dispatch_spacing_apart() -> None:
    program = program_of(grid_kernel("k", (4, 1)))
    run = ran(program, tiny(4, "dispatch.block_ps=30ps", "launch.gap_ps=100ps"), Plan(), 1000)
    assert run.of("k", "placed") == [100, 130, 160, 190]
    assert run.of("k", "left") == [1100, 1130, 1160, 1190]


def test_flags_cost_nothing_where_nothing_costs() -> None:
    program = pair((3, 2), 2)
    machine = tiny(4, "launch.wait_value_ps=1ps")
    totals = {
        str(flags): ran(program, machine, plan(program, "wait-value", flags=flags), 1000).total
        for flags in (Flags(), Flags(R=True), Flags(T=True), Flags(A=True), Flags(R=True, T=True, A=True))
    }
    assert len(set(totals.values())) == 1, totals
