"""Prepared runs on a GPU: one lean path for every launch, behind a watchdog that does not trust the kernels' own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from backend_gpu import driver
from backend_gpu.bind import Bound
from backend_gpu.device import Job
from backend_gpu.launch import Fork, Hold, Join, Start, Step
from backend_gpu.tensormap import maps_of
from cusim.errors import CusimError

#: The busy kernel that a timed run queues behind: long enough for the host to issue everything.
_BUSY_NS, _BUSY_NS_A_STEP = 150_000, 20_000
#: How long the host waits beyond the kernels' own budget before it sets the abort flag, and then before it gives up.
_PATIENCE_S, _LAST_S = 10.0, 5.0
_POLL_S = 50e-6
_PS_PER_MS = 1_000_000_000

#: One call of the host; the argument is the epoch.
Call = Callable[[int], None]


class Helpers(NamedTuple):
    """The small kernels, as handles of their functions."""

    next_epoch: int
    wait_started: int
    busy: int


class CudaCommands:
    """A run prepared to the last argument. *empty*: the same without any kernel, which leaves the epoch alone."""

    def __init__(
        self, cupy: Any, job: Job, helpers: Helpers, streams: Sequence[Any], side: Any, *, empty: bool = False
    ) -> None:
        self._cupy, self._job, self._helpers, self._side = cupy, job, helpers, side
        self._streams = list(streams)
        self._main = self._streams[0]
        self._events = [cupy.cuda.Event() for _ in range(2)]
        self._pinned = cupy.cuda.alloc_pinned_memory(4)  # now: an allocation may wait for kernels that spin
        self._kept: list[Any] = []
        self._holds: list[tuple[int, int, int]] = []
        busy = np.array([_BUSY_NS + _BUSY_NS_A_STEP * len(job.steps)], np.uint64)
        self._busy = driver.Launch(helpers.busy, 1, 32, 0, self._main.ptr, (busy,))
        word = cupy.zeros(1, np.uint32) if empty else None
        self._kept.append(word)
        address = job.epoch_address if word is None else int(word.data.ptr)
        head = driver.Launch(helpers.next_epoch, 1, 1, 0, self._main.ptr, (np.array([address], np.uint64),))
        self._calls: list[Call] = [] if empty else [self._call_of(step) for step in job.steps]
        self._head: Call | None = None if empty else lambda epoch: head.go()
        if job.graph:
            self._capture(head)

    def issue(self, epoch: int) -> None:
        """Runs once; returns when everything is done, or has been made to end."""
        self._cupy.cuda.Device().synchronize()
        self.issue_beside(epoch)

    def issue_beside(self, epoch: int) -> None:
        """The same while streams that are not of this run go on."""
        if self._head is not None:
            self._head(epoch)
        for call in self._calls:
            call(epoch)
        self._settle(epoch)

    def timed(self, epoch: int) -> int:
        """Picoseconds from event to event behind a busy kernel; what advances the epoch comes before the first event,
        except in a graph, where it is a node.
        """
        self._cupy.cuda.Device().synchronize()
        self._busy.go()
        if self._head is not None:
            self._head(epoch)
        self._events[0].record(self._main)
        for call in self._calls:
            call(epoch)
        self._events[1].record(self._main)
        self._settle(epoch)
        return round(float(self._cupy.cuda.get_elapsed_time(*self._events)) * _PS_PER_MS)

    def _capture(self, head: driver.Launch) -> None:
        """Turns the calls into the launch of one graph, its first node the one that advances the epoch."""
        self._main.begin_capture()
        try:
            head.go()
            for call in self._calls:
                call(0)
        finally:
            graph = self._main.end_capture()
        graph.upload(self._main)
        self._head = None
        self._calls = [lambda epoch: graph.launch(self._main)]

    def _call_of(self, step: Step) -> Call:
        """The host's call for a step, everything but the epoch worked out."""
        match step:
            case Fork(stream):
                return self._order(self._main, self._streams[stream])
            case Join(stream):
                return self._order(self._streams[stream], self._main)
            case Start(kernel, stream, early):
                launch = self._launch(kernel, stream, early)
                return lambda epoch: launch.go()
            case Hold():
                return self._hold(step)

    def _order(self, first: Any, then: Any) -> Call:
        """*then* goes on from where *first* stands."""
        event = self._cupy.cuda.Event(disable_timing=True)

        def call(epoch: int) -> None:
            event.record(first)
            then.wait_event(event)

        return call

    def _launch(self, kernel: int, stream: int, early: bool) -> driver.Launch:
        loaded = self._job.loaded[kernel]
        function, bound = loaded.handle
        return driver.Launch(
            function, loaded.grid, loaded.threads, bound.shape.shared_bytes, self._streams[stream].ptr,
            self._arguments(kernel, bound), early=early,
        )  # fmt: skip

    def _arguments(self, kernel: int, bound: Bound) -> tuple[NDArray[Any], ...]:
        row = self._job.params[kernel : kernel + 1].copy()
        if not bound.tensor_maps:
            return (row,)
        a, b, lda, ldb = (int(row[name][0]) for name in ("a", "b", "lda", "ldb"))
        return (row, *maps_of(bound, a, b, lda, ldb))

    def _hold(self, step: Hold) -> Call:
        grid = self._job.loaded[step.producer].grid
        needed = grid if step.blocks is None else step.blocks
        stream = self._streams[step.stream].ptr
        if step.by == "kernel":
            row = self._job.params[step.producer : step.producer + 1].copy()
            arguments = (row, np.array([grid], np.uint32), np.array([needed], np.uint32))
            launch = driver.Launch(self._helpers.wait_started, 1, 1, 0, stream, arguments)
            return lambda epoch: launch.go()
        address = self._job.started_addresses[step.producer]
        self._holds.append((address, grid, needed))
        return lambda epoch: driver.wait_value(stream, address, (epoch - 1) * grid + needed)

    def _settle(self, epoch: int) -> None:
        """Waits for all streams; past all patience sets the abort flag and lets go of what streams wait for."""
        if self._idle_by(self._job.budget_ns / 1e9 + _PATIENCE_S):
            return
        self._write(self._job.fault_address, 1)
        for address, grid, needed in self._holds:
            self._write(address, (epoch - 1) * grid + needed)
        if not self._idle_by(self._job.budget_ns / 1e9 + _LAST_S):
            raise CusimError("the GPU does not come to rest: kernels still run after they were told to stop")

    def _idle_by(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while not all(driver.idle(stream.ptr) for stream in self._streams):
            if time.monotonic() > end:
                return False
            time.sleep(_POLL_S)
        return True

    def _write(self, address: int, value: int) -> None:
        """Writes a word from the side, past all streams that stand still."""
        np.frombuffer(self._pinned, np.uint32, 1)[0] = value & 0xFFFFFFFF
        self._cupy.cuda.runtime.memcpyAsync(address, self._pinned.ptr, 4, 1, self._side.ptr)
        self._side.synchronize()
