"""Programs under plans on a real GPU: numbers, planted faults, deadlocks that end. Run with ``pytest -m gpu``."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.gpu
pytest.importorskip("cupy", reason="needs one of the gpu extras")

from backend_gpu.bench import Bench, Mode  # noqa: E402
from backend_gpu.checks import FAULTS, caught, compare, plant  # noqa: E402
from backend_gpu.launch import consumer_first, steps_of, withheld  # noqa: E402
from backend_gpu.numerics import references  # noqa: E402
from backend_gpu.runner import Measurement, run  # noqa: E402
from cusim.machine import load_machine  # noqa: E402
from cusim.policies.registry import build_plan  # noqa: E402
from cusim.program.program import Program  # noqa: E402
from cusim.workloads import build_workload  # noqa: E402

PLANS = (
    ("stream", None), ("stream", "graph"), ("stream", "pdl"), ("row", "wait-first"), ("row", "wait-all"),
    ("row", "wait-value"), ("row", "pdl"), ("tile", "wait-first"), ("tile", "pdl"), ("batched:2", "wait-first"),
)  # fmt: skip
BUDGET_NS = 100_000_000


@pytest.fixture(scope="module")
def device() -> Any:
    from backend_gpu.cuda_device import CudaDevice

    return CudaDevice()


def mlp(m: int) -> Program:
    return build_workload("gpt3-mlp", "h200", m=m).choice("row").program


@pytest.mark.parametrize("m", [256, 768])
@pytest.mark.parametrize(("policy", "launch"), PLANS)
def test_numbers_are_right_and_stamps_change_little(device: Any, m: int, policy: str, launch: str | None) -> None:
    program = mlp(m)
    plan = build_plan(program, policy=policy, launch=launch, order="group:2")
    machine = load_machine("h200") if device.facts.sms == 132 else None
    outcome = run(program, plan, device, repeats=9, machine=machine)
    assert isinstance(outcome, Measurement)
    assert all(check.passed for check in outcome.checks)
    assert outcome.trace is not None
    assert outcome.trace.blocks == sum(kernel.blocks for kernel in program.kernels)
    assert 0 < outcome.trace.span_ps <= 1.1 * outcome.total_ps
    assert abs(outcome.perturbation_pct or 0) < 2
    assert outcome.trace.meta["timer_clamped"] == 0


@pytest.mark.parametrize("policy", ["row", "tile"])
@pytest.mark.parametrize("launch", ["wait-first", "pdl"])
@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_caught(device: Any, policy: str, launch: str, fault: str) -> None:
    program = mlp(768)
    plan = plant(build_plan(program, policy=policy, launch=launch, order="group:2"), fault)
    assert caught(Bench(device, program, plan, budget_ns=BUDGET_NS)) is not None


@pytest.mark.parametrize("how", ["withheld", "consumer first"])
def test_a_deadlock_ends_names_the_semaphore_and_leaves_the_gpu_usable(device: Any, how: str) -> None:
    import cupy

    program = mlp(768)
    plan = build_plan(program, policy="row", launch="wait-first", order="group:2")
    bench = Bench(device, program, plan, budget_ns=BUDGET_NS)
    slots = bench.loaded[1].blocks_per_sm * device.facts.sms
    steps = withheld(steps_of(program, plan), 0) if how == "withheld" else consumer_first(program, 1, slots)
    fault = bench.run(bench.commands(0, Mode(), steps))
    assert fault is not None
    assert "of up>down, which lacks" in fault.text
    one = cupy.arange(256 * 256, dtype=cupy.float64).reshape(256, 256) % 7
    assert bool((one @ one == cupy.asarray(one.get() @ one.get())).all())
    bench.reset()
    bench.spoil(0)
    assert bench.run(bench.commands(0, Mode())) is None
    assert compare(bench, 0, "after", references(bench, 0)).passed
