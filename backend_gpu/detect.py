"""What this computer offers to the GPU backend: driver, devices, CuPy and NVRTC, or what each lacks.

Looks only: no context is created, and CuPy is not imported but asked of the installed packages.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

#: CUdevice_attribute numbers of the driver interface (cuda.h).
_MULTIPROCESSOR_COUNT, _CC_MAJOR, _CC_MINOR, _CLOCK_KHZ = 16, 75, 76, 13
#: Major versions of CUDA that an extra of cusim exists for, newest first.
EXTRAS = {13: "gpu-cu13", 12: "gpu-cu12"}
_NO_DRIVER = "no NVIDIA driver (libcuda.so.1): only the simulator can be used here"


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU as the driver describes it; *clock_mhz* is its highest SM clock."""

    index: int
    name: str
    sms: int
    compute_capability: str
    memory_mib: int
    clock_mhz: int


@dataclass(frozen=True, slots=True)
class Part:
    """Something the backend needs: found (*version*, *where*), or not (*problem*, *fix* if there is one)."""

    name: str
    version: str | None
    where: str | None = None
    problem: str | None = None
    fix: str | None = None

    @property
    def found(self) -> bool:
        """True when nothing is wrong with the part."""
        return self.problem is None


@dataclass(frozen=True, slots=True)
class Gpu:
    """The driver, its devices and the Python side; *usable* when all of them are there."""

    driver: Part
    devices: tuple[Device, ...]
    cupy: Part
    nvrtc: Part

    @property
    def usable(self) -> bool:
        """True when a kernel could be compiled and launched."""
        return bool(self.devices) and self.driver.found and self.cupy.found and self.nvrtc.found


def detect() -> Gpu:
    """Everything that is there; never raises for what is not."""
    driver, library = find_driver()
    devices = tuple(_devices(library)) if library is not None else ()
    if library is not None and not devices:
        driver = Part("driver", driver.version, driver.where, "the driver reports no device")
    major = int(driver.version.split(".")[0]) if driver.version else None
    return Gpu(driver, devices, find_cupy(major), find_nvrtc(major))


def extra_for(cuda_major: int | None) -> str:
    """The extra of cusim whose CuPy suits a driver for CUDA *cuda_major* (None: unknown)."""
    usable = [extra for major, extra in EXTRAS.items() if cuda_major is None or major <= cuda_major]
    return (usable or [EXTRAS[min(EXTRAS)]])[0]


def find_driver(library_name: str = "libcuda.so.1") -> tuple[Part, ctypes.CDLL | None]:
    """The driver by its library, initialised; the library is None when it cannot be used."""
    try:
        library = ctypes.CDLL(library_name)
    except OSError:
        return Part("driver", None, None, _NO_DRIVER), None
    version = ctypes.c_int(0)
    library.cuDriverGetVersion(ctypes.byref(version))
    shown = f"{version.value // 1000}.{version.value % 1000 // 10}"
    status = int(library.cuInit(0))
    if status != 0:
        problem = f"cuInit gave error {status} ({_error_name(library, status)})"
        return Part("driver", shown, library_name, problem), None
    return Part("driver", shown, library_name), library


def find_cupy(cuda_major: int | None) -> Part:
    """CuPy by its distribution (``cupy``, ``cupy-cuda12x`` ...); more than one of them is a problem."""
    fix = f"install the extra {extra_for(cuda_major)}"
    names = sorted(set(importlib.metadata.packages_distributions().get("cupy", ())))
    if not names or importlib.util.find_spec("cupy") is None:
        return Part("CuPy", None, None, "not installed", fix)
    version = importlib.metadata.version(names[0])
    where = ", ".join(names)
    if len(names) > 1:
        return Part("CuPy", version, where, "several CuPy distributions overwrite each other", "keep one of them")
    return Part("CuPy", version, where)


def find_nvrtc(cuda_major: int | None) -> Part:
    """The run-time compiler: the first library that loads, from the installed packages or the system."""
    for candidate in _nvrtc_candidates():
        try:
            library = ctypes.CDLL(candidate)
        except OSError:
            continue
        major, minor = ctypes.c_int(0), ctypes.c_int(0)
        if library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)) != 0:
            continue
        shown = f"{major.value}.{minor.value}"
        if cuda_major is not None and major.value > cuda_major:
            problem = f"compiles for CUDA {shown}, newer than the driver's {cuda_major}.x"
            return Part("NVRTC", shown, candidate, problem, f"install the extra {extra_for(cuda_major)}")
        return Part("NVRTC", shown, candidate)
    return Part("NVRTC", None, None, "not found", f"install the extra {extra_for(cuda_major)}")


def _nvrtc_candidates() -> Iterator[str]:
    """Where a wheel of NVIDIA keeps the library, the names that the loader knows, then the toolkit's folders."""
    spec = importlib.util.find_spec("nvidia")
    for root in spec.submodule_search_locations or () if spec is not None else ():
        found = sorted(Path(root).glob("*/lib/libnvrtc.so.*"), reverse=True)
        yield from (str(path) for path in found if "builtins" not in path.name)
    yield from (f"libnvrtc.so.{major}" for major in EXTRAS)
    for toolkit in (os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda"):
        if toolkit:
            yield from (str(Path(toolkit) / "lib64" / f"libnvrtc.so.{major}") for major in EXTRAS)


def _devices(library: ctypes.CDLL) -> Iterator[Device]:
    count = ctypes.c_int(0)
    if library.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return
    for index in range(count.value):
        handle = ctypes.c_int(0)
        if library.cuDeviceGet(ctypes.byref(handle), index) != 0:
            continue
        name = ctypes.create_string_buffer(128)
        library.cuDeviceGetName(name, len(name), handle)
        memory = ctypes.c_size_t(0)
        library.cuDeviceTotalMem_v2(ctypes.byref(memory), handle)
        capability = f"{_attribute(library, _CC_MAJOR, handle)}.{_attribute(library, _CC_MINOR, handle)}"
        yield Device(
            index, name.value.decode(errors="replace"), _attribute(library, _MULTIPROCESSOR_COUNT, handle),
            capability, memory.value >> 20, _attribute(library, _CLOCK_KHZ, handle) // 1000,
        )  # fmt: skip


def _attribute(library: ctypes.CDLL, number: int, device: ctypes.c_int) -> int:
    value = ctypes.c_int(0)
    library.cuDeviceGetAttribute(ctypes.byref(value), number, device)
    return value.value


def _error_name(library: ctypes.CDLL, status: int) -> str:
    text = ctypes.c_char_p()
    if library.cuGetErrorName(status, ctypes.byref(text)) != 0 or text.value is None:
        return "unknown"
    return text.value.decode(errors="replace")
