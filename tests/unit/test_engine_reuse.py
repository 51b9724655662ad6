"""Which panels come from HBM and which cross between the halves of L2, by hand on small grids, and in whole waves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cusim.engine.panels import Panels
from cusim.engine.reuse import hbm_share, link_share
from cusim.machine.machine import Machine
from cusim.policies.orders import ColumnOrder, RowOrder, order_table
from cusim.program.build import gemm_kernel
from cusim.program.expr import IntArray
from cusim.program.kernel import BlockResources, Gemm, Kernel
from tests.engine_programs import tiny

BLOCK = BlockResources(384, 168, 1024)
TILE = (128, 256, 64)
#: Elements of k with which no operand stays in the 8 MiB of L2: each row or column of tiles has more than 4 MiB.
DEEP = 65536
#: HBM fills half of L2 anew within 1048576 ps.
SMALL = ("l2_capacity_bytes=8MiB", "hbm_bytes_per_s=4TB/s")
WINDOW_PS = 4 * 2**20 * 10**12 // (4 * 10**12)


def product(rows: int, cols: int, *, k: int = DEEP, split: int = 1, swiglu: bool = False) -> tuple[Kernel, Gemm]:
    gemm = Gemm(rows * TILE[0], cols * TILE[1], k, prologue="swiglu" if swiglu else "none")
    return gemm_kernel("k", gemm, TILE, BLOCK, split_k=split)[0], gemm


def panels(rows: int, cols: int, *, k: int = DEEP, split: int = 1, swiglu: bool = False) -> Panels:
    return Panels(*product(rows, cols, k=k, split=split, swiglu=swiglu), tiny(132, *SMALL))


def table(kernel: Kernel) -> IntArray:
    return order_table(RowOrder(), kernel.grid)


# 2 x 2: tickets 0 and 1 are a pair, 2 and 3 another. Each row of tiles is asked for by one pair, each column by both.
# 2 x 4: each row by two pairs; column c by the pairs of tickets c and 4 + c.
@pytest.mark.parametrize(
    ("rows", "cols", "slots", "a", "b"),
    [
        (2, 2, 4, 2 * 0.5, 2 * 0.75),
        (2, 2, 132, 2 * 0.5, 2 * 0.75),
        (2, 2, 2, 2 * 0.5, 2 * (0.5 + 0.5)),  # a stretch each: no column is shared
        (2, 4, 8, 2 * 0.75, 4 * 0.75),
        (2, 4, 4, 2 * 0.75, 4 * (0.5 + 0.5)),
        (8, 1, 8, 8 * 0.5, 1 - 0.5**4),  # one column, asked for by four pairs
    ],
)
def test_a_panel_crosses_by_how_many_pairs_of_sms_ask_for_it(
    rows: int, cols: int, slots: int, a: float, b: float
) -> None:
    kernel, gemm = product(rows, cols)
    expected = (a * 128 + b * 256) / (rows * cols * 384)
    assert link_share(kernel, gemm, table(kernel), slots) == pytest.approx(expected, rel=1e-12)


def test_both_halves_of_swiglus_operand_cross() -> None:
    kernel, gemm = product(2, 2, swiglu=True)
    assert link_share(kernel, gemm, table(kernel), 4) == pytest.approx((1.0 * 256 + 1.5 * 256) / (4 * 512), rel=1e-12)


@given(st.integers(1, 7), st.integers(1, 7), st.integers(1, 3), st.booleans(), st.booleans())
def test_blocks_that_all_start_at_once_find_what_a_whole_wave_finds(
    rows: int, cols: int, split: int, swiglu: bool, by_column: bool
) -> None:
    """Two readings of one thing: panel by panel as blocks start, and by order alone."""
    kernel, gemm = product(rows, cols, split=split, swiglu=swiglu)
    order = order_table(ColumnOrder() if by_column else RowOrder(), kernel.grid)
    found = Panels(kernel, gemm, tiny(132, *SMALL))
    shares = [found.shares(r, c, z, ticket // 2, 0) for ticket, (r, c, z) in enumerate(order.tolist())]
    hbm, link = (sum(parts) / len(order) for parts in zip(*shares, strict=True))
    assert hbm == pytest.approx(hbm_share(kernel, gemm, order, len(order), 8 * 2**20, 2), rel=1e-12)
    assert link == pytest.approx(link_share(kernel, gemm, order, len(order)), rel=1e-12)


def test_the_first_to_load_brings_the_panels_and_its_neighbours_read_along() -> None:
    found = panels(2, 2)
    assert found.shares(0, 0, 0, tpc=0, at=0) == (1.0, 0.5)
    assert found.shares(0, 1, 0, tpc=0, at=0) == pytest.approx((256 / 384, 0.5 * 256 / 384))  # A: same TPC
    assert found.shares(1, 0, 0, tpc=1, at=0) == pytest.approx((128 / 384, (0.5 * 128 + 0.25 * 256) / 384))
    assert found.shares(1, 1, 0, tpc=1, at=0) == pytest.approx((0.0, 0.25 * 256 / 384))


@pytest.mark.parametrize(("at", "hbm", "link"), [(WINDOW_PS, 0.0, 0.25), (WINDOW_PS + 1, 1.0, 0.5)])
def test_a_panel_stays_until_hbm_has_filled_half_of_l2_anew(at: int, hbm: float, link: float) -> None:
    found = panels(1, 1)
    found.shares(0, 0, 0, tpc=0, at=0)
    assert found.shares(0, 0, 0, tpc=1, at=at) == (hbm, link)


def test_every_use_keeps_a_panel_for_another_window() -> None:
    found = panels(1, 1)
    shares = [found.shares(0, 0, 0, tpc=tpc, at=tpc * WINDOW_PS) for tpc in range(4)]
    assert shares == [(1.0, 0.5), (0.0, 0.25), (0.0, 0.125), (0.0, 0.0625)]


def test_uses_by_one_tpc_keep_it_too_and_never_cross_again() -> None:
    found = panels(1, 1)
    shares = [found.shares(0, 0, 0, tpc=5, at=use * WINDOW_PS) for use in range(3)]
    assert shares == [(1.0, 0.5), (0.0, 0.0), (0.0, 0.0)]


def test_slices_of_a_tile_read_panels_of_their_own() -> None:
    found = panels(1, 1, split=2)
    assert [found.shares(0, 0, slice_, tpc=0, at=0) for slice_ in (0, 1)] == [(1.0, 0.5), (1.0, 0.5)]


def test_an_operand_that_stays_in_l2_is_loaded_once_however_late_it_is_asked_for_again() -> None:
    """k of 4096: operand A's one row of tiles is 1 MiB of 4 that stay, operand B's four columns 8 MiB."""
    found = panels(1, 4, k=4096)
    assert found.shares(0, 0, 0, tpc=0, at=0) == (1.0, 0.5)
    assert found.shares(0, 0, 0, tpc=0, at=9 * WINDOW_PS) == pytest.approx((256 / 384, 0.5))


def test_the_window_follows_the_machine() -> None:
    kernel, gemm = product(1, 1)

    def again(machine: Machine) -> float:
        found = Panels(kernel, gemm, machine)
        found.shares(0, 0, 0, 0, 0)
        return found.shares(0, 0, 0, 1, WINDOW_PS + 1)[0]

    assert again(tiny(4, *SMALL)) == 1.0
    assert again(tiny(4, "l2_capacity_bytes=9MiB", "hbm_bytes_per_s=4TB/s")) == 0.0
    assert again(tiny(4, "l2_capacity_bytes=8MiB", "hbm_bytes_per_s=3TB/s")) == 0.0
