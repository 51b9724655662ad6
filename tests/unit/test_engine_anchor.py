"""Kernels measured alone: the engine gives back their time, and keeps it by round on another machine."""

from __future__ import annotations

import pytest

from cusim.engine.predict import predict
from cusim.engine.result import Prediction
from cusim.errors import InputError
from cusim.machine import load_machine, with_overrides
from cusim.machine.machine import Machine
from cusim.policies.orders import GroupOrder
from cusim.policies.plan import Plan
from cusim.program.build import gemm_kernel, tile_kernel
from cusim.program.kernel import BlockResources, Gemm, Measured
from cusim.program.program import Program
from tests.engine_programs import program_of

WIDE = BlockResources(384, 168, 196 * 1024)
PAIRED = BlockResources(256, 128, 98 * 1024)
NS = 1000
H200 = load_machine("h200")


def up(time_us: float, on: str = "h200", block: BlockResources = WIDE, m: int = 768) -> Program:
    measured = (round(time_us * 1e6), on)
    return program_of(gemm_kernel("up", Gemm(m, 6144, 12288), (128, 256, 64), block, measured=measured))


def alone(program: Program, machine: Machine, plan: Plan | None = None) -> Prediction:
    predicted = predict(program, machine, plan or Plan())
    assert isinstance(predicted, Prediction)
    return predicted


@pytest.mark.parametrize("time_us", [120.5, 231.0, 1000.0])
def test_a_measured_gemm_alone_takes_its_time(time_us: float) -> None:
    assert alone(up(time_us), H200).span_ps == pytest.approx(time_us * 1e6, abs=10 * NS)


def test_the_order_of_its_tiles_changes_nothing_for_a_kernel_alone() -> None:
    predicted = alone(up(231.0), H200, Plan(order={"up": GroupOrder(2)}))
    assert predicted.span_ps == pytest.approx(231e6, abs=10 * NS)


@pytest.mark.parametrize("time_us", [400.0, 700.0])
def test_a_measured_gemm_of_two_blocks_an_sm_takes_its_time(time_us: float) -> None:
    assert alone(up(time_us, block=PAIRED, m=1536), H200).span_ps == pytest.approx(time_us * 1e6, abs=10 * NS)


@pytest.mark.parametrize("grid", [(6, 48, 1), (1, 1, 1), (50, 50, 1)])
def test_a_measured_kernel_of_unknown_work_takes_its_time(grid: tuple[int, int, int]) -> None:
    program = program_of(tile_kernel("softmax", grid, BlockResources(128, 40, 0), Measured(12_400_000, "h200")))
    assert alone(program, H200).span_ps == pytest.approx(12_400_000, abs=10 * NS)


def softmax(tiles: int, on: str) -> Program:
    block = BlockResources(384, 40, 100 * 1024)  # one block an SM on the A100, two on the H200
    return program_of(tile_kernel("softmax", (tiles, 1, 1), block, Measured(600_000_000, on)))


@pytest.mark.parametrize(("tiles", "rounds"), [(216, (2, 1)), (108, (1, 1)), (324, (3, 2)), (600, (6, 3))])
def test_a_time_of_unknown_work_measured_elsewhere_is_kept_by_round(tiles: int, rounds: tuple[int, int]) -> None:
    program = softmax(tiles, "a100")
    there, here = alone(program, load_machine("a100")), alone(program, H200)
    assert (there.rounds, here.rounds) == rounds
    assert there.span_ps == pytest.approx(600e6, abs=10 * NS)
    assert here.span_ps == pytest.approx(600e6 * rounds[1] / rounds[0], rel=0.02)


def test_what_if_keeps_the_time_by_round() -> None:
    """144 tiles: two rounds on 132 SMs, four on 36."""
    fewer = with_overrides(H200, ["machine.sms=36", "sustained_share=1"])
    many = with_overrides(H200, ["sustained_share=1"])
    assert alone(up(231.0), fewer).span_ps == pytest.approx(2 * alone(up(231.0), many).span_ps, rel=0.02)


def test_a_time_shorter_than_its_overheads_is_refused_and_names_the_key() -> None:
    with pytest.raises(InputError, match=r"kernel\[0\]\.time_us"):
        predict(up(1.0), H200, Plan())


def test_an_unknown_home_is_refused_and_names_those_that_are_known() -> None:
    with pytest.raises(InputError, match=r"h201.*unknown machine.*h200"):
        predict(up(231.0, "h201"), H200, Plan())
