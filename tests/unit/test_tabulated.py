"""Python policies as integer tables."""

from __future__ import annotations

from typing import Any

import pytest

from cusim.errors import InputError
from cusim.policies.row import RowPolicy
from cusim.policies.semaphores import check_policy, wait_count
from cusim.policies.tabulated import TabulatedPolicy, tabulate
from cusim.policies.tile import TilePolicy
from cusim.program.depends import TileDep
from cusim.program.expr import Const, c, k, r, z
from tests.policy_cases import chain, only_dep


def case() -> TileDep:
    """Producer 3 x 4 tiles, consumer 3 x 2, 8 k steps in 2 slices of 4."""
    return only_dep(chain(12, 16, 8, (4, 4, 2), (4, 4, 2), split2=2))


def rows_of(dep: TileDep) -> TabulatedPolicy:
    """RowSync as a user would write it."""
    cols = dep.producer_grid[1]
    return tabulate(
        "mine", dep, lambda r, c: (r, 1), lambda r, c, z, k: [(r, cols, 1)] if k == z * dep.slice_steps else []
    )


def test_a_row_policy_in_python_equals_the_registered_one() -> None:
    dep = case()
    policy = rows_of(dep)
    assert check_policy(policy, dep) == ()
    assert policy.size(dep) == RowPolicy().size(dep)
    assert wait_count(policy, dep) == wait_count(RowPolicy(), dep) == 12
    (wait,) = policy.waits(dep)
    assert wait.at_k == z * dep.slice_steps
    assert (wait.target, wait.count) == (Const(4), Const(1))


def test_a_tile_policy_in_python_equals_the_registered_one() -> None:
    dep = case()
    policy = tabulate(
        "mine", dep, lambda r, c: (r * 4 + c, 1), lambda r, c, z, k: [(r * 4 + k // 2, 1, 1)] if k % 2 == 0 else []
    )
    assert check_policy(policy, dep) == ()
    assert policy.size(dep) == 12
    assert wait_count(policy, dep) == wait_count(TilePolicy(), dep)


def test_tables_hold_only_the_axes_that_matter() -> None:
    dep = case()
    (wait,) = tabulate("mine", dep, lambda r, c: (c, 1), lambda r, c, z, k: [(k // 2, 3, 1)]).waits(dep)
    assert wait.index.uses() == {"k"}
    (post,) = rows_of(dep).posts(dep)
    assert (post.index.uses(), post.add) == ({"r"}, Const(1))


def test_several_waits_of_a_step_become_several_entries() -> None:
    dep = case()
    policy = tabulate(
        "mine", dep, lambda r, c: (r * 4 + c, 1), lambda r, c, z, k: [(r * 4 + i, 1, 1) for i in range(k)]
    )
    waits = policy.waits(dep)
    assert len(waits) == 7
    at = {"r": 1, "c": 1, "z": 1, "k": 6}
    assert [int(wait.index.eval(**at)) for wait in waits if int(wait.count.eval(**at))] == [4, 5, 6, 7, 8, 9]


def test_a_fault_in_a_python_policy_is_found() -> None:
    dep = case()
    late = tabulate("late", dep, lambda r, c: (r, 1), lambda r, c, z, k: [(r, 4, 1)] if k % 4 == 1 else [])
    assert [fault.kind for fault in check_policy(late, dep)] == ["late"]
    none = tabulate("none", dep, lambda r, c: (r, 1), lambda r, c, z, k: [])
    assert [fault.kind for fault in check_policy(none, dep)] == ["missing"]


@pytest.mark.parametrize(
    ("post", "waits", "why"),
    [
        ((-1, 1), [], "index must be 0 or more"),
        ((0, 0), [], "add 1 or more"),
        (3, [], r"must be \(index, add\)"),
        ((0, 1), [(0, 1)], r"must be a list of \(index, target, count\)"),
        ((0, 1), None, "must be a list"),
        ((0, 1), [(-1, 1, 1)], "index and count must be 0 or more"),
    ],
)
def test_results_of_another_shape_are_refused(post: Any, waits: Any, why: str) -> None:
    with pytest.raises(InputError, match=why) as caught:
        tabulate("mine", case(), lambda r, c: post, lambda r, c, z, k: waits)
    assert len(caught.value.problems) <= 8


def test_a_table_is_refused_for_other_grids() -> None:
    policy, other = rows_of(case()), only_dep(chain(8, 8, 8, (4, 4, 4), (4, 4, 4)))
    for use in (policy.size, policy.posts, policy.waits):
        with pytest.raises(InputError, match="other grids"):
            use(other)


def test_variables_of_the_tables_are_those_of_tiles() -> None:
    dep = case()
    policy = tabulate("mine", dep, lambda row, col: (row + col, 1 + col), lambda *at: [(at[1], at[0] + 1, 1)])
    (post,), (wait,) = policy.posts(dep), policy.waits(dep)
    assert post.index.uses() == {r.name, c.name}
    assert (wait.index.uses(), wait.target.uses()) == ({c.name}, {r.name})
    assert k.name not in wait.index.uses()
