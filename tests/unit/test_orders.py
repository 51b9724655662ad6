"""Tile orders: their sequence, edges, tables and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cusim.errors import InputError
from cusim.policies.orders import (
    ColumnOrder,
    GroupOrder,
    Order,
    RowOrder,
    TableOrder,
    check_bijection,
    order_table,
    tile,
)
from cusim.policies.registry import parse_order
from cusim.policies.tabulated import tabulate_order


def pairs(order: Order, rows: int, cols: int) -> list[tuple[int, int]]:
    return [(row, col) for row, col, _ in order_table(order, (rows, cols, 1)).tolist()]


def test_rows_run_along_columns_and_slices_come_last() -> None:
    assert pairs(RowOrder(), 2, 3) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert order_table(RowOrder(), (1, 2, 2)).tolist() == [[0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 1]]
    assert tile(RowOrder(), 7, (2, 3, 2)) == (0, 1, 1)


def test_columns_run_along_rows() -> None:
    assert pairs(ColumnOrder(), 2, 3) == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]


def test_groups_are_bands_walked_column_by_column_and_the_last_is_lower() -> None:
    expected = [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (2, 1)]
    assert pairs(GroupOrder(2), 3, 2) == expected
    assert pairs(GroupOrder(1), 3, 4) == pairs(RowOrder(), 3, 4)
    assert pairs(GroupOrder(9), 3, 4) == pairs(ColumnOrder(), 3, 4)


@pytest.mark.parametrize(
    ("tiles", "why"),
    [
        (((0, 0, 0), (0, 0, 0)), "comes more than once"),
        (((0, 0, 0),), r"\(0, 1, 0\) is missing"),
        (((0, 0, 0), (0, 2, 0)), "outside the grid of 1 x 2 x 1"),
        (((0, 0, 0), (0, -1, 0)), "outside the grid"),
        (((0, 0, 0), (0, 1, 0), (0, 1, 0)), "comes more than once"),
        ((), "is missing"),
    ],
)
def test_what_is_no_bijection_is_refused(tiles: tuple[tuple[int, int, int], ...], why: str) -> None:
    with pytest.raises(InputError, match=why):
        order_table(TableOrder(tiles), (1, 2, 1))
    with pytest.raises(InputError, match=why):
        check_bijection(np.asarray(tiles, dtype=np.int64).reshape(-1, 3), (1, 2, 1), "table")


def test_a_table_of_huge_numbers_is_refused() -> None:
    with pytest.raises(InputError, match="more than 64 bits"):
        order_table(TableOrder(((0, 0, 0), (0, 10**23, 0))), (1, 2, 1))


def test_a_function_becomes_a_table() -> None:
    order = tabulate_order(lambda ticket: (1 - ticket % 2, ticket // 2, 0), (2, 3, 1), "snake")
    assert order.name == "snake"
    assert pairs(order, 2, 3)[:3] == [(1, 0), (0, 0), (1, 1)]
    with pytest.raises(InputError, match="comes more than once"):
        tabulate_order(lambda ticket: (0, 0, 0), (2, 3, 1))
    with pytest.raises(InputError, match=r"ticket 0 must give \(r, c, z\)"):
        tabulate_order(lambda ticket: (0, ticket), (1, 3, 1))  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(
    ("word", "order"),
    [("row", RowOrder()), (" column ", ColumnOrder()), ("group:8", GroupOrder(8)), ("g=8", GroupOrder(8))],
)
def test_words_of_orders(word: str, order: Order) -> None:
    assert parse_order(word) == order


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("colum", "did you mean column"),
        ("group:0", "a number of rows from 1"),
        ("group", "a number of rows from 1"),
        ("g=x", "a number of rows from 1"),
        ("g=²", "a number of rows from 1"),
        ("group:99999999999", "a number of rows from 1"),
        ("", "allowed: a .json table column group:G row"),
        ("absent.json", "cannot be read: No such file or directory"),
    ],
)
def test_unknown_orders_are_refused(word: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        parse_order(word)


def test_a_table_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "order.json"
    path.write_text(json.dumps([[0, 1], [0, 0]]))
    assert pairs(parse_order(str(path)), 1, 2) == [(0, 1), (0, 0)]


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "{}",
        "[]",
        "[[0]]",
        "[[0, 1.5]]",
        "[[true, 0]]",
        '["ab"]',
        "\x00",
        "[[-1, 0]]",
        f"[[{2**31}, 0]]",
        f"[[1{'0' * 5000}, 0]]",
        "[" * 10**5,
    ],
)
def test_a_file_that_holds_no_table_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "order.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"not JSON|must be (an array of )?\[r, c, z\]"):
        parse_order(str(path))
