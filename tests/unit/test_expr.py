"""Expressions: Python's arithmetic, text and back, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from cusim.errors import InputError
from cusim.program.expr import Const, Lookup, Op, c, ceil_div, k, maximum, minimum, parse_expr, r, t, z


def test_division_and_remainder_round_as_python_does() -> None:
    values = np.arange(-7, 8)
    assert (((r - 3) // 4).eval(r=values) == [(int(v) - 3) // 4 for v in values]).all()
    assert (((r - 3) % 4).eval(r=values) == [(int(v) - 3) % 4 for v in values]).all()


def test_constants_fold_without_overflow() -> None:
    assert (Const(2**40) * 2**40) // 2**41 == Const(2**39)
    assert minimum(7, 3) == Const(3)
    assert maximum(r, r) == r


@pytest.mark.parametrize(
    ("built", "simple"),
    [
        (r + 0, r),
        (r * 1, r),
        (r * 0, Const(0)),
        (r * 128 // 128, r),
        ((r * 256 + 255) // 128, r * 2 + 1),
        (r + 3 - 5, r + (-2)),
        (r % 1, Const(0)),
    ],
)
def test_folding_keeps_printed_code_short(built: object, simple: object) -> None:
    assert built == simple


@pytest.mark.parametrize(
    "expr",
    [
        r + c * 3 - (k - z),
        (r + c) * (k + 1),
        r - (c - k),
        r // (c + 1) % 5,
        0 - r,
        r + (-3),
        r * (-2),
        minimum(maximum(r, 3), ceil_div(k * 64 + 7, 256)),
        Lookup((3, -1, 2), r % 3) + t,
        Op("*", Const(4), r),
    ],
)
def test_text_reads_back_to_the_same_expression(expr: object) -> None:
    assert parse_expr(str(expr)) == expr


def test_substitution_and_variables() -> None:
    shifted = (k * 64 // 256 + z).subs(k=k - 1)
    assert shifted.uses() == {"k", "z"}
    assert int(shifted.eval(k=5, z=10)) == 11


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "not an expression"),
        ("r +", "not an expression"),
        ("r / 2", "column 1 is not allowed"),
        ("r ** 2", "is not allowed"),
        ("x + 1", "column 1 is not allowed"),
        ("r + __import__('os')", "column 5 is not allowed"),
        ("True", "is not allowed"),
        ("1.5", "is not allowed"),
        ("min(r)", "is not allowed"),
        ("r // 0", "divides by zero"),
        ("r % (2 - 2)", "divides by zero"),
        ("r + 99999999999999999999", "beyond 2**62"),
        ("3000000000 * 3000000000", "beyond 2**62"),
        ("table(r)[0]", "is not allowed"),
        ("r\0", "not an expression"),
        ("-" * 20000 + "r", "not"),
        ("(" * 500 + "r" + ")" * 500, "not an expression"),
    ],
)
def test_what_is_no_expression_is_refused(text: str, part: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_expr(text)
    assert part in str(caught.value)


def test_a_variable_that_is_not_offered_is_refused() -> None:
    with pytest.raises(InputError, match="allowed: integers, r c k"):
        parse_expr("z", ("r", "c", "k"))
