"""Micro-benchmarks of launches: the host's cost, gaps, releases, dispatch, which of two kernels comes first."""

from __future__ import annotations

import time

import numpy as np

from backend_gpu import driver
from backend_gpu.micro_device import BUDGET_NS, ONE_BLOCK, TWO_BLOCKS, WORDS, Bench

_TRIGGER, _WAIT_BEFORE = 1, 2


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
        b.hold(record[i * WORDS :], started, 5000, 1, stream=stream).go()
        events[i].record(stream)
    rows = b.read(record).reshape(count, WORDS)
    b.found.add("gap_event", "ns", "end of a kernel to the start of one on another stream behind its event",
                (rows[1:, 0] - rows[:-1, 2])[3:].tolist())  # fmt: skip


def _chain(b: Bench, blocks: int, count: int, *, graph: bool, early: bool) -> tuple[list[int], list[int]]:
    record, started = b.records(blocks * count), b.zeros(1, np.uint32)
    flags = _TRIGGER | _WAIT_BEFORE if early else 0
    chain = [
        b.hold(record[i * blocks * WORDS :], started, 5000, blocks, flags=flags, early=early) for i in range(count)
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
    rows = b.read(record).reshape(count, blocks, WORDS)
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
                b.launch("wait", 1, 1, (started, np.uint32(1), np.uint64(BUDGET_NS)), stream=two).go()
            else:
                driver.wait_value(two.ptr, b.device.address(started), 1)
            b.hold(after, started[1:], 1000, 8, stream=two).go()
            rows, later = b.read(record).reshape(8, WORDS), b.read(after).reshape(8, WORDS)
            samples.append(int(later[:, 0].min() - rows[:, 0].min()))
        what = "a wait-kernel" if by == "kernel" else "cuStreamWaitValue32"
        b.found.add(f"release_by_{by}", "ns",
                    f"first block of the producer to first block of the consumer behind {what}", samples)  # fmt: skip


def dispatch(b: Bench) -> None:
    """How fast blocks start, where, and how soon a slot is filled again."""
    for per_sm, shared in ((1, ONE_BLOCK), (2, TWO_BLOCKS)):
        slots, waves = b.sms * per_sm, 3
        spread, again, orders, tidy = [], [], [], []
        for _ in range(12):
            record, started = b.records(slots * waves), b.zeros(1, np.uint32)
            b.busy(0.1)
            b.hold(record, started, 30_000, slots * waves, shared=shared).go()
            rows = b.read(record).reshape(slots * waves, WORDS)
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
    gate = b.cupy.cuda.Stream(non_blocking=True)
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
                event = b.event()
                producer = b.hold(record, started, 40_000, blocks, shared=ONE_BLOCK, stream=first)
                consumer = b.hold(after, started[1:], 40_000, b.sms, shared=ONE_BLOCK, stream=second)
                b.busy(0.3, gate)
                event.record(gate)
                first.wait_event(event)
                second.wait_event(event)
                for each in (consumer, producer) if swapped else (producer, consumer):
                    each.go()
                made, used = b.read(record).reshape(-1, WORDS), b.read(after).reshape(-1, WORDS)
                samples.append(int(used[:, 0].min() - made[:, 0].min()))
                late = int((made[:, 0] > used[:, 0].min()).sum())
                early = int((used[:, 0] < made[:, 0].max()).sum())
                rows.append([name, blocks, samples[-1], late, early])
            how = f"consumer's first start less the producer's ({blocks} blocks), {name}; below 0: consumer first"
            b.found.add(f"launch_order_{name}_{blocks}", "ns", how, samples)
    columns = ("case", "producer_blocks", "lead_ns", "producer_blocks_after_consumer", "consumer_blocks_before_last")
    b.found.table("launch_order", "each run: two streams released by one event, 40 us a block", columns, rows)
