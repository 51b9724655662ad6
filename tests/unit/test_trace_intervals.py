"""Interval arithmetic on cases small enough to check by eye."""

import numpy as np
import pytest

from cusim.trace.intervals import covered, intersection, lanes, shares, stretches, union


def spans(*pairs: tuple[int, int]) -> np.ndarray:
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


@pytest.mark.parametrize(
    ("given", "merged"),
    [
        ([], []),
        ([(3, 3)], []),
        ([(0, 2), (2, 4)], [[0, 4]]),
        ([(5, 6), (0, 9), (1, 2)], [[0, 9]]),
        ([(7, 9), (0, 2), (1, 3)], [[0, 3], [7, 9]]),
    ],
)
def test_union(given: list, merged: list) -> None:
    assert union(spans(*given)).tolist() == merged
    assert covered(spans(*given)) == sum(end - begin for begin, end in merged)


@pytest.mark.parametrize(
    ("left", "right", "both"),
    [
        ([], [(0, 1)], []),
        ([(0, 2)], [(2, 4)], []),
        ([(0, 10)], [(1, 2), (4, 6), (9, 12)], [[1, 2], [4, 6], [9, 10]]),
        ([(0, 3), (5, 8)], [(2, 6)], [[2, 3], [5, 6]]),
        ([(0, 5), (2, 9)], [(1, 3), (2, 4)], [[1, 4]]),
    ],
)
def test_intersection(left: list, right: list, both: list) -> None:
    assert intersection(spans(*left), spans(*right)).tolist() == both
    assert intersection(spans(*right), spans(*left)).tolist() == both


def test_stretches_part_where_all_have_ended() -> None:
    assert stretches(spans((10, 12), (0, 5), (4, 10), (12, 13))).tolist() == [1, 0, 0, 2]
    assert stretches(spans()).tolist() == []


def test_lanes_take_the_lowest_free_one() -> None:
    chosen = lanes(np.array([0, 0, 0, 1]), spans((0, 5), (1, 3), (3, 9), (0, 9)))
    assert chosen.tolist() == [0, 1, 1, 0]


def test_shares_of_blocks_that_fit_are_their_weights() -> None:
    held = shares(np.array([0, 0, 1]), spans((0, 10), (5, 10), (0, 4)), np.array([1, 1, 2]), 2)
    assert held.tolist() == [5.0, 2.5, 4.0]


def test_shares_shrink_alike_where_too_much_overlaps() -> None:
    held = shares(np.array([0, 0]), spans((0, 10), (5, 15)), np.array([2, 2]), 2)
    assert held.tolist() == [7.5, 7.5]
