"""Micro-benchmarks without a GPU: the kernels compile, every part runs to its end, the record is as its schema says."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from backend_gpu import build as building
from backend_gpu import cuda_device, driver, micro_device, micro_memory, microbench
from backend_gpu.build import BuildError, compile_source, find_compiler, kernel_sources
from backend_gpu.micro_blocks import blocks
from backend_gpu.micro_clock import clock, steps
from backend_gpu.micro_record import SCHEMA, Findings, write_findings
from cusim.errors import InputError

#: Parts that run matrix products; test_gpu_micro_products.py has them.
OF_PRODUCTS = (clock, steps, blocks)
REGISTERS = (24, 32, 40, 64, 72, 96, 128, 168, 200, 255)


@pytest.mark.parametrize("arch", ["sm_70", "sm_80", "sm_90a"])
def test_the_kernels_compile_without_spills(arch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(building.CACHE_VARIABLE, str(tmp_path))
    try:
        compiler = find_compiler()
    except BuildError as error:
        pytest.skip(f"the kernels cannot be compiled here: {error}")
    if arch == "sm_70" and int(compiler.version.split(".")[0]) > 12:
        pytest.skip(f"NVRTC {compiler.version} has no {arch}")
    found = compile_source(kernel_sources()["micro.cu"], arch).resources
    names = {name.removeprefix("cusim_micro_") for name in found}
    assert names == {"empty", "hold", "wait", "spread", "answer", "posts", "costs", "copy"} | {
        f"keep_{cap}" for cap in REGISTERS
    }
    assert all(not each.spill_bytes for each in found.values())
    for cap in REGISTERS:
        assert cap - 8 < found[f"cusim_micro_keep_{cap}"].registers <= cap


def test_a_quantity_keeps_its_samples_and_their_quartiles(tmp_path: Path) -> None:
    found = Findings()
    found.add("gap", "ns", "how", [4, 1, 3, 2, 10.00049])
    found.add("one", "ns", "how", [7])
    found.add("none", "ns", "how", [])
    found.table("order", "how", ("sm", "block"), [(1, 2), (3, 4)])
    write_findings(tmp_path / "micro.json", found, {"gpu": "none"})
    held = json.loads((tmp_path / "micro.json").read_text())
    assert held["schema"] == SCHEMA == "cusim.micro/1"
    assert held["provenance"] == {"gpu": "none"}
    assert held["quantities"]["gap"] == {
        "unit": "ns", "how": "how", "count": 5, "median": 3, "quartiles": [2, 4], "min": 1, "max": 10,
        "samples": [4, 1, 3, 2, 10],
    }  # fmt: skip
    assert held["quantities"]["one"]["quartiles"] == [7, 7]
    assert held["dropped"] == {"none": "no samples"}
    assert held["tables"]["order"]["rows"] == [[1, 2], [3, 4]]


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        write_findings(tmp_path / "absent" / "micro.json", Findings(), {})


class FakeStream:
    """A stream that does nothing and captures graphs that do nothing."""

    numbers = itertools.count(1)

    def __init__(self, **options: Any) -> None:
        self.ptr = next(self.numbers)

    def wait_event(self, event: Any) -> None: ...
    def begin_capture(self) -> None: ...
    def end_capture(self) -> Any:
        return SimpleNamespace(launch=lambda stream: None)


class FakeDevice:
    """A device whose memory reads as a ramp, and that took a millisecond for everything."""

    facts = SimpleNamespace(name="none", sms=132, timer_step_ns=32, more={})
    arch = "sm_90a"
    broken = False

    def __init__(self) -> None:
        event = SimpleNamespace(record=lambda stream: None)
        self.xp = SimpleNamespace(
            zeros=lambda count, dtype: np.zeros(min(count, 2**20), dtype),
            asnumpy=lambda array: np.arange(1, len(array) + 1) * 32,
            cuda=SimpleNamespace(
                Stream=FakeStream, Event=lambda **options: event, get_elapsed_time=lambda *events: 1.0,
                Device=lambda: SimpleNamespace(synchronize=lambda: None),
            ),
        )  # fmt: skip

    def address(self, array: Any) -> int:
        return int(array.ctypes.data)

    def busy(self, stream: Any, nanoseconds: int) -> None: ...

    def works(self) -> bool:
        return not self.broken


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The launches made on a device that is not there."""
    made: list[tuple[Any, ...]] = []

    class FakeLaunch:
        def __init__(self, function: Any, *rest: Any, early: bool = False) -> None:
            self.given = (function, *rest, early)

        def go(self) -> None:
            made.append(self.given)

    built = SimpleNamespace(cubin=b"")
    for module in (micro_device, micro_memory):
        monkeypatch.setattr(module, "compile_source", lambda source, arch: built)
    monkeypatch.setattr(cuda_device, "CudaDevice", FakeDevice)
    monkeypatch.setattr(microbench, "_smi", dict)
    monkeypatch.setattr(driver, "load_module", lambda cubin: 1)
    monkeypatch.setattr(driver, "get_function", lambda module, name: name)
    monkeypatch.setattr(driver, "allow_shared", lambda function, size: None)
    monkeypatch.setattr(driver, "static_shared", lambda function: 0)
    monkeypatch.setattr(driver, "registers_of", lambda function: int(function.rsplit("_", 1)[1]))
    monkeypatch.setattr(driver, "blocks_per_sm", lambda function, threads, size: 3)
    monkeypatch.setattr(driver, "wait_value", lambda stream, address, value: None)
    monkeypatch.setattr(driver, "Launch", FakeLaunch)
    return made


def test_every_part_runs_to_its_end(fake: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    """But for those that run matrix products, which a device that does nothing has none of: see their own tests."""
    monkeypatch.setattr(microbench, "PARTS", tuple(part for part in microbench.PARTS if part not in OF_PRODUCTS))
    found, provenance = microbench.measure(60)
    assert {name for name in found.dropped if name in {part.__name__ for part in microbench.PARTS}} == set()
    assert set(provenance["part_seconds"]) == {part.__name__ for part in microbench.PARTS}
    assert {"host_enqueue", "gap_graph_132", "semaphore_red", "slot_refill_1", "bandwidth_hbm"} <= (
        set(found.quantities) | set(found.dropped)
    )
    assert len(found.tables["launch_order"]["rows"]) == 6 * 2 * 9
    assert any(given[-1] for given in fake)  # some launch was early


def test_a_part_that_fails_does_not_take_the_others_with_it(
    fake: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(bench: Any) -> None:
        raise RuntimeError("no such luck")

    monkeypatch.setattr(microbench, "PARTS", (fails, micro_memory.bandwidth))
    found, _ = microbench.measure(60)
    assert found.dropped == {"fails": "RuntimeError: no such luck"}
    assert "bandwidth_hbm" in found.quantities
    monkeypatch.setattr(FakeDevice, "broken", True)
    found, _ = microbench.measure(60)
    assert not found.quantities


def test_no_part_begins_past_the_time(fake: list[tuple[Any, ...]]) -> None:
    found, _ = microbench.measure(-1)
    assert set(found.dropped.values()) == {"no time left"}
