"""Semaphores in simulated time: when a post is seen, what a wait costs, what the flags change, split-K."""

from __future__ import annotations

import pytest

from cusim.engine.setup import PARTIALS_READ_SHARE
from cusim.policies.base import SyncPolicy
from cusim.policies.flags import Flags
from cusim.policies.plan import Plan
from cusim.policies.row import RowPolicy
from cusim.policies.tile import TilePolicy
from cusim.program.program import Program
from tests.engine_programs import POLICIES, Ran, cost, fits, grid_kernel, pair, plan, program_of, ran, tiny

TILE = 10_000


def one_reader(columns: int = 4, *, stages: int = 1, cols: int = 1) -> Program:
    """A row of *columns* tiles ``a`` and *cols* tiles ``b`` that read all of it, one at each k step."""
    return pair((1, columns), cols, stages=stages)


def overlapped(*settings: str, policy: SyncPolicy | None = None, flags: Flags | None = None, columns: int = 4) -> Ran:
    """Producers on four SMs from time 0, the consumer (1000 ps a step) on a fifth, waiting from its start."""
    program = one_reader(columns)
    machine = tiny(columns + 1, "launch.event_ps=1ps", *settings)
    return ran(program, machine, plan(program, policy=policy, flags=flags), {"a": cost(TILE), "b": cost(1000)})


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_a_post_is_seen_after_it_was_made_and_has_travelled(policy: SyncPolicy) -> None:
    run = overlapped("sync.post_ps=300ps", "sync.visible_ps=40ps", policy=policy)
    assert run.of("a", "end") == [TILE] * 4
    assert run.of("a", "posted") == run.of("a", "left") == [TILE + 300] * 4
    assert run.of("b", "first_load") == [TILE + 340]
    assert run.of("b", "left") == [TILE + 340 + 4000]
    assert run.of("b", "wait_total") == [TILE + 339]


@pytest.mark.parametrize(("policy", "behind"), [(TilePolicy(), 0), (RowPolicy(), 3)], ids=lambda x: str(x)[:3])
def test_posts_to_one_address_follow_each_other(policy: SyncPolicy, behind: int) -> None:
    run = overlapped("sync.same_address_ps=100ps", "sync.visible_ps=40ps", policy=policy)
    assert run.of("b", "first_load") == [TILE + 40 + behind * 100]


def test_only_posts_closer_than_the_spacing_are_held_back() -> None:
    """Two producers end 9500 apart, more than the spacing: the second post's time is its own."""
    program = one_reader(2)
    machine = tiny(2, "launch.event_ps=1ps", "sync.same_address_ps=9000ps", "dispatch.block_ps=9500ps")
    run = ran(program, machine, plan(program, policy=RowPolicy()), {"a": cost(TILE), "b": cost(1000)})
    assert run.of("a", "left") == [TILE, TILE + 9500]
    assert max(run.of("b", "first_load")) == max(run.of("b", "placed")[0], TILE + 9500)


def test_flag_a_posts_by_a_store_with_times_of_its_own() -> None:
    settings = ("sync.post_ps=300ps", "sync.post_store_ps=200ps", "sync.visible_ps=40ps", "sync.visible_store_ps=7ps")
    assert overlapped(*settings, flags=Flags(A=True)).of("b", "first_load") == [TILE + 207]
    assert overlapped(*settings).of("b", "first_load") == [TILE + 340]


def late_consumer(policy: SyncPolicy, flags: Flags, *settings: str, stages: int = 1, columns: int = 4) -> int:
    """How long a consumer tile of *columns* steps takes when all was posted before it starts."""
    program = one_reader(columns, stages=stages)
    machine = tiny(4, f"launch.event_ps={2 * TILE}ps", *settings)
    run = ran(program, machine, plan(program, policy=policy, flags=flags), {"a": cost(TILE), "b": cost(1000)})
    assert run.of("b", "wait_total") == [0]
    return run.of("b", "left")[0] - run.of("b", "placed")[0]


@pytest.mark.parametrize(("policy", "waits"), [(TilePolicy(), 4), (RowPolicy(), 1)], ids=lambda x: str(x)[:3])
def test_a_satisfied_wait_costs_little_but_not_nothing(policy: SyncPolicy, waits: int) -> None:
    assert late_consumer(policy, Flags(), "sync.satisfied_ps=20ps") == 4000 + waits * 20


@pytest.mark.parametrize(("policy", "waits"), [(TilePolicy(), 4), (RowPolicy(), 1)], ids=lambda x: str(x)[:3])
def test_without_r_the_other_operand_loads_behind_each_wait(policy: SyncPolicy, waits: int) -> None:
    settings = ("sync.satisfied_ps=20ps", "block.load_ps=800ps")
    with_r = late_consumer(policy, Flags(R=True), *settings, stages=4)
    without = late_consumer(policy, Flags(), *settings, stages=4)
    assert with_r == 4000 + waits * 20
    assert without == with_r + waits * 200  # a load time a wait, four of them in flight


@pytest.mark.parametrize(("hidden", "later"), [(0, 200), (0.75, 50), (0.95, 10)])
@pytest.mark.parametrize("columns", [1, 2, 4])
def test_polling_ahead_hides_a_part_of_every_wait_but_the_first(columns: int, hidden: float, later: int) -> None:
    settings = ("sync.satisfied_ps=200ps", f"sync.hidden_wait_share={hidden}")
    took = late_consumer(TilePolicy(), Flags(R=True), *settings, columns=columns)
    assert took == columns * 1000 + 200 + (columns - 1) * later


def test_the_load_behind_a_later_wait_is_hidden_with_it() -> None:
    """Without R a load of 800 ps, four in flight, queues behind each of four waits; three quarters are hidden."""
    settings = ("sync.satisfied_ps=20ps", "block.load_ps=800ps", "sync.hidden_wait_share=0.75")
    assert late_consumer(TilePolicy(), Flags(), *settings, stages=4) == 4000 + 220 + 3 * 55


def test_flag_t_saves_the_ticket_and_nothing_else() -> None:
    settings = ("block.ticket_ps=55ps", "sync.satisfied_ps=20ps")
    assert late_consumer(RowPolicy(), Flags(), *settings) == 4000 + 20 + 55
    assert late_consumer(RowPolicy(), Flags(T=True), *settings) == 4000 + 20


def test_stream_order_pays_for_no_ticket_no_wait_and_no_post() -> None:
    machine = tiny(4, "block.ticket_ps=55ps", "sync.satisfied_ps=20ps", "sync.post_ps=300ps", "sync.visible_ps=40ps")
    run = ran(one_reader(), machine, Plan(), {"a": cost(TILE), "b": cost(1000)})
    assert run.total == TILE + 4000
    assert run.of("a", "posted") == [-1] * 4


def test_a_kernel_that_nothing_depends_on_pays_for_no_ticket_and_no_post() -> None:
    program = program_of(*(grid_kernel(name, (1, 1), 1, a="a" if name == "b" else None) for name in "abc"))
    machine = tiny(4, "block.ticket_ps=55ps", "sync.post_ps=300ps")
    run = ran(program, machine, plan(program), TILE)
    took = {name: run.of(name, "left")[0] - run.of(name, "placed")[0] for name in "abc"}
    assert (took["a"], took["c"]) == (TILE + 355, TILE)


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_a_wait_bites_as_many_steps_early_as_loads_run_ahead(stages: int) -> None:
    """Tile 3 of four is late. Step 3's loads are issued when step 3 - stages begins, so that much work stands still."""
    program = one_reader(stages=stages)
    machine = tiny(2, "launch.event_ps=1ps", "block.load_ps=0ps")
    costs = {"a": cost(TILE), "b": cost(1000, prologue=500, tail=30)}
    # One SM for the four producers, one for the consumer, which is released by an order of arrival of its own.
    run = ran(program, machine, plan(program), costs, "adversarial")
    assert run.of("a", "left")[3] == seen(run)
    left_to_do = 1000 * (4 - max(3 - stages, 0)) + 30 + (500 if stages > 3 else 0)
    assert run.of("b", "left")[0] == seen(run) + left_to_do


def seen(run: Ran) -> int:
    return max(run.of("a", "left"))


def test_after_a_wait_the_pipeline_refills() -> None:
    """The first loads come after the wait, one round trip; without R, with the other operand's share of one more."""
    left = {}
    for flags in (Flags(R=True), Flags()):
        program = one_reader(2, stages=4)
        machine = tiny(3, "launch.event_ps=1ps", "block.load_ps=800ps")
        costs = {"a": cost(TILE), "b": cost(1000, prologue=800)}
        run = ran(program, machine, plan(program, policy=RowPolicy(), flags=flags), costs)
        assert run.of("b", "wait_total") == [TILE - 1]
        left[str(flags)] = run.of("b", "left")[0]
    assert left["R"] == TILE + 800 + 2000
    assert left["-"] >= left["R"] + 200


def test_tile_semaphores_let_a_consumer_begin_before_its_row_is_done() -> None:
    """Two SMs: the second of a's tiles runs beside b, which has done its first step by the time it is posted."""
    program = program_of(grid_kernel("a", (1, 3)), grid_kernel("b", (1, 1), 3, a="a"))
    costs = {"a": cost(TILE), "b": cost(4000)}
    machine = tiny(2, "launch.wait_value_ps=1ps")
    tile = ran(program, machine, plan(program, "wait-value", TilePolicy()), costs)
    row = ran(program, machine, plan(program, "wait-value", RowPolicy()), costs)
    assert tile.of("b", "placed") == row.of("b", "placed") == [TILE]
    # With one stage the loads of step 2 are issued when step 1 begins, so steps 1 and 2 follow the last post.
    assert tile.of("b", "left") == [2 * TILE + 2 * 4000]
    assert row.of("b", "left") == [2 * TILE + 3 * 4000]


def test_slices_add_up_one_after_the_other() -> None:
    """All three slices run at once; each writes its tail when it sees that the one before has ended."""
    program = program_of(grid_kernel("k", (1, 1), 3, split=3))
    machine = tiny(3, "sync.visible_ps=40ps", "sync.post_ps=6ps")
    run = ran(program, machine, Plan(), {"k": cost(1000, tail=200)})
    assert run.of("k", "left") == [1206, 1206 + 40 + 206, 1206 + 2 * (40 + 206)]
    assert run.of("k", "wait_total") == [0, 1246 - 1000, 1206 + 246 + 40 - 1000]


def test_the_last_slice_to_arrive_adds_up_all_and_stores_the_tile_alone() -> None:
    """At one byte a nanosecond: three partial tiles of one fp32 element each through the part of the port that reading
    sums through registers reaches, after one load round trip; then the tile's two bytes.
    """
    program = program_of(grid_kernel("k", (1, 1), 3, split=3, reduce="last_arriver"))
    port = ("clock_hz=1GHz", "sm_l2_bytes_per_clock=1B/clock", "sm_store_bytes_per_clock=1B/clock")
    run = ran(program, tiny(3, "block.load_ps=500ps", *port), Plan(), {"k": cost(1000, tail=200)})
    added = 500 + round(3 * 4 * 1000 / PARTIALS_READ_SHARE) + 2 * 1000
    assert sorted(run.of("k", "left")) == [1200, 1200, 1200 + added]
    assert run.trace.tiles["wait_total"].sum() == 0


@pytest.mark.parametrize("reduce", ["serial", "last_arriver"])
def test_a_split_tile_posts_once_after_all_of_its_slices(reduce: str) -> None:
    program = program_of(
        grid_kernel("a", (2, 1), 4, split=4, reduce=reduce), grid_kernel("b", (2, 1), 1, a="a", block=fits(1))
    )
    machine = tiny(10, "launch.event_ps=1ps", "sync.visible_ps=40ps")
    run = ran(program, machine, plan(program), {"a": cost(1000), "b": cost(10)})
    for row in range(2):
        ended = [t for t, r in zip(run.of("a", "left"), run.of("a", "r"), strict=True) if r == row]
        loads = [t for t, r in zip(run.of("b", "first_load"), run.of("b", "r"), strict=True) if r == row]
        assert loads == [max(ended) + 40]


def test_slices_one_after_the_other_through_one_slot_never_wait() -> None:
    program = program_of(grid_kernel("k", (2, 1), 4, split=4))
    run = ran(program, tiny(1), Plan(), {"k": cost(1000, tail=10)})
    assert run.total == 8 * 1010
    assert run.trace.tiles["wait_total"].sum() == 0


def test_a_serial_slice_reads_the_sum_of_those_before_it() -> None:
    """Two bytes of the one output element through a port of 1 byte a clock of 1 GHz: 2000 ps, for the second slice."""
    program = program_of(grid_kernel("k", (1, 1), 2, split=2))
    machine = tiny(1, "rates.sm_l2_bytes_per_clock=1B/clock", "rates.clock_hz=1GHz")
    assert ran(program, machine, Plan(), {"k": cost(1000)}).of("k", "left") == [1000, 4000]
