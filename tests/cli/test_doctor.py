"""`cusim doctor` and the detection behind it, with drivers that are not there and drivers that are made up."""

import ctypes
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from backend_gpu import detect
from cli import checkup
from cli.checkup import MODULES, clashes, module_folder

Call = Callable[..., Result]


def test_text_and_json_tell_the_same(call: Call) -> None:
    text, data = call("doctor"), json.loads(call("doctor", "--json").stdout)
    assert text.exit_code == 0
    assert data["schema"] == "cusim.doctor/1"
    for name, version in data["packages"].items():
        assert f"{name} " in text.stdout
        assert version in text.stdout
    assert text.stdout.splitlines()[-2] == "Simulator: ready."
    assert {part["name"] for part in data["gpu"]["parts"]} == {"driver", "CuPy", "NVRTC"}


def test_a_missing_package_is_exit_1_and_named(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkup, "NEEDED", ("numpy", "no-such-package"))
    done = call("doctor")
    assert done.exit_code == 1
    assert re.search(r"^no-such-package +MISSING$", done.stdout, re.MULTILINE)
    assert "Simulator: not ready, missing no-such-package" in done.stdout


def test_our_modules_come_from_one_place(root: Path) -> None:
    where = {name: module_folder(name) for name in MODULES}
    assert set(where.values()) == {root / name for name in MODULES}
    assert clashes(where, {}) == []


def test_clashes_are_named() -> None:
    where = {name: module_folder(name) for name in MODULES}
    elsewhere = {**where, "cli": Path("elsewhere/cli").resolve(), "cusim": None}
    found = "\n".join(clashes(elsewhere, {"backend_gpu": ["cusim-tiles", "other"]}, "0.9"))
    for part in ("module cli comes from", "module cusim cannot be found", "cusim-tiles and other", "cusim 0.9"):
        assert part in found


def test_no_driver_is_no_failure() -> None:
    part, library = detect.find_driver("libno-such-driver.so.1")
    assert library is None
    assert part.problem is not None
    assert "simulator" in part.problem


@pytest.mark.parametrize(("major", "extra"), [(None, "gpu-cu13"), (14, "gpu-cu13"), (13, "gpu-cu13"), (12, "gpu-cu12")])
def test_the_extra_suits_the_driver(major: int | None, extra: str) -> None:
    assert detect.extra_for(major) == extra


class FakeDriver:
    """The driver of a computer with one GPU, as ctypes would call it; *status* is what cuInit gives back."""

    def __init__(self, status: int = 0, count: int = 1) -> None:
        self.status, self.count = status, count

    def cuInit(self, flags: int) -> int:  # noqa: N802
        return self.status

    def cuDriverGetVersion(self, out: Any) -> int:  # noqa: N802
        out._obj.value = 12040
        return 0

    def cuDeviceGetCount(self, out: Any) -> int:  # noqa: N802
        out._obj.value = self.count
        return 0

    def cuDeviceGet(self, out: Any, index: int) -> int:  # noqa: N802
        return 0

    def cuDeviceGetName(self, name: Any, size: int, device: Any) -> int:  # noqa: N802
        name.value = b"NVIDIA H200"
        return 0

    def cuDeviceTotalMem_v2(self, out: Any, device: Any) -> int:  # noqa: N802
        out._obj.value = 141 << 30
        return 0

    def cuDeviceGetAttribute(self, out: Any, number: int, device: Any) -> int:  # noqa: N802
        out._obj.value = {16: 132, 75: 9, 76: 0, 13: 1_980_000}[number]
        return 0

    def cuGetErrorName(self, status: int, out: Any) -> int:  # noqa: N802
        out._obj.value = b"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"
        return 0


def with_driver(monkeypatch: pytest.MonkeyPatch, driver: FakeDriver) -> detect.Gpu:
    def load(name: str) -> FakeDriver:
        if name.startswith("libcuda"):
            return driver
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", load)
    return detect.detect()


def test_a_device_is_described(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = with_driver(monkeypatch, FakeDriver())
    assert gpu.driver.version == "12.4"
    (device,) = gpu.devices
    assert (device.name, device.sms, device.compute_capability, device.clock_mhz) == ("NVIDIA H200", 132, "9.0", 1980)
    assert gpu.nvrtc.fix == "install the extra gpu-cu12"
    assert not gpu.usable


def test_a_driver_that_does_not_start_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = with_driver(monkeypatch, FakeDriver(status=803))
    assert gpu.driver.problem == "cuInit gave error 803 (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)"
    assert gpu.devices == ()


def test_a_driver_without_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    assert with_driver(monkeypatch, FakeDriver(count=0)).driver.problem == "the driver reports no device"
