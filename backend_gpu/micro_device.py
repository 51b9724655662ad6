"""What every micro-benchmark needs of a GPU: kernels, launches, streams, records, time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend_gpu import driver
from backend_gpu.build import compile_source, kernel_sources
from backend_gpu.micro_record import Findings

#: How long a spin of these kernels may last.
BUDGET_NS = 100_000_000
#: Words of a block's record: started, went on, ended, SM.
WORDS = 4
#: Dynamic shared memory that leaves room for one block on an SM, for two.
ONE_BLOCK, TWO_BLOCKS = 160 * 1024, 100 * 1024
_LOWEST, _HIGHEST = 0, -5  # priorities; the runtime narrows them to what the GPU has

Ints = NDArray[np.int64]


class Bench:
    """The device, the kernels and two streams, with what the parts need of them."""

    def __init__(self) -> None:
        from backend_gpu.cuda_device import CudaDevice

        self.device = CudaDevice()
        self.cupy = self.device.xp
        self.sms = self.device.facts.sms
        self.module = driver.load_module(compile_source(kernel_sources()["micro.cu"], self.device.arch).cubin)
        self.streams = [self.cupy.cuda.Stream(non_blocking=True) for _ in range(2)]
        self.low = self.cupy.cuda.Stream(non_blocking=True, priority=_LOWEST)
        self.high = self.cupy.cuda.Stream(non_blocking=True, priority=_HIGHEST)
        self.found = Findings()
        self._functions: dict[str, int] = {}

    def function(self, name: str) -> int:
        """A kernel of micro.cu, allowed all the shared memory that a block may have."""
        if name not in self._functions:
            function = driver.get_function(self.module, f"cusim_micro_{name}")
            driver.allow_shared(function, 227 * 1024 - driver.static_shared(function))
            self._functions[name] = function
        return self._functions[name]

    def launch(
        self, name: str, grid: int, threads: int, arguments: Sequence[Any], *, stream: Any = None, shared: int = 0,
        early: bool = False,
    ) -> driver.Launch:  # fmt: skip
        """A prepared launch; arrays stand for their addresses."""
        packed = [
            np.array([each]) if isinstance(each, np.generic) else np.array([self.device.address(each)], np.uint64)
            for each in arguments
        ]
        where = (stream or self.streams[0]).ptr
        return driver.Launch(self.function(name), grid, threads, shared, where, packed, early=early)

    def hold(self, record: Any, started: Any, ns: int, grid: int, **more: Any) -> driver.Launch:
        """A kernel whose blocks stay for so long and note when."""
        flags = np.uint32(more.pop("flags", 0))
        return self.launch("hold", grid, 128, (record, np.uint64(ns), started, flags), **more)

    def zeros(self, count: int, dtype: Any) -> Any:
        """Zeroed device memory, there before this returns."""
        array = self.cupy.zeros(count, dtype)
        self.settle()
        return array

    def records(self, blocks: int) -> Any:
        """Room for the records of so many blocks."""
        return self.zeros(blocks * WORDS, np.uint64)

    def read(self, array: Any) -> Ints:
        """A copy on the host, once everything is done."""
        self.settle()
        return np.asarray(self.cupy.asnumpy(array)).astype(np.int64)

    def busy(self, milliseconds: float, stream: Any = None) -> None:
        """Holds a stream, so that what follows queues up."""
        self.device.busy(stream or self.streams[0], int(milliseconds * 1e6))

    def settle(self) -> None:
        """Waits for everything."""
        self.cupy.cuda.Device().synchronize()

    def event(self) -> Any:
        """An event that orders and does not measure."""
        return self.cupy.cuda.Event(disable_timing=True)

    def elapsed_ns(self, calls: Callable[[], None], busy_ms: float) -> float:
        """Nanoseconds from event to event on the first stream, queued behind a busy kernel."""
        begin, end = (self.cupy.cuda.Event() for _ in range(2))
        self.settle()
        self.busy(busy_ms)
        begin.record(self.streams[0])
        calls()
        end.record(self.streams[0])
        self.settle()
        return float(self.cupy.cuda.get_elapsed_time(begin, end)) * 1e6

    def graph(self, calls: Callable[[], None]) -> Any:
        """The calls on the first stream as one graph, launched once."""
        self.streams[0].begin_capture()
        try:
            calls()
        finally:
            graph = self.streams[0].end_capture()
        graph.launch(self.streams[0])
        self.settle()
        return graph
