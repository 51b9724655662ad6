"""How limits meet: a norm of the times that each alone would take, between their sum and the longest of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cusim.engine.soft import HARD, norm
from cusim.policies.plan import Plan
from tests.engine_programs import cost, grid_kernel, program_of, ran, tiny

TIMES = st.lists(st.floats(0, 1e12), min_size=1, max_size=5)
ORDERS = st.floats(1, 2 * HARD)
TILE = 1_000_000


def test_three_four_five() -> None:
    assert norm((3.0, 4.0), 2) == pytest.approx(5, rel=1e-12)
    assert norm((1.0, 6.0, 8.0), 3) == pytest.approx(9, rel=1e-12)  # 1 + 216 + 512 = 729


def test_only_a_hard_order_is_the_longest_alone() -> None:
    assert norm((1.0, 1.0), HARD - 1) == pytest.approx(2 ** (1 / (HARD - 1)), rel=1e-12)
    assert norm((1.0, 1.0), HARD) == 1.0


def test_nothing_to_do_takes_no_time() -> None:
    assert norm((0.0, 0.0), 3) == norm((0.0,), HARD) == 0.0


@given(TIMES)
def test_order_one_is_one_after_the_other_and_a_hard_one_the_longest_alone(times: list[float]) -> None:
    assert norm(times, 1) == pytest.approx(sum(times), rel=1e-9)
    assert norm(times, HARD) == max(times)


@given(TIMES, ORDERS, ORDERS)
def test_limits_that_meet_harder_take_less_but_never_less_than_the_longest(
    times: list[float], one: float, other: float
) -> None:
    soft, hard = norm(times, min(one, other)), norm(times, max(one, other))
    assert max(times) * (1 - 1e-12) <= hard <= soft * (1 + 1e-9)
    assert soft <= sum(times) * (1 + 1e-9)


@given(TIMES, st.integers(0, 4), st.floats(0, 1e12), ORDERS)
def test_a_longer_part_never_shortens_the_whole(times: list[float], place: int, more: float, order: float) -> None:
    longer = list(times)
    longer[place % len(times)] += more
    assert norm(longer, order) >= norm(times, order) * (1 - 1e-9)


@given(TIMES, ORDERS)
def test_it_does_not_matter_in_which_unit_time_is_counted(times: list[float], order: float) -> None:
    assert norm([time * 1e-9 for time in times], order) == pytest.approx(norm(times, order) * 1e-9, rel=1e-6)


@pytest.mark.parametrize("order", [1, 2, 3.5, HARD])
def test_in_a_run_memory_adds_to_the_blocks_own_time_as_the_norm_says(order: float) -> None:
    """Four blocks ask for twice of what HBM delivers and for half of what L2 does."""
    machine = tiny(4, "hbm_bytes_per_s=4TB/s", "l2_bytes_per_s=16TB/s", f"contention_sharpness={order}")
    program = program_of(grid_kernel("k", (4, 1)))
    run = ran(program, machine, Plan(), {"k": cost(TILE, hbm=2 * 10**12, l2=2 * 10**12)})
    slow = 2.0 if order == HARD else (1 + 2**order + 0.5**order) ** (1 / order)
    assert run.total == pytest.approx(TILE * slow, abs=1)
