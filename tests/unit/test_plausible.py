"""Notes on kernels whose numbers can hardly be meant."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cusim.engine.predict import predict
from cusim.machine import load_machine, with_overrides
from cusim.program.build import gemm_kernel
from cusim.program.kernel import BlockResources, Gemm
from cusim.program.program import Program
from cusim.report.plausible import kernel_notes
from cusim.workloads import build_workload, workload_names

H200 = load_machine("h200")
BLOCK = BlockResources(384, 168, 196 * 1024)


def notes(block: BlockResources = BLOCK, time_us: float | None = None, measured_on: str = "h200") -> list[str]:
    measured = None if time_us is None else (round(time_us * 1e6), measured_on)
    kernel, buffers = gemm_kernel("up", Gemm(768, 6144, 12288), (128, 256, 64), block, measured=measured)
    return kernel_notes(Program((kernel,), buffers), H200, predict)


@pytest.mark.parametrize("name", workload_names())
@pytest.mark.parametrize("machine", ["h200", "a100", "v100"])
def test_shipped_workloads_are_beyond_doubt(name: str, machine: str) -> None:
    gpu = load_machine(machine)
    workload = build_workload(name, machine)
    assert not [text for choice in workload.choices.values() for text in kernel_notes(choice.program, gpu, predict)]


def test_a_time_beyond_the_peak_is_noted() -> None:
    (text,) = notes(time_us=100)
    assert text == "up: its measured time means 1160 TFLOP/s, the tensor cores of H200 have 1071"


@pytest.mark.parametrize(
    ("time_us", "said"),
    [(231, None), (1000, None), (5000, "times the"), (120, None)],
)
def test_a_time_far_from_the_models_is_noted(time_us: float, said: str | None) -> None:
    found = notes(time_us=time_us)
    assert [said in text for text in found if said] == ([True] if said else [])
    assert len(found) == (said is not None)


def test_what_if_settings_do_not_move_the_model_that_a_time_is_put_against() -> None:
    kernel, buffers = gemm_kernel("up", Gemm(768, 6144, 12288), (128, 256, 64), BLOCK, measured=(231_000_000, "h200"))
    slow = with_overrides(H200, ["clock_hz=100MHz"])
    assert not kernel_notes(Program((kernel,), buffers), slow, predict)


def test_blocks_that_can_hardly_be_meant_are_noted() -> None:
    assert notes(replace(BLOCK, threads=250)) == ["up: 250 threads are no multiple of 32: the last warp is part empty"]
    (text,) = notes(replace(BLOCK, smem_bytes=47 * 1024))
    assert "47 KiB of shared memory hold less than one k step of the tile's operands (48 KiB)" in text
    assert not notes(replace(BLOCK, smem_bytes=48 * 1024))
