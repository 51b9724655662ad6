"""The whole path from a plan to a measurement, on the device that needs no GPU."""

import numpy as np
import pytest

from backend_gpu.bench import Bench, Mode
from backend_gpu.checks import FAULTS, CheckFailedError, caught, check_runs, compare, plant, raise_if_wrong
from backend_gpu.launch import consumer_first, steps_of, withheld
from backend_gpu.null_device import NullDevice
from backend_gpu.numerics import references, tolerance
from backend_gpu.runner import Deadlock, Measurement, run
from cusim.errors import InputError
from cusim.machine import load_machine
from cusim.policies.plan import Plan
from cusim.program.build import tile_kernel
from cusim.program.kernel import BlockResources, Stream
from cusim.program.program import Program
from tests.gpu_programs import PLANS, bench_of, pair, plan_of


def measured(program: Program, plan: Plan, **how: object) -> Measurement:
    outcome = run(program, plan, NullDevice(4), repeats=3, **how)  # type: ignore[arg-type]
    assert isinstance(outcome, Measurement)
    return outcome


@pytest.mark.parametrize(("policy", "launch"), PLANS)
def test_every_launch_gives_right_numbers_and_a_trace(policy: str, launch: str | None) -> None:
    program = pair()
    plan = plan_of(program, policy, launch)
    outcome = measured(program, plan)
    assert all(check.passed for check in outcome.checks)
    assert {check.what.split(",")[0] for check in outcome.checks} >= {"plain", "reverse ticket order"}
    trace = outcome.trace
    assert trace is not None
    assert trace.blocks == 27
    assert trace.meta["kind"] == "measured"
    assert trace.meta["launch"] == plan.launch
    assert trace.meta["samples"] == len(trace.meta["samples_ns"]) == 3
    assert outcome.span_ps == trace.span_ps > 0


@pytest.mark.parametrize(
    "program", [pair(split=2), pair(dtype="bf16"), pair(swiglu=True)], ids=["split", "bf16", "swiglu"]
)
def test_splits_types_and_prologues(program: Program) -> None:
    outcome = measured(program, plan_of(program, "tile", "wait-first", flags="R"))
    assert all(check.passed for check in outcome.checks)


@pytest.mark.parametrize("flags", ["R", "T", "RT", "A"])
def test_flags(flags: str) -> None:
    program = pair()
    assert measured(program, plan_of(program, "tile", "wait-first", flags=flags)).total_ps > 0


def test_a_run_is_repeated_without_clearing_and_alternates_its_inputs() -> None:
    program = pair()
    bench = bench_of(program, plan_of(program, "row", "pdl"))
    for number in (0, 1, 0, 1, 1):
        bench.spoil(number)
        assert bench.run(bench.commands(number, Mode())) is None
        raise_if_wrong([compare(bench, number, "again", references(bench, number))])
    assert bench.epoch == 5


def test_counters_may_wrap() -> None:
    program = pair()
    bench = bench_of(program, plan_of(program, "tile", "wait-first"))
    bench.epoch = 2**32 - 2  # a semaphore of the tile policy gets one post a run
    for semaphores in bench._semaphores:
        semaphores.fill(np.uint32(bench.epoch))
    assert bench.epoch * 12 > 2**32
    for name in ("tickets", "started"):
        for place, kernel in enumerate(program.kernels):
            line = 2 + 2 * place + (name == "started")
            bench._words[32 * line] = np.uint32(bench.epoch * kernel.blocks & 0xFFFFFFFF)
    bench.spoil(0)
    assert bench.run(bench.commands(0, Mode())) is None
    raise_if_wrong([compare(bench, 0, "wrapped", references(bench, 0))])


@pytest.mark.parametrize("policy", ["row", "tile"])
@pytest.mark.parametrize("launch", ["wait-first", "pdl"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_caught(policy: str, launch: str, fault: str) -> None:
    program = pair()
    found = caught(bench_of(program, plant(plan_of(program, policy, launch), fault), sms=32))
    assert found is not None
    assert ("semaphore" in found) == (fault == "missing post")


def test_a_sound_plan_is_not_caught() -> None:
    program = pair()
    assert caught(bench_of(program, plan_of(program, "tile", "wait-first"), sms=32)) is None


def test_a_missing_wait_is_a_failure_and_never_a_time() -> None:
    program = pair()
    plan = plant(plan_of(program, "row", "wait-first"), "missing wait")
    with pytest.raises(CheckFailedError, match=r"no time is given(.|\n)*down inf"):
        run(program, plan, NullDevice(32), repeats=2)


def test_a_missing_post_ends_as_a_deadlock_that_names_the_semaphore() -> None:
    program = pair()
    outcome = run(program, plant(plan_of(program, "row", "wait-first"), "missing post"), NullDevice(4), repeats=2)
    assert isinstance(outcome, Deadlock)
    assert "waits for semaphore 0 of up>down, which lacks 4 of its posts" in outcome.text


@pytest.mark.parametrize("how", ["withheld", "consumer first"])
def test_a_planted_deadlock_ends_and_the_bench_works_again(how: str) -> None:
    program = pair()
    plan = plan_of(program, "row", "wait-first")
    bench = bench_of(program, plan)
    steps = withheld(steps_of(program, plan), 0) if how == "withheld" else consumer_first(program, 1, 8)
    fault = bench.run(bench.commands(0, Mode(), steps))
    assert fault is not None
    assert fault.text.endswith("of up>down, which lacks 4 of its posts")
    bench.reset()
    assert isinstance(check_runs(bench), list)


def test_a_wait_kernel_that_never_sees_its_producer_is_named() -> None:
    program = pair()
    plan = plan_of(program, "row", "wait-first")
    bench = bench_of(program, plan)
    steps = tuple(step for step in steps_of(program, plan) if getattr(step, "kernel", 1) != 0)
    fault = bench.run(bench.commands(0, Mode(), steps))
    assert fault is not None
    assert "waits for" in fault.text


def test_the_occupancy_of_the_device_must_be_the_models() -> None:
    program = pair()
    assert measured(program, plan_of(program, "row"), machine=load_machine("h200")).notes == ()


def test_what_cannot_run_is_refused_before_anything_does() -> None:
    kernel, buffers = tile_kernel("copy", (2, 2, 1), BlockResources(64, 32, 0), Stream(64))
    with pytest.raises(InputError, match="multiplies matrices only"):
        run(Program((kernel,), buffers), Plan(), NullDevice())
    program = pair()
    with pytest.raises(InputError, match="needs a policy"):
        run(program, Plan(launch="wait-first"), NullDevice())


def test_unstamped_runs_have_no_trace() -> None:
    program = pair()
    outcome = measured(program, plan_of(program, "row"), stamped=False, check=False)
    assert (outcome.trace, outcome.span_ps, outcome.stamped, outcome.checks) == (None, None, None, ())


def test_the_same_seed_gives_the_same_inputs() -> None:
    program = pair()
    first, second = (Bench(NullDevice(), program, Plan(), seed=5) for _ in range(2))
    other = Bench(NullDevice(), program, Plan(), seed=6)
    assert np.array_equal(first.buffers[0]["up.a"], second.buffers[0]["up.a"])
    assert not np.array_equal(first.buffers[0]["up.a"], first.buffers[1]["up.a"])
    assert not np.array_equal(first.buffers[0]["up.a"], other.buffers[0]["up.a"])


def test_the_tolerance_grows_with_the_sum_and_with_the_type() -> None:
    half, brain = pair(), pair(dtype="bf16")
    assert tolerance(half.kernel("up")) < tolerance(half.kernel("down")) < tolerance(brain.kernel("up"))
