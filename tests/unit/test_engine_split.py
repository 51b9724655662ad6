"""Split-K by the last slice to arrive, by hand: what is stored, read again and drawn from memory, and when."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cusim.engine.cost import block_cost
from cusim.engine.predict import predict
from cusim.engine.result import Prediction
from cusim.engine.setup import PARTIALS_READ_SHARE
from cusim.machine.machine import Machine
from cusim.policies.orders import RowOrder, order_table
from cusim.policies.plan import Plan
from cusim.program.build import Parts, gemm_kernel
from cusim.program.kernel import BlockResources, Gemm, Kernel
from tests.engine_programs import cost, grid_kernel, plan, program_of, ran, tiny

BLOCK = BlockResources(256, 128, 64 * 1024)
TILE = (64, 32, 64)
ELEMENTS = 64 * 32
NS = 1000
WORK = 1_000_000


def product(split: int, *, epilogue: str = "none", reduce: str = "last_arriver") -> Parts:
    gemm = Gemm(64, 32, 64 * 12, epilogue=epilogue)  # type: ignore[arg-type]
    return gemm_kernel("k", gemm, TILE, BLOCK, split_k=split, stages=2, reduce=reduce)  # type: ignore[arg-type]


def machine(*settings: str) -> Machine:
    """1 GHz; products of 64 ns a step; a port of 256 and stores of 16 bytes a clock; memory that never binds."""
    rates = (
        "clock_hz=1GHz", "tensor_clock_hz=1GHz", "tensor_flops_per_clock_sm=4096flop/clock", "tensor_efficiency=1",
        "lone_block_share=1", "sm_l2_bytes_per_clock=256B/clock", "sm_store_bytes_per_clock=16B/clock",
        "hbm_bytes_per_s=1000TB/s", "l2_bytes_per_s=1000TB/s", "l2_link_bytes_per_s=1000TB/s",
    )  # fmt: skip
    return tiny(8, *rates, *settings)


@pytest.mark.parametrize("split", [1, 2, 3, 4])
def test_the_slices_of_a_lone_tile_take_what_they_do_one_by_one(split: int) -> None:
    """All slices at once: their steps, the epilogue and the partial sums in fp32. Whoever is last makes a round trip,
    reads the sums of all, itself included, through a part of the port, and stores the tile in fp16.
    """
    times = ("block.prologue_ps=500ns", "block.load_ps=60ns", "block.epilogue_ps=30ns", "sync.post_ps=7ns")
    run = predict(program_of(product(split)), machine(*times), Plan())
    assert isinstance(run, Prediction)
    steps_ns = 12 // split * 64
    stored_ns, partial_ns = ELEMENTS * 2 / 16, ELEMENTS * 4 / 16
    if split == 1:
        expected = 500 + 60 + steps_ns + 30 + stored_ns
    else:
        read_ns = split * ELEMENTS * 4 / 256 / PARTIALS_READ_SHARE
        expected = 500 + 60 + steps_ns + 30 + partial_ns + 7 + 60 + read_ns + stored_ns
    assert run.total_ps == pytest.approx(expected * NS, abs=4)


def test_the_activation_is_applied_once_by_the_last() -> None:
    slow = "fp32_flops_per_clock_sm=1flop/clock"
    totals = [
        predict(program_of(product(2, epilogue=epilogue)), machine(slow), Plan()) for epilogue in ("none", "gelu")
    ]
    assert all(isinstance(each, Prediction) for each in totals)
    plain, gelu = (each.total_ps for each in totals)  # type: ignore[union-attr]
    assert gelu - plain == 12 * ELEMENTS * NS


def test_the_tile_is_posted_after_it_is_stored() -> None:
    """Two fences lie on the way: the slices' own counter, then the semaphore that b waits for."""
    program = program_of(
        grid_kernel("a", (1, 1), 2, split=2, reduce="last_arriver"), grid_kernel("b", (1, 1), 1, a="a")
    )
    on = tiny(3, "sync.post_ps=100ps", "sync.visible_ps=40ps", "launch.event_ps=1ps", "block.load_ps=500ps")
    run = ran(program, on, plan(program), {"a": cost(1000), "b": cost(10)})
    assert min(run.of("a", "left")) == 1100
    assert max(run.of("a", "left")) == pytest.approx(1100 + 500 + 100, abs=4)
    assert run.of("b", "first_load") == [max(run.of("a", "left")) + 40]


@pytest.mark.parametrize(
    ("rate", "stay", "slow"),
    [("l2", True, 4), ("l2", False, 4), ("hbm", True, 1), ("hbm", False, 2)],  # L2: written once and read once
)
def test_partial_sums_draw_on_l2_and_on_hbm_only_where_they_do_not_stay(rate: str, stay: bool, slow: int) -> None:
    """Four blocks hand in a byte a ps each, 4 TB/s, to a memory of 2 TB/s."""
    block = replace(cost(WORK), partials_bytes=WORK, partials_stay=stay)
    program = program_of(grid_kernel("k", (4, 1)))
    assert ran(program, tiny(4, f"{rate}_bytes_per_s=2TB/s"), Plan(), {"k": block}).total == slow * WORK


def costed(kernel: Kernel, *settings: str) -> tuple[int, bool]:
    found = block_cost(kernel, machine(*settings), order_table(RowOrder(), kernel.grid), 1)
    return found.partials_bytes, found.partials_stay


def test_partial_sums_stay_where_those_of_all_blocks_fit_l2() -> None:
    kernel, _ = product(4)
    handed_in = ELEMENTS * 4
    assert costed(kernel, f"l2_capacity_bytes={4 * handed_in}B") == (handed_in, True)
    assert costed(kernel, f"l2_capacity_bytes={4 * handed_in - 1}B") == (handed_in, False)


@pytest.mark.parametrize("made", [product(1), product(3, reduce="serial")], ids=["whole", "serial"])
def test_whole_tiles_and_slices_in_sequence_hand_in_nothing(made: Parts) -> None:
    assert costed(made[0])[0] == 0
