"""Micro-benchmarks of a GPU: what a launch, a gap, a semaphore, a dispatched block and a byte cost here.

``python -m backend_gpu.microbench --out DIR`` writes ``micro.json``. A part that fails is dropped and says why.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend_gpu import driver
from backend_gpu.build import compile_source, kernel_sources
from backend_gpu.micro_record import Findings, write_findings
from cusim.machine import Machine, load_machine, occupancy

_BUDGET_NS = 100_000_000  # of a spin
_WORDS = 4  # of a block's record: started, went on, ended, SM
_TRIGGER, _WAIT_BEFORE = 1, 2
_ONE_BLOCK, _TWO_BLOCKS = 160 * 1024, 100 * 1024  # dynamic shared memory that leaves room for so many blocks on an SM
_KEPT = {8: 1024, 24: 1024, 40: 1024, 72: 512, 100: 512, 144: 256, 192: 256, 232: 256}  # values: largest block
_THREADS = (32, 64, 96, 128, 160, 192, 256, 384, 512, 640, 768, 1024)
_SHARED_KIB = (0, 1, 4, 8, 16, 24, 32, 48, 56, 64, 75, 96, 100, 112, 113, 114, 128, 160, 200, 227)

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
        low, high = self.cupy.cuda.runtime.deviceGetStreamPriorityRange() if _has_range(self.cupy) else (0, -5)
        self.low = self.cupy.cuda.Stream(non_blocking=True, priority=low)
        self.high = self.cupy.cuda.Stream(non_blocking=True, priority=high)
        self.found = Findings()

    def function(self, name: str) -> int:
        """A kernel of micro.cu, allowed all the shared memory that a block may have."""
        function = driver.get_function(self.module, f"cusim_micro_{name}")
        driver.allow_shared(function, 227 * 1024 - driver.static_shared(function))
        return function

    def launch(
        self, name: str, grid: int, threads: int, arguments: Sequence[Any], *, stream: Any = None, shared: int = 0,
        early: bool = False,
    ) -> driver.Launch:  # fmt: skip
        """A prepared launch; arrays stand for their addresses."""
        packed = [
            np.array([each.data.ptr], np.uint64) if hasattr(each, "data") and hasattr(each.data, "ptr")
            else np.array([each]) for each in arguments
        ]  # fmt: skip
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
        return self.zeros(blocks * _WORDS, np.uint64)

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


def timer(b: Bench) -> None:
    """The steps of the global timer, how far SMs differ in it, and the clock of an SM."""
    values = b.zeros(400, np.uint64)
    module = driver.load_module(compile_source(kernel_sources()["timer.cu"], b.device.arch).cubin)
    arguments = (np.array([values.data.ptr], np.uint64), np.array([400], np.int32))
    driver.Launch(driver.get_function(module, "cusim_timer"), 1, 1, 0, b.streams[0].ptr, arguments).go()
    b.found.add(
        "timer_step", "ns", "differences of successive values of %globaltimer", np.diff(b.read(values)).tolist()
    )
    spreads = []
    for _ in range(40):
        arrived, readings = b.zeros(1, np.uint32), b.zeros(b.sms, np.uint64)
        b.launch("spread", b.sms, 32, (arrived, readings, np.uint64(_BUDGET_NS)), shared=_ONE_BLOCK)
        b.launch("spread", b.sms, 1, (arrived, readings, np.uint64(_BUDGET_NS)), shared=_ONE_BLOCK).go()
        spreads.append(int(np.ptp(b.read(readings))))
    b.found.add("timer_spread", "ns", "largest less smallest reading by one block an SM after a grid barrier", spreads)
    _, out = _costs(b, 3, 30, 1)
    clock = (out[5:, 1] / out[5:, 0]).tolist()
    b.found.add("sm_clock", "GHz", "cycles over nanoseconds of 100 us stretches on one SM", clock)


def launches(b: Bench) -> None:
    """What the lean launch path costs the host, and empty kernels the device."""
    empty, count = b.launch("empty", 1, 32, ()), 300
    host = []
    for _ in range(3):
        b.settle()
        b.busy(20)
        for _ in range(count):
            before = time.perf_counter_ns()
            empty.go()
            host.append(time.perf_counter_ns() - before)
    b.found.add("host_enqueue", "ns", "host time of one prepared cuLaunchKernelEx, the stream busy", host)

    def all_of_them() -> None:
        for _ in range(count):
            empty.go()

    queued = [b.elapsed_ns(all_of_them, 10) / count for _ in range(11)]
    b.found.add("empty_kernel_queued", "ns", f"{count} empty kernels of one block queued, event to event, each", queued)
    graph = b.graph(all_of_them)
    replayed = [b.elapsed_ns(lambda: graph.launch(b.streams[0]), 1) / count for _ in range(11)]
    b.found.add("empty_kernel_graph", "ns", f"a linear graph of {count} empty kernels, event to event, each", replayed)


def gaps(b: Bench) -> None:
    """From the last block's end to the next kernel's first block: stream, graph, early start, event."""
    for blocks in (1, b.sms):
        for name, early in (("stream", False), ("graph", False), ("early", True)):
            starts, ons = _chain(b, blocks, 60, graph=name == "graph", early=early)
            how = f"kernels of {blocks} blocks, 5 us each, queued ({name}): end of the last block to the next kernel's "
            b.found.add(f"gap_{name}_{blocks}", "ns", how + "first block", starts)
            if early:
                b.found.add(f"gap_early_wait_{blocks}", "ns", how + "first block past griddepcontrol.wait", ons)
    record, started, count = b.records(60), b.zeros(1, np.uint32), 60
    events = [b.event() for _ in range(count)]
    b.busy(5)
    for i in range(count):
        stream = b.streams[i % 2]
        if i:
            stream.wait_event(events[i - 1])
        b.hold(record[i * _WORDS :], started, 5000, 1, stream=stream).go()
        events[i].record(stream)
    rows = b.read(record).reshape(count, _WORDS)
    b.found.add("gap_event", "ns", "end of a kernel to the start of one on another stream behind its event",
                (rows[1:, 0] - rows[:-1, 2])[3:].tolist())  # fmt: skip


def _chain(b: Bench, blocks: int, count: int, *, graph: bool, early: bool) -> tuple[list[int], list[int]]:
    record, started = b.records(blocks * count), b.zeros(1, np.uint32)
    flags = _TRIGGER | _WAIT_BEFORE if early else 0
    chain = [
        b.hold(record[i * blocks * _WORDS :], started, 5000, blocks, flags=flags, early=early) for i in range(count)
    ]

    def calls() -> None:
        for launch in chain:
            launch.go()

    if graph:
        held = b.graph(calls)
        b.busy(0.5)
        held.launch(b.streams[0])
    else:
        b.busy(5)
        calls()
    rows = b.read(record).reshape(count, blocks, _WORDS)
    ends = rows[:-1, :, 2].max(axis=1)
    return (rows[1:, :, 0].min(axis=1) - ends)[3:].tolist(), (rows[1:, :, 1].min(axis=1) - ends)[3:].tolist()


def releases(b: Bench) -> None:
    """From the first block of a producer to the consumer's first, behind a wait-kernel and a stream's wait."""
    for by in ("kernel", "value"):
        samples = []
        for _ in range(25):
            record, after, started = b.records(8), b.records(8), b.zeros(2, np.uint32)
            one, two = b.streams
            event = b.event()
            b.busy(0.3)
            event.record(one)
            two.wait_event(event)
            b.hold(record, started, 60_000, 8).go()
            if by == "kernel":
                b.launch("wait", 1, 1, (started, np.uint32(1), np.uint64(_BUDGET_NS)), stream=two).go()
            else:
                driver.wait_value(two.ptr, int(started.data.ptr), 1)
            b.hold(after, started[1:], 1000, 8, stream=two).go()
            rows, later = b.read(record).reshape(8, _WORDS), b.read(after).reshape(8, _WORDS)
            samples.append(int(later[:, 0].min() - rows[:, 0].min()))
        what = "a wait-kernel" if by == "kernel" else "cuStreamWaitValue32"
        b.found.add(f"release_by_{by}", "ns",
                    f"first block of the producer to first block of the consumer behind {what}", samples)  # fmt: skip


def semaphores(b: Bench) -> None:
    """One way between two SMs by style and partner; posts to one word; an acquire, a fence."""
    styles = {"red": (0, 0), "store": (1, 0), "red_sleep": (0, 32), "store_sleep": (1, 32)}
    rounds, batches = 8, 60
    for style, (by_store, sleep) in styles.items():
        every: list[float] = []
        pairs = []
        for partner in (1, 2, 17, b.sms // 2, b.sms - 1):
            words, out = b.zeros(128, np.uint32), b.zeros(batches + 2, np.uint64)
            numbers = [np.uint32(value) for value in (batches, rounds, by_store, sleep, partner)]
            b.launch("answer", b.sms, 1, (words, out, *numbers, np.uint64(_BUDGET_NS)), shared=_ONE_BLOCK).go()
            found = b.read(out)
            samples = found[2:batches] / (2 * rounds)
            if samples.min() > 0:
                every += samples.tolist()
                pairs.append([int(found[batches]), int(found[batches + 1]), float(np.median(samples))])
        how = f"half of a round between two SMs, {rounds} rounds a sample, five partners: {style}, then ld.acquire"
        b.found.add(f"semaphore_{style}", "ns", how, every)
        b.found.table(f"semaphore_{style}_pairs", how, ("sm", "partner_sm", "median_ns"), pairs)
    for blocks in (1, b.sms):
        spacing, count = [], 256
        for _ in range(15):
            arrived, word, record = b.zeros(1, np.uint32), b.zeros(1, np.uint32), b.records(blocks)
            arguments = (arrived, word, record, np.uint32(count), np.uint64(_BUDGET_NS))
            b.launch("posts", blocks, 1, arguments, shared=_ONE_BLOCK).go()
            rows = b.read(record).reshape(blocks, _WORDS)
            spacing.append(float(rows[:, 2].max() - rows[:, 0].min()) / (blocks * count))
        b.found.add(
            f"post_spacing_{blocks}", "ns", f"{blocks} SMs post {count} times each to one word: time a post", spacing
        )
    for what, name in enumerate(("acquire_satisfied", "proxy_fence", "acquire_and_fence")):
        samples, _ = _costs(b, what, 40, 64)
        b.found.add(name, "ns", "one thread alone, 64 in a row a sample, the word in L2, each", samples)


def _costs(b: Bench, what: int, batches: int, count: int) -> tuple[list[float], Ints]:
    word, out = b.zeros(64, np.uint32), b.zeros(batches * 2, np.uint64)
    b.launch("costs", 1, 1, (word, out, np.uint32(batches), np.uint32(count), np.uint32(what))).go()
    rows = b.read(out).reshape(batches, 2)
    return (rows[5:, 0] / count).tolist(), rows


def dispatch(b: Bench) -> None:
    """How fast blocks start, where, and how soon a slot is filled again."""
    for per_sm, shared in ((1, _ONE_BLOCK), (2, _TWO_BLOCKS)):
        slots, waves = b.sms * per_sm, 3
        spread, again, orders, tidy = [], [], [], []
        for _ in range(12):
            record, started = b.records(slots * waves), b.zeros(1, np.uint32)
            b.busy(0.1)
            b.hold(record, started, 30_000, slots * waves, shared=shared).go()
            rows = b.read(record).reshape(slots * waves, _WORDS)
            first = np.flatnonzero(rows[:, 0] < rows[:, 0].min() + 15_000)
            spread.append(int(np.ptp(rows[first, 0])))
            tidy.append(int(np.array_equal(first, np.arange(slots))))
            orders.append(rows[:slots, 3].tolist())
            for sm in range(b.sms):
                mine = rows[rows[:, 3] == sm]
                ends, starts = np.sort(mine[:, 2]), np.sort(mine[:, 0])
                again += (starts[per_sm:] - ends[: len(starts) - per_sm]).tolist()
        label = f"{per_sm} a SM" if per_sm == 1 else f"{per_sm} blocks a SM"
        b.found.add(
            f"dispatch_spread_{per_sm}", "ns", f"first to last start of the {slots} blocks of wave one, {label}", spread
        )
        b.found.add(
            f"slot_refill_{per_sm}",
            "ns",
            f"k-th end of a block on an SM to the k-th start there after it, {label}",
            again,
        )
        b.found.add(
            f"wave_in_order_{per_sm}", "of 1", "runs whose first wave is exactly the lowest block numbers", tidy
        )
        b.found.table(
            f"sm_order_{per_sm}", f"SM of block 0, 1, ... of wave one, a run a row, {label}", ("sm",) * slots, orders
        )
    for threads in (32, 128, 512):
        blocks = b.sms * 2000
        launch = b.launch("empty", blocks, threads, ())
        rate = [b.elapsed_ns(launch.go, 0.1) / blocks for _ in range(9)]
        b.found.add(
            f"dispatch_period_{threads}", "ns", f"{blocks} empty blocks of {threads} threads, time a block", rate
        )


def launch_order(b: Bench) -> None:
    """Which of two kernels is placed first when one event lets both go: the producer issued first, one block an SM."""
    rows = []
    one, two = b.streams
    cases = {
        "equal": (one, two, False), "consumer_low": (one, b.low, False), "consumer_high": (one, b.high, False),
        "producer_high": (b.high, two, False), "producer_high_consumer_low": (b.high, b.low, False),
        "consumer_issued_first": (one, two, True),
    }  # fmt: skip
    for name, (first, second, swapped) in cases.items():
        for blocks in (b.sms // 2, b.sms * 5 // 2):
            samples = []
            for _ in range(9):
                record, after, started = b.records(blocks), b.records(b.sms), b.zeros(2, np.uint32)
                event, gate = b.event(), b.cupy.cuda.Stream(non_blocking=True)
                b.busy(0.3, gate)
                event.record(gate)
                first.wait_event(event)
                second.wait_event(event)
                producer = b.hold(record, started, 40_000, blocks, shared=_ONE_BLOCK, stream=first)
                consumer = b.hold(after, started[1:], 40_000, b.sms, shared=_ONE_BLOCK, stream=second)
                for each in (consumer, producer) if swapped else (producer, consumer):
                    each.go()
                made, used = b.read(record).reshape(-1, _WORDS), b.read(after).reshape(-1, _WORDS)
                samples.append(int(used[:, 0].min() - made[:, 0].min()))
                late = int((made[:, 0] > used[:, 0].min()).sum())
                early = int((used[:, 0] < made[:, 0].max()).sum())
                rows.append([name, blocks, samples[-1], late, early])
            how = f"consumer's first start less the producer's ({blocks} blocks), {name}; below 0: consumer first"
            b.found.add(f"launch_order_{name}_{blocks}", "ns", how, samples)
    columns = ("case", "producer_blocks", "lead_ns", "producer_blocks_after_consumer", "consumer_blocks_before_last")
    b.found.table("launch_order", "each run: two streams released by one event, 40 us a block", columns, rows)


def occupancies(b: Bench) -> None:
    """The driver's blocks per SM beside the model's, over block shapes."""
    machine, rows = load_machine("h200"), []
    for values, most in _KEPT.items():
        function = b.function(f"keep_{values}")
        registers = driver.registers_of(function)
        for threads in (threads for threads in _THREADS if threads <= most):
            for kib in _SHARED_KIB:
                said = driver.blocks_per_sm(function, threads, kib * 1024)
                rows.append([threads, registers, kib * 1024, said, _model(machine, threads, registers, kib * 1024)])
    columns = ("threads", "registers", "shared_bytes", "driver_blocks", "model_blocks")
    how = "cuOccupancyMaxActiveBlocksPerMultiprocessor, dynamic shared memory, beside cusim.machine.occupancy"
    b.found.table("occupancy", how, columns, rows)
    b.found.add("occupancy_difference", "blocks", f"{how}: driver less model", [row[3] - row[4] for row in rows])


def _model(machine: Machine, threads: int, registers: int, shared: int) -> int:
    return occupancy(machine, threads, registers, shared).blocks


def bandwidth(b: Bench) -> None:
    """Bytes read and written a nanosecond, out of L2 and out of device memory."""
    for name, mib, passes in (("l2", 4, 200), ("l2_16mib", 8, 200), ("hbm", 2048, 1)):
        count = mib * 2**20 // 16
        source, target = b.zeros(mib * 2**20, np.uint8), b.zeros(mib * 2**20, np.uint8)
        arguments = (source, target, np.uint64(count), np.uint32(passes))
        launch = b.launch("copy", b.sms * 4, 512, arguments)
        b.elapsed_ns(launch.go, 0.1)
        rate = [2 * count * 16 * passes / b.elapsed_ns(launch.go, 0.1) for _ in range(11)]
        how = f"copy of {mib} MiB, {passes} times in a kernel of {b.sms * 4} blocks, past L1, bytes read and written"
        b.found.add(f"bandwidth_{name}", "GB/s", how, rate)


PARTS: tuple[Callable[[Bench], None], ...] = (
    timer, launches, gaps, releases, semaphores, dispatch, occupancies, bandwidth, launch_order,
)  # fmt: skip


def measure(seconds: float) -> tuple[Findings, dict[str, Any]]:
    """Every part in turn until the time is over, and where it was measured."""
    bench = Bench()
    end = time.monotonic() + seconds
    before, took = _smi(), {}
    for part in PARTS:
        began = time.monotonic()
        name = part.__name__
        if began > end:
            bench.found.dropped[name] = "no time left"
            continue
        try:
            part(bench)
        except Exception as error:  # CuPy's and the driver's own: the other parts must not be lost
            bench.found.dropped[name] = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            if not bench.device.works():
                break
        took[name] = round(time.monotonic() - began, 2)
        sys.stderr.write(f"{name}: {took[name]} s {bench.found.dropped.get(name, '')}\n")
    facts = bench.device.facts
    return bench.found, {
        "gpu": facts.name, "sms": facts.sms, "timer_step_ns": facts.timer_step_ns,
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **facts.more, "clocks_before": before,
        "clocks_after": _smi(), "part_seconds": took,
    }  # fmt: skip


def main() -> None:
    """Measures and writes ``micro.json`` into the folder given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=130.0, help="no part begins after so long")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    findings, provenance = measure(options.seconds)
    write_findings(options.out / "micro.json", findings, provenance)
    for name, quantity in findings.quantities.items():
        sys.stderr.write(f"{name}: {np.median(quantity.samples):.6g} {quantity.unit}\n")
    for name, why in findings.dropped.items():
        sys.stderr.write(f"dropped {name}: {why}\n")


def _has_range(cupy: Any) -> bool:
    return hasattr(cupy.cuda.runtime, "deviceGetStreamPriorityRange")


def _smi() -> dict[str, str]:
    """Driver and clocks by nvidia-smi; empty without it."""
    names = ("driver_version", "clocks.sm", "clocks.mem", "clocks.max.sm", "temperature.gpu", "power.draw")
    command = ("nvidia-smi", f"--query-gpu={','.join(names)}", "--format=csv,noheader", "--id=0")
    try:
        text = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(zip(names, (part.strip() for part in text.split(",")), strict=False))


if __name__ == "__main__":
    main()
