"""When a consumer reaches the GPU, to the picosecond: launches, wait-kernels, streams, queues and resident grids."""

from __future__ import annotations

from itertools import pairwise

import pytest

from cusim.machine import load_machine, with_overrides
from cusim.policies.flags import Flags
from cusim.policies.orders import ColumnOrder, TableOrder
from cusim.policies.plan import Launch, Plan
from cusim.policies.row import RowPolicy
from cusim.program.kernel import BlockResources
from cusim.program.program import Program
from tests.engine_programs import FREE, cost, fits, grid_kernel, pair, plan, program_of, ran, tiny

TILE = 10_000
COSTS = {"a": cost(TILE), "b": cost(TILE)}
WAITS = ("launch.wait_kernel_ps=70ps", "launch.wait_value_ps=50ps")


ROUNDS = {1: 8, 2: 5}  # SMs on which the eight tiles of the producer below take so many rounds


def wide_producer() -> Program:
    """Eight tiles of ``a``, all read by the one tile of ``b``."""
    return program_of(grid_kernel("a", (1, 8)), grid_kernel("b", (1, 1), 8, a="a"))


@pytest.mark.parametrize(
    ("launch", "rounds", "event", "arrives"),
    [
        ("none", 1, 1500, 1500),  # the event's own delay, whatever the producer does
        ("none", 2, 300, 300),
        ("wait-value", 2, 1500, 1550),  # the later of event and first block, plus what the wait costs
        ("wait-value", 2, 300, 1050),
        ("wait-first", 1, 1500, 1570),
        ("wait-first", 2, 300, 1070),
        ("wait-first", 2, 1500, 11_070),  # the wait-kernel queues behind the producer until its last block is placed
        ("wait-all", 1, 1500, 1570),
        ("wait-all", 1, 300, 1070),
        ("wait-all", 2, 300, 11_070),  # the last block starts a tile after the first
        ("wait-all", 2, 1500, 11_070),
    ],
)
def test_a_consumer_arrives_when_its_launch_lets_it(launch: Launch, rounds: int, event: int, arrives: int) -> None:
    program = wide_producer()
    machine = tiny(ROUNDS[rounds], "launch.gap_ps=1000ps", f"launch.event_ps={event}ps", *WAITS)
    run = ran(program, machine, plan(program, launch), COSTS)
    assert (run.event("a", "arrive"), run.event("b", "arrive")) == (1000, arrives)


@pytest.mark.parametrize("launch", ["wait-first", "wait-all", "wait-value"])
def test_flag_w_of_the_consumer_takes_the_wait_away(launch: Launch) -> None:
    program = wide_producer()
    machine = tiny(5, "launch.gap_ps=1000ps", "launch.event_ps=1500ps", *WAITS)
    assert ran(program, machine, plan(program, launch, flags=Flags(W=True)), COSTS).event("b", "arrive") == 1500


def test_the_wait_kernel_belongs_to_the_consumer_so_the_producers_flag_w_changes_nothing() -> None:
    program = wide_producer()
    machine = tiny(8, "launch.gap_ps=1000ps", "launch.event_ps=1500ps", *WAITS)
    chosen = Plan(sync=plan(program).sync, flags={"a": Flags(W=True)}, launch="wait-first")
    assert ran(program, machine, chosen, COSTS).event("b", "arrive") == 1570


@pytest.mark.parametrize(("launch", "arrives"), [("wait-first", 1000 + 2 * TILE + 70), ("wait-value", 1550)])
def test_a_wait_kernel_takes_a_slot_and_a_wait_value_none(launch: Launch, arrives: int) -> None:
    """One SM that holds one block: the wait-kernel gets in once both producer tiles have left."""
    program = pair((2, 1), 1)
    machine = tiny(1, "launch.gap_ps=1000ps", "launch.event_ps=1500ps", "blocks_per_sm=1", *WAITS)
    run = ran(program, machine, plan(program, launch), COSTS)
    assert run.event("b", "arrive") == arrives
    assert run.of("b", "placed")[0] == max(arrives, 1000 + 2 * TILE)


def test_a_wait_kernel_that_comes_first_keeps_the_producer_out_of_the_only_slot() -> None:
    program = pair((2, 1), 1)
    machine = tiny(1, "launch.gap_ps=1000ps", "launch.event_ps=300ps", "blocks_per_sm=1", *WAITS)
    assert ran(program, machine, plan(program, "wait-first"), COSTS, stuck=True).finished.unfinished == 4
    assert ran(program, machine, plan(program, "wait-value"), COSTS).finished.unfinished == 0


def test_a_consumer_of_two_producers_arrives_after_both_have_started() -> None:
    program = program_of(
        grid_kernel("a", (2, 1)), grid_kernel("b", (2, 1)), grid_kernel("c", (2, 1), 1, a="a", needs=reads_b())
    )
    machine = tiny(1, "launch.gap_ps=1000ps", "launch.event_ps=1500ps", *WAITS)
    run = ran(program, machine, plan(program, "wait-value", deps=("a>c", "b>c")), TILE)
    assert run.of("b", "placed")[0] == 1000 + 2 * TILE
    assert run.event("c", "arrive") >= run.of("b", "placed")[0] + 50


def reads_b() -> tuple:
    return (grid_kernel("x", (2, 1), 1, a="b")[0].reads[0],)


def test_a_kernel_waits_for_the_one_before_on_its_stream() -> None:
    program = program_of(*(grid_kernel(name, (1, 1)) for name in "abcde"))
    machine = tiny(8, "launch.gap_ps=100ps", "launch.event_ps=30ps")
    costs = {name: cost(step) for name, step in zip("abcde", (1000, 2000, 300, 400, 500), strict=True)}
    run = ran(program, machine, plan(program, deps=(), streams=2), costs)
    first = [100, 100 + 1000 + 100, 1200 + 300 + 100]
    second = [30, 30 + 2000 + 100]
    assert [run.event(name, "arrive") for name in "ace"] == first
    assert [run.event(name, "arrive") for name in "bd"] == second
    assert run.total == max(first[2] + 500, second[1] + 400)


def test_one_stream_is_stream_order() -> None:
    program = pair((5, 2), 2)
    machine = tiny(4, "launch.gap_ps=100ps", "launch.event_ps=30ps")
    one = ran(program, machine, plan(program, streams=1), COSTS)
    assert one.total == ran(program, machine, Plan(), COSTS).total


def test_streams_beyond_the_hardware_queues_wait_for_those_they_share_a_queue_with() -> None:
    """d shares b's queue, and b is held until a starts a second tile: d is held with it though it needs nothing."""
    program = program_of(
        grid_kernel("a", (8, 1)), grid_kernel("b", (8, 1), 1, a="a"), grid_kernel("c", (1, 1)), grid_kernel("d", (1, 1))
    )
    arrives = {}
    for queues in (2, 8):
        machine = tiny(6, "launch.gap_ps=1000ps", "launch.event_ps=300ps", f"hardware_queues={queues}", *WAITS)
        run = ran(program, machine, plan(program, "wait-all"), TILE)
        arrives[queues] = run.event("d", "arrive")
        assert run.event("c", "arrive") == (1000 if queues == 2 else 300)  # c is behind a
    assert arrives[8] == 300
    assert arrives[2] == run.event("b", "launch") == 1000 + TILE + 70


def test_no_more_grids_are_resident_than_the_machine_allows() -> None:
    program = program_of(*(grid_kernel(name, (1, 1)) for name in "abc"))
    costs = {"a": cost(1000), "b": cost(400), "c": cost(10)}
    run = ran(program, tiny(8, "resident_grids=2", "launch.event_ps=30ps"), plan(program, deps=()), costs)
    assert [run.event(name, "arrive") for name in "abc"] == [0, 30, 430]


def test_with_room_for_one_grid_kernels_run_one_by_one() -> None:
    program = program_of(*(grid_kernel(name, (3, 1)) for name in "abc"))
    run = ran(program, tiny(8, "resident_grids=1", "launch.event_ps=1ps"), plan(program, deps=()), 1000)
    spans = [(run.event(name, "launch"), run.event(name, "done")) for name in "abc"]
    assert all(early[1] <= late[0] for early, late in pairwise(sorted(spans)))


def test_the_next_kernel_fills_what_the_one_before_leaves_and_never_overtakes_it() -> None:
    program = pair((5, 1), 2)
    machine = tiny(4, "launch.event_ps=1ps")
    run = ran(program, machine, plan(program, policy=RowPolicy()), COSTS)
    assert run.of("a", "placed") == [0, 0, 0, 0, TILE]
    assert run.of("b", "placed")[:3] == [TILE] * 3
    assert min(run.of("b", "placed")) >= max(run.of("a", "placed"))


def test_first_round_takes_sms_in_the_machines_order_one_block_each() -> None:
    machine = with_overrides(load_machine("h200"), FREE)
    program = program_of(grid_kernel("k", (100, 2), block=fits(2)))
    sms = ran(program, machine, Plan(), TILE).of("k", "sm")
    order = list(machine.dispatch.sm_order)
    assert sms == order + order[: 200 - 132]


def test_most_room_goes_to_the_sm_that_holds_least() -> None:
    """a fills half of SM 0; b's blocks go to the other SMs first, two each, before they join it."""
    program = program_of(grid_kernel("a", (1, 1), block=fits(2)), grid_kernel("b", (1, 5), block=fits(4)))
    machine = tiny(2, "dispatch.placement=most-room", "launch.event_ps=1ps")
    run = ran(program, machine, plan(program, deps=()), TILE)
    assert run.of("a", "sm") == [0]
    assert run.of("b", "sm") == [1, 1, 0, 1, 0]
    assert ran(program, tiny(2, "launch.event_ps=1ps"), plan(program, deps=()), TILE).of("b", "sm") == [0, 1, 0, 1, 1]


def test_a_larger_block_waits_for_room_and_holds_the_smaller_ones_behind_it() -> None:
    """b needs a whole SM while a holds half of it; c would fit, but b is ahead of it in the queue."""
    program = program_of(
        grid_kernel("a", (1, 1), block=fits(2)), grid_kernel("b", (1, 1)), grid_kernel("c", (1, 1), block=fits(4))
    )
    costs = {"a": cost(1000), "b": cost(100), "c": cost(10)}
    machine = tiny(1, "launch.event_ps=1ps")
    runs = [ran(program, machine, plan(program, deps=()), costs, seed=seed) for seed in range(8)]
    # b and c arrive at one instant, so the seed settles which is ahead once both must wait ...
    assert {run.of("b", "placed")[0] for run in runs} == {1000}
    # ... and c, where it is behind, does not overtake.
    assert {run.of("c", "placed")[0] for run in runs} == {1, 1100}


def test_an_order_decides_which_tile_a_ticket_gets() -> None:
    program = program_of(grid_kernel("k", (3, 2)))
    column = ran(program, tiny(2), Plan(order={"k": ColumnOrder()}), TILE)
    assert list(zip(column.of("k", "r"), column.of("k", "c"), strict=True)) == [
        (0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1),
    ]  # fmt: skip
    tiles = ((2, 1, 0), (0, 0, 0), (1, 1, 0), (0, 1, 0), (2, 0, 0), (1, 0, 0))
    table = ran(program, tiny(2), Plan(order={"k": TableOrder(tiles)}), TILE)
    assert tuple(zip(table.of("k", "r"), table.of("k", "c"), table.of("k", "z"), strict=True)) == tiles
    assert table.of("k", "ticket") == list(range(6))


def test_registers_and_warps_bound_blocks_as_well_as_shared_memory() -> None:
    """64 warps an SM: blocks of 8 warps fit eight times; at 128 registers a thread only two of them do."""
    for registers, most in ((32, 8), (128, 2)):
        program = program_of(grid_kernel("k", (1, 9), block=BlockResources(256, registers, 1024)))
        placed = ran(program, tiny(1), Plan(), TILE).of("k", "placed")
        assert placed.count(0) == most
