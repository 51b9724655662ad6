"""What each policy posts and awaits: the paper's figures, both coordinate conventions, and planted faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from cusim.policies.base import ONE, Post, SyncPolicy, Wait
from cusim.policies.batched import BatchedPolicy
from cusim.policies.coordinates import (
    LaunchGrid,
    PaperTile,
    RepositoryTile,
    from_paper,
    from_repository,
    grid_of_launch,
    launch_grid,
    paper_row_sync,
    paper_tile_sync,
    repository_row_is_sync,
    repository_row_sync,
    repository_tile_is_sync,
    repository_tile_sync,
    to_paper,
    to_repository,
)
from cusim.policies.row import RowPolicy
from cusim.policies.semaphores import check_policy, posted, wait_count
from cusim.policies.tile import TilePolicy
from cusim.program.depends import TileDep, first_step
from cusim.program.expr import Expr, c, k, minimum, r
from tests.policy_cases import chain, figure_1, gpt3_mlp_256, only_dep, read_of_tiles, reader


class Planted:
    """A tile policy with one part exchanged."""

    name = "planted"

    def __init__(
        self,
        *,
        post: Callable[[Post], Post] = lambda post: post,
        wait: Callable[[Wait], Wait] = lambda wait: wait,
        base: SyncPolicy | None = None,
    ) -> None:
        self.post, self.wait, self.base = post, wait, base or TilePolicy()

    def size(self, dep: TileDep) -> int:
        return self.base.size(dep)

    def posts(self, dep: TileDep) -> tuple[Post, ...]:
        return tuple(self.post(post) for post in self.base.posts(dep))

    def waits(self, dep: TileDep) -> tuple[Wait, ...]:
        return tuple(self.wait(wait) for wait in self.base.waits(dep))


def waits_at(policy: SyncPolicy, dep: TileDep, row: int, col: int, slice_: int, step: int) -> list[tuple[int, ...]]:
    """(index, target, count) of the waits that one block makes before one step."""
    at = {"r": row, "c": col, "z": slice_, "k": step}
    found = []
    for wait in policy.waits(dep):
        if wait.at_k is None or int(wait.at_k.eval(**at)) == step:
            index, target, count = (int(expr.eval(**at)) for expr in (wait.index, wait.target, wait.count))
            if count > 0:
                found.append((index, target, count))
    return found


def kinds(policy: SyncPolicy, dep: TileDep) -> list[str]:
    return [fault.kind for fault in check_policy(policy, dep)]


def test_figure_1_takes_12_waits_by_tile_and_6_by_row() -> None:
    dep = only_dep(figure_1())
    assert wait_count(TilePolicy(), dep) == 12
    assert wait_count(RowPolicy(), dep) == 6


def test_semaphores_of_gpt3_at_256() -> None:
    dep = only_dep(gpt3_mlp_256())
    assert (dep.producer_grid, dep.consumer_grid) == ((1, 48, 4), (1, 96, 2))
    assert [policy.size(dep) for policy in (TilePolicy(), RowPolicy(), BatchedPolicy(2))] == [48, 1, 1]
    assert wait_count(TilePolicy(), dep) == 96 * 48
    assert wait_count(RowPolicy(), dep) == 96 * 2
    assert [check_policy(policy, dep) for policy in (TilePolicy(), RowPolicy())] == [(), ()]


def test_tile_policy_waits_at_the_step_that_enters_a_column() -> None:
    dep = only_dep(chain(8, 8, 4, (4, 4, 2), (4, 4, 2)))
    steps = [waits_at(TilePolicy(), dep, 1, 0, 0, step) for step in range(4)]
    assert steps == [[(2, 1, 1)], [], [(3, 1, 1)], []]


def test_a_taller_consumer_tile_waits_for_every_row_it_reads() -> None:
    dep = only_dep(chain(12, 8, 4, (4, 8, 2), (8, 4, 8)))
    assert waits_at(TilePolicy(), dep, 0, 0, 0, 0) == [(0, 1, 1), (1, 1, 1)]
    assert waits_at(TilePolicy(), dep, 1, 0, 0, 0) == [(2, 1, 1)]
    assert waits_at(RowPolicy(), dep, 1, 0, 0, 0) == [(2, 1, 1)]
    assert waits_at(RowPolicy(), dep, 0, 0, 0, 0) == [(0, 1, 2)]


def test_a_slice_that_begins_inside_a_producer_tile_waits_for_it() -> None:
    """K = 22 in slices of 6, producer tiles 4 wide: cuSync's ``y % TileN == 0`` misses the second slice's first."""
    dep = only_dep(chain(4, 22, 4, (4, 4, 2), (4, 4, 1), split2=4))
    assert dep.slice_steps == 6
    offset = dep.slice_steps * 1
    assert not repository_tile_is_sync(RepositoryTile(0, offset), 4)
    assert waits_at(TilePolicy(), dep, 0, 0, 1, offset) == [(1, 1, 1)]
    assert check_policy(TilePolicy(), dep) == ()


def test_the_last_batch_of_rows_has_a_smaller_target() -> None:
    dep = only_dep(chain(20, 8, 4, (4, 4, 2), (4, 4, 8)))
    policy = BatchedPolicy(2)
    assert policy.size(dep) == 3
    assert posted(policy, dep).total.tolist() == [4, 4, 2]
    assert waits_at(policy, dep, 4, 0, 0, 0) == [(2, 2, 1)]
    assert check_policy(policy, dep) == ()


@pytest.mark.parametrize("policy", [TilePolicy(), RowPolicy(), BatchedPolicy(2)])
@pytest.mark.parametrize(
    ("rows", "cols"),
    [
        ((r, r + 1), (3 - k, 4 - k)),  # backwards
        ((r, r + 1), (k % 2, k % 2 + 1)),  # again and again
        ((k, k + 1), (3 - k, 4 - k)),  # along both axes
        ((3 - k, 4 - k), (c, c + 1)),
        ((k, k + 2), (k // 2, k // 2 + 1)),
    ],
)
def test_ranges_that_do_not_only_advance_are_covered(
    policy: SyncPolicy, rows: tuple[Expr, Expr], cols: tuple[Expr, Expr]
) -> None:
    for slices in (1, 2):
        dep = only_dep(read_of_tiles((4, 4), reader((4, 4, slices), rows, cols, steps=4)))
        assert check_policy(policy, dep) == ()


def test_columns_that_stream_are_awaited_once_each() -> None:
    dep = only_dep(read_of_tiles((4, 4), reader((4, 1, 1), (r, r + 1), (k, k + 2), steps=3)))
    assert wait_count(TilePolicy(), dep) == 4 * 4


def test_columns_that_begin_again_with_each_slice_are_awaited_once_a_slice() -> None:
    dep = only_dep(read_of_tiles((4, 5), reader((4, 1, 2), (r, r + 1), (k % 4, k % 4 + 2), steps=8)))
    assert wait_count(TilePolicy(), dep) == 4 * 2 * 5


def test_a_wait_with_an_index_one_too_high_is_caught() -> None:
    dep = only_dep(figure_1())
    shifted = Planted(wait=lambda wait: replace(wait, index=wait.index + 1))
    assert kinds(shifted, dep) == ["wait-index"]
    inside = Planted(wait=lambda wait: replace(wait, index=minimum(wait.index + 1, 5)))
    assert kinds(inside, dep) == ["missing"]


def test_a_post_with_an_index_one_too_high_is_caught() -> None:
    dep = only_dep(figure_1())
    assert kinds(Planted(post=lambda post: replace(post, index=post.index + 1)), dep) == ["post-index"]
    (fault,) = check_policy(Planted(post=lambda post: replace(post, add=r)), dep)
    assert (fault.kind, fault.where) == ("post-add", (0, 0, 0, -1))


def test_posts_that_a_policy_numbers_otherwise_than_waits_are_caught() -> None:
    dep = only_dep(figure_1())
    by_column = Planted(post=lambda post: replace(post, index=c * 3 + r))
    assert kinds(by_column, dep) == ["missing"]


def test_a_missing_column_is_caught() -> None:
    dep = only_dep(chain(4, 12, 4, (4, 4, 2), (4, 4, 12)))
    assert kinds(Planted(wait=lambda wait: replace(wait, count=wait.count - 1)), dep) == ["missing"]


def test_a_target_that_is_never_reached_is_caught() -> None:
    dep = only_dep(figure_1())
    (fault,) = check_policy(Planted(wait=lambda wait: replace(wait, target=ONE + 1)), dep)
    assert fault.kind == "target"
    assert fault.text == "waits for 2 on semaphore 0, which reaches 1"


def test_a_target_below_the_total_proves_nothing() -> None:
    dep = only_dep(figure_1())
    low = Planted(base=RowPolicy(), wait=lambda wait: replace(wait, target=wait.target - 1))
    assert kinds(low, dep) == ["missing"]


def test_a_wait_one_step_late_is_caught() -> None:
    dep = only_dep(figure_1())
    assert kinds(Planted(base=RowPolicy(), wait=lambda w: replace(w, at_k=first_step(dep) + 1)), dep) == ["late"]
    late = Planted(wait=lambda w: replace(w, index=w.index.subs(k=k - 1), count=w.count.subs(k=k - 1) * minimum(k, 1)))
    assert "late" in kinds(late, dep)


GRID = LaunchGrid(x=5, y=3)


def tiles() -> list[tuple[int, int]]:
    return [(row, col) for row in range(GRID.y) for col in range(GRID.x)]


def test_both_conventions_convert_back() -> None:
    assert to_paper(2, 4) == PaperTile(x=4, y=2)
    assert to_repository(2, 4, 128, 64) == RepositoryTile(x=256, y=256)
    assert to_repository(1, 0, 8, 8, prologue=True).z == 1
    assert launch_grid((3, 5, 2)) == LaunchGrid(x=5, y=3, z=2)
    assert grid_of_launch(launch_grid((3, 5, 2))) == (3, 5, 2)
    for row, col in tiles():
        assert from_paper(to_paper(row, col)) == (row, col)
        assert from_repository(to_repository(row, col, 16, 24), 16, 24) == (row, col)
    assert from_repository(RepositoryTile(x=16 * 2 + 15, y=24 * 3 + 23), 16, 24) == (2, 3)


@pytest.mark.parametrize("convention", ["paper", "repository"])
def test_semaphores_equal_those_of_each_convention_up_to_renumbering(convention: str) -> None:
    dep = only_dep(chain(12, 20, 4, (4, 4, 2), (4, 4, 2)))
    tile_m = tile_n = 4

    def tile_index(row: int, col: int) -> int:
        if convention == "paper":
            return paper_tile_sync(to_paper(row, col), GRID)
        return repository_tile_sync(to_repository(row, col, tile_m, tile_n), GRID, tile_m, tile_n)

    def row_index(row: int, col: int) -> int:
        if convention == "paper":
            return paper_row_sync(to_paper(row, col), GRID)
        return repository_row_sync(to_repository(row, col, tile_m, tile_n), tile_m)

    (tile_post,), (row_post,) = TilePolicy().posts(dep), RowPolicy().posts(dep)
    tile_map = {int(tile_post.index.eval(r=row, c=col)): tile_index(row, col) for row, col in tiles()}
    row_map = {int(row_post.index.eval(r=row, c=col)): row_index(row, col) for row, col in tiles()}
    assert sorted(tile_map.values()) == sorted(tile_map) == list(range(15))
    assert sorted(row_map.values()) == sorted(row_map) == list(range(3))
    if convention == "repository":
        assert all(mine == theirs for mine, theirs in (*tile_map.items(), *row_map.items()))
    for row in range(3):
        for step in range(dep.steps):
            for index, target, count in waits_at(TilePolicy(), dep, row, 0, 0, step):
                assert (target, count) == (1, 1)
                assert tile_map[index] == tile_index(row, step * 2 // tile_n)
            expected = [(row_index(row, 0), GRID.x, 1)] if step == 0 else []
            assert waits_at(RowPolicy(), dep, row, 0, 0, step) == expected


def test_both_policies_wait_at_the_repository_steps_where_nothing_is_split() -> None:
    dep = only_dep(chain(12, 20, 4, (4, 4, 2), (4, 4, 2)))
    for step in range(dep.steps):
        there = RepositoryTile(x=0, y=step * 2, z=int(step == 0))
        assert bool(waits_at(TilePolicy(), dep, 0, 0, 0, step)) == repository_tile_is_sync(there, 4)
        assert bool(waits_at(RowPolicy(), dep, 0, 0, 0, step)) == repository_row_is_sync(there)
