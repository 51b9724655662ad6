"""The needs language: what it spells, where it may reach and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from cusim.errors import InputError
from cusim.program.affine import Affine, affine_of
from cusim.program.expr import c, k, minimum, r
from cusim.program.needs import Need, need_of, outside, parse_need
from tests.fixtures import contract_program

P = contract_program().kernel("p")  # 3 x 2 tiles of 8 x 8


@pytest.mark.parametrize(
    ("text", "need"),
    [
        ("up[r, :]", Need("up", Affine(r=1), None)),
        ("v[:, c + 24]", Need("v", None, Affine(c=1, constant=24))),
        ("x[2*r + 1, k]", Need("x", Affine(r=2, constant=1), Affine(k=1))),
        (" a-1 [ 1 + 2*(r - c)*3, 4 ] ", Need("a-1", Affine(r=6, c=-6, constant=1), Affine(constant=4))),
        ("x[:, :]", Need("x", None, None)),
        ("x[-r + 3, 0*k]", Need("x", Affine(r=-1, constant=3), Affine())),
        ("x[(r*4 + 8)//4, k]", Need("x", Affine(r=1, constant=2), Affine(k=1))),
    ],
)
def test_what_a_need_spells(text: str, need: Need) -> None:
    assert parse_need(text) == need
    assert parse_need(str(need)) == need


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("up", "NAME[ROW, COLUMN]"),
        ("up[r]", "two indices"),
        ("up[r, c, z]", "two indices"),
        ("up[:]", "two indices"),
        ("up[r, c][0, 0]", "two indices"),
        ("up[r, 0:2]", "only : without ends"),
        ("up[r*c, :]", "must be affine"),
        ("up[r // 2, :]", "must be affine"),
        ("up[r % 2, :]", "must be affine"),
        ("up[min(r, c), :]", "must be affine"),
        ("up[z, :]", "column 4 is not allowed"),
        ("long-name[r, q]", "column 14 is not allowed"),
        ("up[r, __import__('os')]", "not allowed"),
        ("up[1.5, :]", "not allowed"),
        ("up[True, :]", "not allowed"),
        ("up[r, :", "NAME[ROW, COLUMN]"),
        ("up[r, :]]", "not an expression"),
        ("9up[r, :]", "NAME[ROW, COLUMN]"),
        ("up[r, \0]", "not an expression"),
        ("up[" + "(" * 90 + "r" + ")" * 90 + ", :]", ""),
        ("up[r" + " " * 300 + ", :]", "NAME[ROW, COLUMN]"),
    ],
)
def test_what_is_no_need_is_refused(text: str, why: str) -> None:
    if not why:
        assert parse_need(text) == Need("up", Affine(r=1), None)
        return
    with pytest.raises(InputError) as caught:
        parse_need(text)
    assert why in caught.value.problems[0].why
    assert "allowed:" in caught.value.problems[0].why


@pytest.mark.parametrize(
    ("text", "grid", "steps", "where"),
    [
        ("p[r, :]", (3, 5, 1), 1, None),
        ("p[2 - r, c]", (3, 2, 1), 1, None),
        ("p[0, k]", (1, 1, 1), 2, None),
        ("p[r, :]", (4, 1, 1), 1, "r is row 3 of p at r = 3, but p has rows 0 to 2"),
        ("p[1 - r, :]", (3, 1, 1), 1, "-r + 1 is row -1 of p at r = 2, but p has rows 0 to 2"),
        ("p[:, k + 1]", (1, 1, 1), 2, "k + 1 is column 2 of p at k = 1, but p has columns 0 to 1"),
        ("p[r, 2]", (1, 1, 1), 1, "2 is column 2 of p at every tile, but p has columns 0 to 1"),
    ],
)
def test_where_a_need_leaves_the_grid(text: str, grid: tuple[int, int, int], steps: int, where: str | None) -> None:
    assert outside(parse_need(text), P, grid, steps) == where


def test_a_need_reads_whole_tiles_in_elements() -> None:
    access = parse_need("p[2*r + 1, :]").access(P, 24, 16)
    assert [int(bound.eval(r=1)) for bound in access.rows] == [24, 32]
    assert [int(bound.eval()) for bound in access.cols] == [0, 16]
    assert not access.streamed
    assert parse_need("p[r, k]").access(P, 24, 16).streamed


@pytest.mark.parametrize("text", ["p[r, :]", "p[-r + 2, c]", "p[:, k]", "p[0, 1]", "p[2*r - c + 1, :]"])
def test_a_need_is_found_again_from_its_access(text: str) -> None:
    need = parse_need(text)
    found = need_of(need.access(P, 24, 16), P, 24, 16)
    assert found is not None
    assert found.access(P, 24, 16) == need.access(P, 24, 16)


def test_an_access_between_tiles_is_no_need() -> None:
    access = parse_need("p[r, :]").access(P, 24, 16)
    assert need_of(type(access)("p", (r * 8, r * 8 + 9), access.cols, "r"), P, 24, 16) is None
    assert need_of(type(access)("p", (r * 4, r * 4 + 8), access.cols, "r"), P, 24, 16) is None
    assert need_of(type(access)("p", (minimum(r, 2), r + 8), access.cols, "r"), P, 24, 16) is None


def test_affine_forms_equal_the_expressions_they_come_from() -> None:
    axes = {"r": np.arange(5).reshape(-1, 1, 1), "c": np.arange(4).reshape(1, -1, 1), "k": np.arange(3)}
    for expr in (3 * (r - 2 * c) + k, 7 - r, 5 - (c - k) * 2, c * (2 + 1)):
        form = affine_of(expr)
        assert np.array_equal(
            np.broadcast_to(form.expr().eval(**axes), (5, 4, 3)), np.broadcast_to(expr.eval(**axes), (5, 4, 3))
        )
        assert affine_of(form.expr()) == form
        sizes = {"r": 5, "c": 4, "k": 3}
        assert form.smallest(sizes).value == int(expr.eval(**axes).min())
        assert form.largest(sizes).value == int(expr.eval(**axes).max())
