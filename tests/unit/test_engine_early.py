"""Early starts to the picosecond: CUDA graphs, and kernels that are placed before the one ahead has ended (PDL)."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from cusim.engine.dispatcher import RULES, Rule
from cusim.engine.predict import predict
from cusim.engine.result import Prediction
from cusim.engine.setup import slots_of
from cusim.engine.verdict import CAN_DEADLOCK, SAFE, verdict
from cusim.machine.machine import Machine
from cusim.policies.base import SyncPolicy
from cusim.policies.flags import Flags
from cusim.policies.orders import TableOrder
from cusim.policies.plan import Launch, Plan
from cusim.policies.row import RowPolicy
from cusim.policies.tile import TilePolicy
from cusim.program.program import Program
from cusim.tune.why import breakdown
from tests.engine_programs import POLICIES, Ran, cost, fits, grid_kernel, pair, plan, program_of, ran, tiny

TILE, SETUP = 10_000, 300
GAP, EARLY, FLUSH = 1000, 70, 400
COSTS = {name: cost(TILE, prologue=SETUP) for name in "abc"}
PDL = Plan(launch="pdl")


def machine_of(sms: int, *settings: str) -> Machine:
    return tiny(
        sms, f"launch.gap_ps={GAP}ps", "launch.graph_gap_ps=600ps", f"launch.early_ps={EARLY}ps",
        f"launch.early_wait_ps={FLUSH}ps", *settings,
    )  # fmt: skip


def chain(*tiles: int, block: int = 1) -> Program:
    """Kernels a, b, c of so many tiles each, in one row; each reads all of the one before."""
    parts = []
    for name, before, count in zip("abc", (None, "a", "b"), tiles, strict=False):
        depth = 1 if before is None else tiles["abc".index(before)]
        parts.append(grid_kernel(name, (1, count), depth, a=before, block=fits(block)))
    return program_of(*parts)


def shallow(*tiles: int, block: int = 1) -> Program:
    """The same with one step each: kernels of a stream need not depend on each other."""
    sizes = zip("abc", tiles, strict=False)
    return program_of(*(grid_kernel(name, (1, count), block=fits(block)) for name, count in sizes))


def waits_of(run: Ran, kernel: str) -> list[tuple[int, int, str]]:
    """(begin, end, dependence) of every wait of a kernel's blocks, in order of their tickets."""
    waits, tiles = run.trace.waits, run.trace.tiles
    mine = tiles["kernel"][waits["tile"]] == run.trace.kernels.index(kernel)
    rows = sorted(zip(*(waits[name][mine].tolist() for name in ("tile", "begin", "end", "dependence")), strict=True))
    return [(begin, end, run.trace.dependences[dep]) for _, begin, end, dep in rows]


def test_a_graph_is_stream_order_with_its_own_gap_and_one_launch() -> None:
    machine = machine_of(4, "launch.enqueue_ps=50ps")
    program = shallow(5, 2, 1)
    stream, graph = (ran(program, machine, Plan(launch=word), TILE) for word in ("stream", "graph"))
    assert graph.total == 4 * TILE + 3 * 600
    assert stream.total - graph.total == 3 * (GAP - 600)
    assert graph.trace.events["enqueue"].tolist() == [-50] * 3
    assert stream.trace.events["enqueue"].tolist() == [-150, -100, -50]


def test_blocks_placed_early_stand_still_past_their_set_up_until_the_kernel_ahead_is_flushed() -> None:
    """Six tiles of a on four SMs: b comes when the fifth and sixth have started, and takes the two slots left."""
    run = ran(shallow(6, 4), machine_of(4), PDL, COSTS)
    second, done = GAP + TILE + SETUP, GAP + 2 * (TILE + SETUP)
    assert run.event("b", "arrive") == second + EARLY
    assert run.of("b", "placed") == [second + EARLY] * 2 + [done] * 2
    begins = [second + EARLY + SETUP] * 2 + [done + SETUP] * 2
    assert waits_of(run, "b") == [(begin, done + FLUSH, "a>b") for begin in begins]
    assert run.of("b", "first_load") == [done + FLUSH] * 4
    assert run.of("b", "wait_total") == [done + FLUSH - second - EARLY - SETUP] * 2 + [FLUSH - SETUP] * 2
    assert run.total == done + FLUSH + TILE
    assert ran(shallow(6, 4), machine_of(4), Plan(), COSTS).total - run.total == GAP - FLUSH + SETUP


def test_a_block_that_comes_after_the_flush_does_not_wait() -> None:
    """One SM: b's second tile starts a tile after the first, long after a is complete."""
    run = ran(shallow(1, 2), machine_of(1), PDL, COSTS)
    assert len(waits_of(run, "b")) == 1
    assert run.of("b", "first_load")[1] - run.of("b", "placed")[1] == SETUP


def test_waits_are_met_one_kernel_after_the_other_however_early_all_are_placed() -> None:
    """Room for everything: c stands still while b does, and begins when b is flushed, not when a is."""
    run = ran(shallow(1, 1, 1, block=4), machine_of(1), PDL, COSTS)
    done = GAP + SETUP + TILE
    assert [run.event(name, "arrive") for name in "abc"] == [GAP, GAP + EARLY, GAP + 2 * EARLY]
    assert waits_of(run, "b") == [(GAP + EARLY + SETUP, done + FLUSH, "a>b")]
    assert waits_of(run, "c") == [(GAP + 2 * EARLY + SETUP, done + 2 * FLUSH + TILE, "b>c")]
    assert run.total == done + 2 * (FLUSH + TILE)


def test_standing_still_is_waiting_and_no_work() -> None:
    program, machine = shallow(6, 4), machine_of(4)
    stream, early = (ran(program, machine, chosen, COSTS) for chosen in (Plan(), PDL))
    for ours, theirs in zip(early.finished.setup.runs, stream.finished.setup.runs, strict=True):
        assert ours.worked_ps == theirs.worked_ps
    # A block that waits takes nothing of the pipe: a's last tile runs beside b's first at full speed.
    loaded = {name: cost(TILE, pipe=1_000_000) for name in "ab"}
    runs = [ran(shallow(3, 1, block=2), machine_of(1), chosen, loaded) for chosen in (Plan(), PDL)]
    assert runs[1].of("b", "placed")[0] < runs[1].of("a", "left")[2]
    assert runs[0].event("a", "done") == runs[1].event("a", "done")


def test_a_split_kernel_is_complete_when_its_last_slice_is() -> None:
    program = program_of(grid_kernel("a", (1, 2), 4, split=2, reduce="last_arriver"), grid_kernel("b", (1, 1)))
    run = ran(program, machine_of(3), PDL, {"a": cost(TILE), "b": cost(TILE)})
    (wait,) = waits_of(run, "b")
    assert wait[1] == run.event("a", "done") + FLUSH
    assert run.of("b", "first_load") == [wait[1]]


def test_no_operand_is_loaded_while_a_block_waits_for_a_whole_kernel() -> None:
    """Flag R loads the operand that is not waited for ahead, which pays where memory is short; here none is loaded."""
    program = chain(1, 4)
    slow = ("l2_bytes_per_s=1GB/s", "launch.early_wait_ps=0ps")
    costs = {"a": cost(TILE, l2=3 * 10**9), "b": cost(TILE, l2=3 * 10**9)}
    plans = [replace(PDL, flags={"b": Flags(R=reordered)}) for reordered in (False, True)]
    plain, ahead = (ran(program, machine_of(8, *slow), chosen, costs).total for chosen in plans)
    assert plain == ahead


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_with_semaphores_a_consumer_comes_behind_every_producer_block_whatever_the_dispatch(
    rule: Rule, policy: SyncPolicy
) -> None:
    """No wait-kernel, one slot an SM: what hangs with launch none cannot, and tiles start before all of a has ended."""
    program = pair((5, 2), 2)
    chosen = plan(program, "pdl", policy)
    for seed in range(3):
        run = ran(program, machine_of(4), chosen, TILE, rule, seed)
        assert run.event("b", "arrive") == max(run.of("a", "placed")) + EARLY
        assert min(run.of("b", "placed")) >= max(run.of("a", "placed")) + EARLY
        assert min(run.of("b", "first_load")) < run.event("a", "done")
    assert run.trace.dependences == ("a>b",)


def test_semaphores_gate_data_and_the_flush_of_the_kernel_ahead_gates_the_end() -> None:
    """b needs nothing of a long a: its tiles are done at once, and it still completes after a."""
    program = program_of(grid_kernel("a", (1, 1), 5), grid_kernel("b", (1, 1)), grid_kernel("c", (1, 1), 1, a="b"))
    run = ran(program, machine_of(4), plan(program, "pdl", deps=("b>c",)), TILE)
    end = GAP + 5 * TILE
    assert run.event("a", "done") == end
    assert run.of("c", "left")[0] < end
    assert run.total == end + 2 * FLUSH


@pytest.mark.parametrize("persistent", [False, True])
def test_the_block_of_the_last_ticket_keeps_its_slot_until_the_kernel_ahead_is_complete(persistent: bool) -> None:
    """Three SMs, a on the first for long, b on the other two: c is placed in what b leaves, or in what a does."""
    a, b, c = (grid_kernel(name, (1, n), steps) for name, n, steps in (("a", 1, 9), ("b", 2, 1), ("c", 2, 1)))
    program = program_of(a, (replace(b[0], persistent=persistent), b[1]), c, grid_kernel("d", (1, 1), 2, a="c"))
    run = ran(program, machine_of(3), plan(program, "pdl", deps=("c>d",)), TILE)
    done, first = GAP + 9 * TILE, GAP + EARLY + TILE
    # One of b's two slots goes on at once, to c's two tiles, of which the last stays in turn; a persistent b keeps both
    # until a is flushed, and the first that comes free is a's own.
    assert run.of("c", "placed") == ([done, done + FLUSH] if persistent else [first, first + TILE])
    assert run.of("d", "placed") == [done + FLUSH + EARLY if persistent else done]
    assert run.of("b", "left") == [first] * 2
    assert not run.of("b", "wait_total")[1]


def test_what_hangs_when_nothing_orders_it_is_safe_under_pdl() -> None:
    program = pair((3, 2), 2)
    machine = machine_of(4)
    for policy in (TilePolicy(), RowPolicy()):
        judged = {
            word: verdict(program, plan(program, word, policy), machine, slots_of(program, machine)).status
            for word in ("none", "pdl")
        }
        assert judged == {"none": CAN_DEADLOCK, "pdl": SAFE}
    assert "one stream" in verdict(program, PDL, machine, slots_of(program, machine)).reason


def test_slices_out_of_order_hang_under_pdl_only_where_they_fill_the_slots_themselves() -> None:
    """b's later slice comes first; a's blocks hold slots too, but leave them, so two slots are enough for b. Side by
    side c could keep b out of both.
    """
    late = {"b": TableOrder(((0, 0, 1), (0, 0, 0)))}
    program = program_of(
        grid_kernel("a", (1, 2)), grid_kernel("b", (1, 1), 2, split=2), grid_kernel("c", (1, 1), 2, a="a")
    )
    tiles = plan(program, "pdl", deps=("a>c",), order=late)
    for sms, status in ((2, SAFE), (1, CAN_DEADLOCK)):
        for chosen in (replace(PDL, order=late), tiles):
            for rule in RULES:
                result = predict(program, machine_of(sms), chosen, dispatch=rule)
                assert (result.verdict.status, isinstance(result, Prediction)) == (status, status == SAFE)
    machine = machine_of(2)
    assert verdict(program, replace(tiles, launch="none"), machine, slots_of(program, machine)).status == CAN_DEADLOCK


@pytest.mark.parametrize(("launch", "spent"), [("stream", 2 * GAP), ("graph", 2 * 600), ("pdl", GAP + FLUSH)])
def test_gaps_and_the_flush_are_what_a_total_is_said_to_lose_to_launches(launch: Launch, spent: int) -> None:
    program = shallow(6, 4)
    parts = breakdown(program, machine_of(4), Plan(launch=launch))
    assert parts is not None
    assert {part.cause: part.ps for part in parts.parts}["launches and placement"] == spent


def test_arrivals_under_pdl_follow_the_stream() -> None:
    program = chain(3, 5, 2)
    for chosen in (PDL, plan(program, "pdl", deps=("a>b", "b>c"))):
        run = ran(program, machine_of(2), chosen, TILE)
        placed = [run.of(name, "placed") for name in "abc"]
        assert all(max(ahead) + EARLY <= min(behind) for ahead, behind in pairwise(placed))
