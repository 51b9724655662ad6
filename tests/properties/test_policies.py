"""Every policy is sound, and every order a bijection, on random grids, tile sizes and splits."""

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cusim.policies.base import SyncPolicy
from cusim.policies.batched import BatchedPolicy
from cusim.policies.orders import ColumnOrder, GroupOrder, Order, RowOrder, order_table
from cusim.policies.row import RowPolicy
from cusim.policies.semaphores import check_policy, needed_at, wait_count
from cusim.policies.tabulated import tabulate
from cusim.policies.tile import TilePolicy
from cusim.program.depends import dependences, needed_tiles
from cusim.program.program import Program
from tests.policy_cases import chain, only_dep, random_program

programs = st.integers(0, 10**9).map(lambda seed: random_program(Random(seed)))
policies = st.one_of(
    st.just(TilePolicy()), st.just(RowPolicy()), st.integers(1, 5).map(BatchedPolicy)
)  # fmt: skip
sizes = st.integers(1, 40)
tiles = st.tuples(st.integers(1, 16), st.integers(1, 16), st.integers(1, 8))
chains = st.builds(chain, sizes, sizes, sizes, tiles, tiles)
grids = st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 3))
orders: st.SearchStrategy[Order] = st.one_of(
    st.just(RowOrder()), st.just(ColumnOrder()), st.integers(1, 11).map(GroupOrder)
)  # fmt: skip


@given(programs, policies)
def test_every_policy_is_sound(program: Program, policy: SyncPolicy) -> None:
    for dep in dependences(program):
        assert check_policy(policy, dep) == ()


@given(programs)
def test_the_reads_of_the_check_are_those_of_the_oracle(program: Program) -> None:
    for dep in dependences(program):
        read: dict[tuple[int, int, int], set[tuple[int, int]]] = {}
        for block, _, (r_lo, r_hi, c_lo, c_hi) in needed_at(dep):
            tiles = {(row, col) for row in range(r_lo, r_hi) for col in range(c_lo, c_hi)}
            read.setdefault(block, set()).update(tiles)
        for block in np.ndindex(*dep.consumer_grid):
            assert read.get(block, set()) == needed_tiles(dep, *block)


@given(programs, policies)
def test_finer_semaphores_are_never_fewer(program: Program, policy: SyncPolicy) -> None:
    for dep in dependences(program):
        assert policy.size(dep) <= TilePolicy().size(dep)


@given(chains)
def test_tile_policy_makes_the_fewest_waits_where_columns_stream(program: Program) -> None:
    dep = only_dep(program)
    fewest = sum(len(needed_tiles(dep, *block)) for block in np.ndindex(*dep.consumer_grid))
    assert wait_count(TilePolicy(), dep) == fewest


@given(programs, policies)
def test_the_waits_that_are_counted_are_those_that_blocks_make(program: Program, policy: SyncPolicy) -> None:
    for dep in dependences(program):
        made = 0
        for row, col, slice_ in np.ndindex(*dep.consumer_grid):
            first = slice_ * dep.slice_steps
            for wait in policy.waits(dep):
                at = {"r": row, "c": col, "z": slice_, "k": first}
                steps = range(first, min(first + dep.slice_steps, dep.steps))
                for step in steps if wait.at_k is None else [int(wait.at_k.eval(**at))]:
                    made += max(0, int(wait.count.eval(**{**at, "k": step})))
        assert wait_count(policy, dep) == made


@given(programs)
def test_a_policy_written_in_python_is_sound(program: Program) -> None:
    for dep in dependences(program):
        cols = dep.producer_grid[1]
        reads: dict[tuple[int, int, int, int], list[tuple[int, int, int]]] = {}
        for block, step, (r_lo, r_hi, c_lo, c_hi) in needed_at(dep):
            entries = [(row * cols + c_lo, 1, c_hi - c_lo) for row in range(r_lo, r_hi)]
            reads.setdefault((*block, step), []).extend(entries)
        inside = all(step < min((z + 1) * dep.slice_steps, dep.steps) for _, _, z, step in reads)
        policy = tabulate("mine", dep, lambda r, c, n=cols: (r * n + c, 1), lambda *at, got=reads: got.get(at, []))
        faults = check_policy(policy, dep)
        assert faults == () if inside else all(fault.kind == "missing" for fault in faults)


@given(orders, grids)
def test_orders_are_bijections(order: Order, grid: tuple[int, int, int]) -> None:
    table = order_table(order, grid)
    assert len({tuple(tile) for tile in table.tolist()}) == grid[0] * grid[1] * grid[2]
    assert (np.diff(table[:, 2]) >= 0).all()
