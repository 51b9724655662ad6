"""An NVIDIA GPU: CuPy's context, streams, memory and arithmetic, the driver's own launches.

CuPy and CUDA are imported when a device is made, not before: the settings below must stand before the context does.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend_gpu import driver
from backend_gpu.bind import Bound, bind
from backend_gpu.build import build, build_launchers, compile_source, kernel_sources
from backend_gpu.cuda_facts import read_facts
from backend_gpu.cuda_run import CudaCommands, Helpers
from backend_gpu.device import Commands, Job, Loaded
from cusim.errors import CusimError, InputError
from cusim.policies.plan import Plan
from cusim.program.kernel import Kernel
from cusim.program.program import Program

#: Set before the context exists: every kernel is loaded at once, so that no load waits for a kernel that spins, and
#: each stream has a hardware queue of its own.
SETTINGS = {"CUDA_MODULE_LOADING": "EAGER", "CUDA_DEVICE_MAX_CONNECTIONS": "32"}
_TIMER_VALUES = 64


class CudaDevice:
    """GPU number *index*. CusimError where CuPy cannot be imported or the GPU cannot be used."""

    def __init__(self, index: int = 0) -> None:
        for name, value in SETTINGS.items():
            os.environ.setdefault(name, value)
        try:
            import cupy
        except ImportError as error:
            raise CusimError(f"CuPy cannot be imported: {error}") from None
        self.xp: Any = cupy
        self._device = cupy.cuda.Device(index)
        self._device.use()
        capability = self._device.compute_capability
        self.arch = "sm_90a" if capability == "90" else f"sm_{capability}"
        launchers = driver.load_module(build_launchers(self.arch).cubin)
        self._helpers = Helpers(
            *(driver.get_function(launchers, f"cusim_{name}") for name in ("next_epoch", "wait_started", "busy"))
        )
        self._streams: list[Any] = []
        self._side = cupy.cuda.Stream(non_blocking=True)
        self.facts = read_facts(cupy, index, self.arch, self._timer_step())

    def zeros(self, shape: int | tuple[int, ...], dtype: Any) -> Any:
        return self.xp.zeros(shape, dtype)

    def address(self, array: Any) -> int:
        return int(array.data.ptr)

    def to_host(self, array: Any) -> NDArray[Any]:
        host: NDArray[Any] = self.xp.asnumpy(array)
        return host

    def why_not(self, program: Program, kernel: Kernel) -> str | None:
        try:
            bind(program, Plan(), kernel.name, arch=self.arch)
        except InputError as error:
            return "; ".join(f"{problem.key}: {problem.why}" for problem in error.problems)
        return None

    def load(self, program: Program, plan: Plan) -> tuple[Loaded, ...]:
        return tuple(self._load(bind(program, plan, kernel.name, arch=self.arch)) for kernel in program.kernels)

    def commands(self, job: Job) -> Commands:
        return CudaCommands(self.xp, job, self._helpers, self._room(job), self._side)

    def empty(self, job: Job) -> Commands:
        return CudaCommands(self.xp, job, self._helpers, self._room(job), self._side, empty=True)

    def works(self) -> bool:
        """True while the GPU still answers: a fault in a kernel breaks the context for good."""
        try:
            self._device.synchronize()
        except Exception:
            return False
        return True

    def busy(self, stream: Any, nanoseconds: int) -> None:
        """Keeps *stream* busy for a while, so that what is issued behind it queues up."""
        driver.Launch(self._helpers.busy, 1, 32, 0, stream.ptr, (np.array([nanoseconds], np.uint64),)).go()

    def _load(self, bound: Bound) -> Loaded:
        function = driver.get_function(driver.load_module(build(bound).cubin), bound.function)
        threads, dynamic = bound.shape.threads, bound.shape.shared_bytes
        driver.allow_shared(function, dynamic)
        per_sm = driver.blocks_per_sm(function, threads, dynamic)
        if per_sm < 1:
            raise CusimError(f"no SM can hold a block of {bound.kernel}: {threads} threads, {dynamic} bytes shared")
        slots = per_sm * int(self._device.attributes["MultiProcessorCount"])
        grid = min(bound.tickets, slots) if bound.persistent else bound.tickets
        return Loaded(
            bound.kernel, grid, threads, driver.registers_of(function), dynamic + driver.static_shared(function),
            per_sm, driver.local_bytes(function), (function, bound),
        )  # fmt: skip

    def _room(self, job: Job) -> list[Any]:
        """As many streams as the job names; they are made once."""
        from backend_gpu.launch import streams_of

        while len(self._streams) < streams_of(job.steps):
            self._streams.append(self.xp.cuda.Stream(non_blocking=True))
        return self._streams

    def _timer_step(self) -> int:
        """The smallest step of the global timer, nanoseconds."""
        module = driver.load_module(compile_source(kernel_sources()["timer.cu"], self.arch).cubin)
        values = self.xp.zeros(_TIMER_VALUES, np.uint64)
        arguments = (np.array([values.data.ptr], np.uint64), np.array([_TIMER_VALUES], np.int32))
        driver.Launch(driver.get_function(module, "cusim_timer"), 1, 1, 0, 0, arguments).go()
        self._device.synchronize()
        return int(np.diff(self.xp.asnumpy(values).astype(np.int64)).min())
