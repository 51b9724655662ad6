"""The driver's calls and the prepared runs, against a driver and a CuPy that are made up."""

import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from backend_gpu import cuda_run, driver
from backend_gpu.bench import Bench, Mode
from backend_gpu.cuda_run import CudaCommands, Helpers
from backend_gpu.device import Job
from backend_gpu.launch import steps_of
from backend_gpu.null_device import NullDevice
from cusim.errors import CusimError
from cusim.policies.plan import Plan
from tests.gpu_programs import pair, plan_of

HELPERS = Helpers(101, 102, 103)


class FakeDriver:
    """Answers every call with *status* and keeps what it was asked."""

    def __init__(self, status: int = 0) -> None:
        self.status = status
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Callable[..., int]:
        def call(*arguments: Any) -> int:
            if name == "cuGetErrorName":
                arguments[1]._obj.value = b"CUDA_ERROR_MADE_UP"
                return 0
            self.calls.append((name, arguments))
            return self.status

        return call


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    made = FakeDriver()
    monkeypatch.setattr(driver, "driver", lambda: made)
    return made


def test_structures_have_the_layout_of_the_c_header() -> None:
    assert ctypes.sizeof(driver.LaunchAttribute) == 72
    assert ctypes.sizeof(driver.LaunchConfig) == 56
    assert driver.LaunchAttribute.value.offset == 8
    assert (driver.LaunchConfig.stream.offset, driver.LaunchConfig.attributes.offset) == (32, 40)


def test_a_refused_call_is_named_with_its_error(fake: FakeDriver) -> None:
    fake.status = 716
    with pytest.raises(driver.DriverError, match=r"refused cuModuleUnload: CUDA_ERROR_MADE_UP \(716\)"):
        driver.unload_module(7)
    with pytest.raises(driver.DriverError, match="cuStreamQuery"):
        driver.idle(0)


def test_a_busy_stream_is_no_error(fake: FakeDriver) -> None:
    assert driver.idle(0)
    fake.status = 600
    assert not driver.idle(0)


@pytest.mark.parametrize("early", [False, True])
def test_a_launch_is_one_call_with_everything_prepared(fake: FakeDriver, early: bool) -> None:
    value = np.array([5], np.uint64)
    launch = driver.Launch(42, 12, 384, 2048, 9, (value,), early=early)
    launch.go()
    launch.go()
    assert [name for name, _ in fake.calls] == ["cuLaunchKernelEx"] * 2
    config = fake.calls[0][1][0]._obj
    assert (config.grid_x, config.block_x, config.smem, config.stream) == (12, 384, 2048, 9)
    assert config.count == int(early)
    if early:
        assert (config.attributes[0].id, config.attributes[0].value[0]) == (6, 1)
    pointers = fake.calls[0][1][2]
    assert pointers[0] == value.ctypes.data


class Stream:
    """A stream of the made-up CuPy, which counts graphs."""

    made = 0

    def __init__(self, **_: object) -> None:
        Stream.made += 1
        self.ptr = Stream.made

    def begin_capture(self) -> None: ...

    def end_capture(self) -> Any:
        return SimpleNamespace(upload=lambda stream: None, launch=lambda stream: LOG.append(("graph",)))

    def wait_event(self, event: object) -> None:
        LOG.append(("wait event", self.ptr))

    def synchronize(self) -> None: ...


LOG: list[tuple[Any, ...]] = []


def made_up_cupy() -> Any:
    event = SimpleNamespace(record=lambda stream: LOG.append(("record", stream.ptr)))
    pinned = np.zeros(1, np.uint32)
    pinned_block = type("Pinned", (bytearray,), {"ptr": pinned.ctypes.data})(4)
    return SimpleNamespace(
        zeros=lambda shape, dtype: SimpleNamespace(data=SimpleNamespace(ptr=4096)),
        cuda=SimpleNamespace(
            Event=lambda **_: event,
            Device=lambda: SimpleNamespace(synchronize=lambda: None),
            get_elapsed_time=lambda first, last: 0.25,
            alloc_pinned_memory=lambda size: pinned_block,
            runtime=SimpleNamespace(memcpyAsync=lambda to, *_: LOG.append(("write", to))),
        ),
    )  # fmt: skip


def job_of(plan: Plan) -> Job:
    """The null device's job, its kernels given made-up handles."""
    program = pair()
    bench = Bench(NullDevice(), program, plan)
    job = bench._job(0, Mode(), steps_of(program, plan))
    bound = SimpleNamespace(shape=SimpleNamespace(shared_bytes=1024), tensor_maps=False)
    loaded = [
        SimpleNamespace(grid=each.grid, threads=64, handle=(place, bound)) for place, each in enumerate(bench.loaded)
    ]
    return Job(
        program, plan, job.steps, loaded, job.params, job.epoch_address, job.started_addresses, job.fault_address,  # type: ignore[arg-type]
        1_000, graph=plan.launch == "graph",
    )  # fmt: skip


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What the host does, in order: launches by function and stream, waits, events."""
    LOG.clear()

    class Launch:
        def __init__(self, function: int, *rest: Any, early: bool = False) -> None:
            self.what = ("launch", function, *(["early"] if early else []))

        def go(self) -> None:
            LOG.append(self.what)

    monkeypatch.setattr(driver, "Launch", Launch)
    monkeypatch.setattr(driver, "idle", lambda stream: True)
    monkeypatch.setattr(driver, "wait_value", lambda stream, address, value: LOG.append(("value", value)))
    return LOG


def commands_of(plan: Plan, *, empty: bool = False) -> CudaCommands:
    return CudaCommands(made_up_cupy(), job_of(plan), HELPERS, [Stream(), Stream()], Stream(), empty=empty)


def test_stream_order_is_the_head_and_then_the_kernels(logged: list[tuple[Any, ...]]) -> None:
    commands_of(Plan()).issue(1)
    assert logged == [("launch", 101), ("launch", 0), ("launch", 1)]


def test_a_timed_run_queues_behind_a_busy_kernel_and_the_head_is_outside(logged: list[tuple[Any, ...]]) -> None:
    plan = plan_of(pair(), "row", "pdl")
    assert commands_of(plan).timed(3) == 250_000_000
    kinds = [entry[0] if entry[0] == "record" else entry[:3] for entry in logged]
    assert kinds == [("launch", 103), ("launch", 101), "record", ("launch", 0), ("launch", 1, "early"), "record"]


def test_an_empty_run_has_no_kernels_and_no_epoch(logged: list[tuple[Any, ...]]) -> None:
    commands_of(plan_of(pair(), "row", "wait-first"), empty=True).timed(0)
    assert [entry[0] for entry in logged] == ["launch", "record", "record"]


def test_a_graph_is_replayed_with_its_head_inside(logged: list[tuple[Any, ...]]) -> None:
    commands = commands_of(Plan(launch="graph"))
    logged.clear()
    commands.issue(1)
    commands.issue(2)
    assert logged == [("graph",), ("graph",)]


def test_wait_kernels_and_wait_values_stand_before_the_consumer(logged: list[tuple[Any, ...]]) -> None:
    commands_of(plan_of(pair(), "row", "wait-first")).issue(1)
    launched = [entry[1] for entry in logged if entry[0] == "launch"]
    assert launched == [101, 0, 102, 1]
    logged.clear()
    commands_of(plan_of(pair(), "row", "wait-value")).issue(5)
    assert ("value", 4 * 12 + 1) in logged


def test_the_watchdog_sets_the_abort_flag_and_lets_streams_go(
    logged: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda_run, "_PATIENCE_S", 0.01)
    monkeypatch.setattr(driver, "idle", lambda stream: any(entry[0] == "write" for entry in LOG))
    commands = commands_of(plan_of(pair(), "row", "wait-value"))
    commands.issue(1)
    job = commands._job
    assert [entry[1] for entry in logged if entry[0] == "write"] == [job.fault_address, job.started_addresses[0]]


def test_a_gpu_that_does_not_come_to_rest_is_said_to(
    logged: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda_run, "_PATIENCE_S", 0.01)
    monkeypatch.setattr(cuda_run, "_LAST_S", 0.01)
    monkeypatch.setattr(driver, "idle", lambda stream: False)
    with pytest.raises(CusimError, match="does not come to rest"):
        commands_of(Plan()).issue(1)
