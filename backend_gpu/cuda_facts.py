"""What a GPU says of itself for the record: names, versions, clocks, temperature and power where NVML is there."""

from __future__ import annotations

from typing import Any

from backend_gpu.device import Facts


def read_facts(cupy: Any, index: int, arch: str, timer_step_ns: int) -> Facts:
    """The facts of GPU *index*; memory is what is free now."""
    found = cupy.cuda.runtime.getDeviceProperties(index)
    free, _ = cupy.cuda.runtime.memGetInfo()
    more = {
        "cuda": _version(cupy.cuda.runtime.runtimeGetVersion()),
        "driver_cuda": _version(cupy.cuda.runtime.driverGetVersion()),
        "cupy": cupy.__version__,
        "uuid": bytes(found["uuid"]).hex()[:12],
        "l2_bytes": int(found["l2CacheSize"]),
        **_nvml(index),
    }
    return Facts(
        "cuda", found["name"].decode(), int(found["multiProcessorCount"]),
        int(found["maxThreadsPerMultiProcessor"]) // 32, arch.rstrip("a"), int(free), timer_step_ns, more,
    )  # fmt: skip


def _nvml(index: int) -> dict[str, Any]:
    """Driver, clocks (MHz), temperature and power by nvidia-ml-py; empty without it."""
    try:
        import pynvml
    except ImportError:
        return {}
    try:
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        return {
            "driver": _text(pynvml.nvmlSystemGetDriverVersion()),
            "sm_mhz": int(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)),
            "sm_max_mhz": int(pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_SM)),
            "memory_mhz": int(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM)),
            "temperature_c": int(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)),
            "power_w": round(pynvml.nvmlDeviceGetPowerUsage(handle) / 1000),
        }
    except pynvml.NVMLError:
        return {}


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"
