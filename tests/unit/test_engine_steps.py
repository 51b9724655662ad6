"""The k step of a block by hand: products, the SM's port or the round trip of its loads, whichever takes longest.

At 1 GHz a step of 64 x 64 x 64 fp16 takes 128 clocks of products at 4096 operations a clock, and loads 16 KiB.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from cusim.engine.cost import FULL_PIPE, JOIN_ORDER, BlockCost, block_cost
from cusim.engine.predict import predict
from cusim.engine.result import Prediction
from cusim.machine.machine import Machine
from cusim.policies.flags import Flags
from cusim.policies.orders import RowOrder, order_table
from cusim.policies.plan import Plan
from cusim.policies.row import RowPolicy
from cusim.program.build import gemm_kernel
from cusim.program.kernel import BlockResources, Gemm, Kernel
from tests.engine_programs import plan, program_of, tiny

BLOCK = BlockResources(256, 128, 64 * 1024)
NS = 1000
#: The tile in fp16 at 4096 bytes a clock.
STORED_NS = 2
AMPLE = ("hbm_bytes_per_s=1000TB/s", "l2_bytes_per_s=1000TB/s", "l2_link_bytes_per_s=1000TB/s")


def machine(*settings: str) -> Machine:
    clocks = ("clock_hz=1GHz", "tensor_clock_hz=1GHz", "tensor_flops_per_clock_sm=4096flop/clock")
    return tiny(1, *clocks, "tensor_efficiency=1", "lone_block_share=1", *AMPLE, *settings)


def kernel(steps: int = 8, stages: int = 4, **kinds: str) -> Kernel:
    gemm = Gemm(64, 64, 64 * steps, **kinds)  # type: ignore[arg-type]
    return gemm_kernel("k", gemm, (64, 64, 64), BLOCK, stages=stages)[0]


def cost_of(what: Kernel, *settings: str) -> BlockCost:
    return block_cost(what, machine(*settings), order_table(RowOrder(), what.grid), 1)


@pytest.mark.parametrize(
    ("settings", "step_ns"),
    [
        ((), 128),
        (("block.step_clocks=22clock",), 150),
        (("sm_l2_bytes_per_clock=64B/clock",), 256),
        (("sm_l2_bytes_per_clock=64B/clock", "block.step_clocks=200clock"), 328),
        (("block.load_ps=384ns",), 128),  # with the products 512, in which four stages come round
        (("block.load_ps=400ns",), 132),
        (("block.load_ps=800ns",), 232),
        (("block.load_ps=800ns", "block.step_clocks=22clock"), 237.5),
        (("block.load_ps=800ns", "sm_l2_bytes_per_clock=64B/clock"), 256),
        (("tensor_clock_hz=0.5GHz",), 256),
        (("tensor_clock_hz=0.5GHz", "block.step_clocks=22clock"), 300),
    ],
)
def test_a_step_takes_the_longest_of_products_port_and_round_trip(settings: tuple[str, ...], step_ns: float) -> None:
    found = cost_of(kernel(), *settings)
    assert found.step_ps == step_ns * NS
    products = 256 if "tensor_clock_hz=0.5GHz" in settings else 128
    assert found.pipe_load == pytest.approx(FULL_PIPE * products / step_ns, abs=1)
    assert found.l2_bytes_per_s == pytest.approx(16384 / step_ns * 1e9, rel=1e-9)


def test_memory_is_drawn_on_by_the_shares_of_a_whole_wave() -> None:
    """2 x 2 tiles as wide as high, all at once: 4 of 8 panels come from HBM, and two operands' 1.0 and 1.5 cross."""
    made, _ = gemm_kernel("k", Gemm(128, 128, 2**20), (64, 64, 64), BLOCK, stages=4)
    found = block_cost(made, machine("limits.sms=4"), order_table(RowOrder(), made.grid), 1)
    assert found.hbm_bytes_per_s == pytest.approx(found.l2_bytes_per_s * 4 / 8, rel=1e-9)
    assert found.link_bytes_per_s == pytest.approx(found.l2_bytes_per_s * (1.0 + 1.5) / 8, rel=1e-9)


def ring_ns(steps: int, stages: int, load_ns: float, step_ns: float) -> float:
    """The end of a ring of stages, load by load: a stage is loaded anew once its products are done."""
    ends: list[float] = []
    for step in range(steps):
        asked = ends[step - stages] if step >= stages else 0.0
        ends.append(max(asked + load_ns, ends[-1] if ends else 0.0) + step_ns)
    return ends[-1]


@pytest.mark.parametrize("rounds", [1, 2, 5])
@pytest.mark.parametrize("stages", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("load_ns", [100, 400, 800, 1600])
def test_a_main_loop_takes_what_a_ring_of_stages_takes(load_ns: int, stages: int, rounds: int) -> None:
    """Products of 150 ns a step; the prologue ends where the first stages' loads come in."""
    steps = stages * rounds
    made = gemm_kernel("k", Gemm(64, 64, 64 * steps), (64, 64, 64), BLOCK, stages=stages)
    fixed = ("block.prologue_ps=900ns", "block.epilogue_ps=70ns", "block.step_clocks=22clock")
    run = predict(program_of(made), machine(f"block.load_ps={load_ns}ns", *fixed), Plan())
    assert isinstance(run, Prediction)
    expected = 900 + ring_ns(steps, stages, load_ns, 150) + 70 + STORED_NS
    assert run.total_ps == pytest.approx(expected * NS, abs=steps + 4)
    assert run.trace.tiles["first_load"].tolist() == pytest.approx([900 * NS], abs=1)


@pytest.mark.parametrize("load_ns", [400, 800])
def test_after_a_wait_before_the_first_load_the_same_round_trip_follows(load_ns: int) -> None:
    up = gemm_kernel("a", Gemm(64, 256, 64 * 40), (64, 256, 64), BLOCK, stages=4)
    down = gemm_kernel("b", Gemm(64, 64, 256), (64, 64, 64), BLOCK, a="a", stages=4)
    program = program_of(up, down)
    on = machine(f"block.load_ps={load_ns}ns", "block.prologue_ps=900ns", "launch.event_ps=1ps", "limits.sms=2")
    on = replace(on, dispatch=replace(on.dispatch, sm_order=(0, 1)))
    run = predict(program, on, plan(program, policy=RowPolicy(), flags=Flags(R=True)))
    assert isinstance(run, Prediction)
    tiles = run.trace.tiles
    assert tiles["wait_total"][1] > 0
    took = int(tiles["end"][1] - tiles["first_load"][1])
    assert took == pytest.approx((load_ns + 4 * 128 + STORED_NS) * NS, abs=8)


@pytest.mark.parametrize("threads", [128, 256])
@pytest.mark.parametrize("clocks", [0, 4, 12])
def test_joining_swiglus_halves_overlaps_with_the_products(clocks: int, threads: int) -> None:
    """64 x 64 elements a step, shared out among the threads; products of 128 + 22 clocks beside."""
    swiglu = replace(kernel(prologue="swiglu"), block=replace(BLOCK, threads=threads))
    found = cost_of(swiglu, "block.step_clocks=22clock", f"block.join_clocks={clocks}clock")
    join = clocks * 64 * 64 / threads
    assert found.step_ps == pytest.approx((150**JOIN_ORDER + join**JOIN_ORDER) ** (1 / JOIN_ORDER) * NS, abs=1)
    plain = cost_of(kernel(), "block.step_clocks=22clock", f"block.join_clocks={clocks}clock")
    assert plain.step_ps == 150 * NS
