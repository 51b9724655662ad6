"""What staggered starts and waits do to HBM, in runs whose times follow by hand.

All blocks ask for L2 at 1 TB/s and HBM delivers half of that: a block alone, all of whose panels come from HBM, takes
twice its time. Operands A and B are as wide as each other, so one found in L2 leaves just what HBM delivers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from cusim.engine.cost import BlockCost
from cusim.engine.panels import Panels, Shares
from cusim.engine.simulate import Finished, simulate
from cusim.machine.machine import Machine
from cusim.policies.flags import Flags
from cusim.policies.plan import Plan
from cusim.policies.row import RowPolicy
from cusim.program.build import Parts, gemm_kernel
from cusim.program.kernel import Gemm
from cusim.program.program import Program
from tests.engine_programs import cost, fits, grid_kernel, plan, program_of, ran, tiny

TILE = 1_000_000
#: Elements of k, all in one step: an operand's row or column has 4 MiB and never stays in 2 MiB of L2.
DEEP = 2**21
#: Half of the 2 MiB at half a TB/s.
WINDOW_PS = 2**20 * 2


def product(name: str, rows: int, cols: int, *, a: str | None = None, steps: int = 1) -> Parts:
    """Tiles of single elements; *steps* of as many elements of k, all loaded at once."""
    return gemm_kernel(name, Gemm(rows, cols, steps * DEEP), (1, 1, DEEP), fits(1), a=a, stages=steps)


def drawing(work: int) -> BlockCost:
    return BlockCost(0, work, 0, 0, l2_bytes_per_s=10**12, hbm_bytes_per_s=0)


def machine(sms: int, *settings: str) -> Machine:
    return tiny(sms, "hbm_bytes_per_s=0.5TB/s", "l2_capacity_bytes=2MiB", *settings)


def run(program: Program, on: Machine, chosen: Plan, costs: Mapping[str, BlockCost]) -> Finished:
    finished = simulate(program, on, chosen, costs, quantum=0.0, settle_ps=0)
    assert not finished.unfinished
    return finished


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, int]]:
    """(row, column, time) of every time that a block asks for its panels."""
    made: list[tuple[int, int, int]] = []
    whole = Panels.shares

    def shares(self: Panels, row: int, col: int, slice_: int, tpc: int, at: int) -> Shares:
        made.append((row, col, at))
        return whole(self, row, col, slice_, tpc, at)

    monkeypatch.setattr(Panels, "shares", shares)
    return made


@pytest.mark.parametrize(("work", "total"), [(TILE, 3 * TILE), (2 * TILE, 8 * TILE)])
def test_the_next_tile_finds_the_panel_it_shares_only_if_it_comes_soon(work: int, total: int) -> None:
    """Two tiles of a column through one slot. The first takes 2 x work; the second starts then, and finds operand B
    unless more than the window has passed: it takes work, or twice that again.
    """
    assert (2 * work <= WINDOW_PS) == (work == TILE)
    (only,) = run(program_of(product("k", 2, 1)), machine(1), Plan(), {"k": drawing(work)}).setup.runs
    assert only.done_ps == total


def test_blocks_that_share_nothing_each_bring_all_of_theirs() -> None:
    """Two kernels at once on four TPCs: 2 TB/s wanted of 0.5, and no panel of one serves the other."""
    program = program_of(product("x", 1, 1), product("y", 1, 1))
    done = run(program, machine(4), plan(program, deps=()), {name: drawing(TILE) for name in "xy"}).setup.runs
    assert [each.done_ps for each in done] == [4 * TILE] * 2


def test_a_column_of_blocks_at_once_brings_its_shared_panel_once() -> None:
    """Four tiles of a column: operand B once, A four times: 5 of 8 panels, 2.5 TB/s wanted of 0.5."""
    (only,) = run(program_of(product("k", 4, 1)), machine(4), Plan(), {"k": drawing(TILE)}).setup.runs
    assert only.done_ps == 5 * TILE


@pytest.mark.parametrize(("sms", "crossing"), [((0, 1, 2, 3), 0.75), ((0, 2, 1, 3), 0.875)], ids=["one TPC", "two"])
def test_the_link_carries_a_shared_panel_once_a_tpc(sms: tuple[int, ...], crossing: float) -> None:
    """Two tiles of a column, 1 TB/s each. The first gets half of both its panels over the link, and so does the second
    of its own; of the shared one a quarter more, unless its SM is the first one's neighbour.
    """
    on = tiny(4, "l2_link_bytes_per_s=0.25TB/s")
    on = replace(on, dispatch=replace(on.dispatch, sm_order=sms))
    (only,) = run(program_of(product("k", 2, 1)), on, Plan(), {"k": drawing(TILE)}).setup.runs
    assert only.done_ps == crossing / 0.25 * TILE


def chain(producers: int = 1) -> Program:
    """``b``, one tile, reads one tile of ``a`` in each of its steps."""
    up = gemm_kernel("a", Gemm(1, producers * DEEP, 1), (1, DEEP, 1), fits(1), stages=1)
    return program_of(up, product("b", 1, 1, a="a", steps=producers))


def idle(work: int) -> BlockCost:
    """Work that draws nothing."""
    return BlockCost(0, work, 0, 0, 0, 0)


@pytest.mark.parametrize("stood_ps", [WINDOW_PS // 2, 2 * WINDOW_PS])
def test_a_block_that_waits_brings_its_panels_once_it_wakes(stood_ps: int, asked: list[tuple[int, int, int]]) -> None:
    """Nothing was loaded while it stood: however short that was, all of its panels come from HBM."""
    costs = {"a": idle(stood_ps), "b": drawing(TILE)}
    program = chain()
    on = machine(2, "launch.event_ps=1ps")
    a, b = run(program, on, plan(program, policy=RowPolicy(), flags=Flags(R=True)), costs).setup.runs
    assert (b.placed, a.done_ps) == ([1], stood_ps)
    assert asked == [(0, 0, 0), (0, 0, stood_ps)]
    assert b.done_ps == stood_ps + 2 * TILE


def test_a_block_that_waits_twice_asks_once(asked: list[tuple[int, int, int]]) -> None:
    """Both steps are loaded at once, and the second tile of a starts 5000 ps after the first."""
    on = machine(3, "launch.event_ps=1ps", "dispatch.block_ps=5000ps")
    program = chain(2)
    done = run(program, on, plan(program), {"a": idle(TILE), "b": drawing(TILE)})
    assert [end for *_, end, _, _ in done.wait_rows] == [TILE, TILE + 5000]
    assert asked == [(0, 0, 0), (0, 1, 5000), (0, 0, TILE)]


def test_a_block_whose_wait_was_over_before_it_came_asks_as_it_starts(asked: list[tuple[int, int, int]]) -> None:
    program = chain()
    on = machine(2, "launch.event_ps=2000000ps")
    costs = {"a": idle(TILE), "b": drawing(TILE)}
    run(program, on, plan(program, policy=RowPolicy()), costs)
    assert asked == [(0, 0, 0), (0, 0, 2 * TILE)]


def test_a_wait_that_ends_while_a_block_prepares_leaves_it_to_load_in_time(asked: list[tuple[int, int, int]]) -> None:
    """a ends while b, placed before, is still in its prologue: b never stands still, and loads all the same."""
    program = chain()
    costs = {"a": idle(TILE), "b": BlockCost(2 * TILE, TILE, 0, 0, 3 * 10**12, 0)}
    on = machine(2, "launch.event_ps=1ps")
    _, b = run(program, on, plan(program, policy=RowPolicy(), flags=Flags(R=True)), costs).setup.runs
    assert not b.late
    assert asked == [(0, 0, 0), (0, 0, 2 * TILE + 1)]


def test_a_measured_kernel_keeps_what_its_cost_says(asked: list[tuple[int, int, int]]) -> None:
    program = program_of(grid_kernel("k", (2, 1)))
    assert ran(program, machine(2), Plan(), {"k": cost(TILE, hbm=10**12)}).total == 4 * TILE
    assert not asked
