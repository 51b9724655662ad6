"""Micro-benchmarks of an SM and its memory: the timer, semaphores, posts, fences, occupancy, bandwidth."""

from __future__ import annotations

import numpy as np

from backend_gpu import driver
from backend_gpu.build import compile_source, kernel_sources
from backend_gpu.micro_device import BUDGET_NS, ONE_BLOCK, WORDS, Bench, Ints
from cusim.machine import load_machine, occupancy

_REGISTERS = (24, 32, 40, 64, 72, 96, 128, 168, 200, 255)  # kernels of micro.cu by their cap
_THREADS = (32, 64, 96, 128, 160, 192, 256, 384, 512, 640, 768, 1024)
_COPY_THREADS = 512  # as micro.cu has it
_SHARED_KIB = (0, 1, 4, 8, 16, 24, 32, 48, 56, 64, 75, 96, 100, 112, 113, 114, 128, 160, 200, 227)


def timer(b: Bench) -> None:
    """The steps of the global timer, how far SMs differ in it, and the clock of an SM."""
    values = b.zeros(400, np.uint64)
    module = driver.load_module(compile_source(kernel_sources()["timer.cu"], b.device.arch).cubin)
    arguments = (np.array([b.device.address(values)], np.uint64), np.array([400], np.int32))
    driver.Launch(driver.get_function(module, "cusim_timer"), 1, 1, 0, b.streams[0].ptr, arguments).go()
    b.found.add(
        "timer_step", "ns", "differences of successive values of %globaltimer", np.diff(b.read(values)).tolist()
    )
    spreads = []
    for _ in range(40):
        arrived, readings = b.zeros(1, np.uint32), b.zeros(b.sms, np.uint64)
        b.launch("spread", b.sms, 1, (arrived, readings, np.uint64(BUDGET_NS)), shared=ONE_BLOCK).go()
        spreads.append(int(np.ptp(b.read(readings))))
    b.found.add("timer_spread", "ns", "largest less smallest reading by one block an SM after a grid barrier", spreads)
    _, out = costs(b, 3, 30, 1)
    clock = (out[5:, 1] / out[5:, 0]).tolist()
    b.found.add("sm_clock", "GHz", "cycles over nanoseconds of 100 us stretches on one SM", clock)


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
            b.launch("answer", b.sms, 1, (words, out, *numbers, np.uint64(BUDGET_NS)), shared=ONE_BLOCK).go()
            found = b.read(out)
            halves = found[2:batches] / (2 * rounds)
            if halves.min() > 0:
                every += halves.tolist()
                pairs.append([int(found[batches]), int(found[batches + 1]), float(np.median(halves))])
        how = f"half of a round between two SMs, {rounds} rounds a sample, five partners: {style}, then ld.acquire"
        b.found.add(f"semaphore_{style}", "ns", how, every)
        b.found.table(f"semaphore_{style}_pairs", how, ("sm", "partner_sm", "median_ns"), pairs)
    for blocks in (1, b.sms):
        spacing, count = [], 256
        for _ in range(15):
            arrived, word, record = b.zeros(1, np.uint32), b.zeros(1, np.uint32), b.records(blocks)
            arguments = (arrived, word, record, np.uint32(count), np.uint64(BUDGET_NS))
            b.launch("posts", blocks, 1, arguments, shared=ONE_BLOCK).go()
            rows = b.read(record).reshape(blocks, WORDS)
            spacing.append(float(rows[:, 2].max() - rows[:, 0].min()) / (blocks * count))
        b.found.add(
            f"post_spacing_{blocks}", "ns", f"{blocks} SMs post {count} times each to one word: time a post", spacing
        )
    for what, name in enumerate(("acquire_satisfied", "proxy_fence", "acquire_and_fence")):
        samples, _ = costs(b, what, 40, 64)
        b.found.add(name, "ns", "one thread alone, 64 in a row a sample, the word in L2, each", samples)


def costs(b: Bench, what: int, batches: int, count: int) -> tuple[list[float], Ints]:
    """Nanoseconds of one operation, batch by batch; and each batch in ns and cycles. *what* is a case of the kernel."""
    word, out = b.zeros(64, np.uint32), b.zeros(batches * 2, np.uint64)
    b.launch("costs", 1, 1, (word, out, np.uint32(batches), np.uint32(count), np.uint32(what))).go()
    rows = b.read(out).reshape(batches, 2)
    return (rows[5:, 0] / count).tolist(), rows


def occupancies(b: Bench) -> None:
    """The driver's blocks per SM beside the model's, over block shapes."""
    machine, rows = load_machine("h200"), []
    for cap in _REGISTERS:
        function = b.function(f"keep_{cap}")
        registers = driver.registers_of(function)
        for threads in _THREADS:
            for kib in _SHARED_KIB:
                said = driver.blocks_per_sm(function, threads, kib * 1024)
                rows.append(
                    [
                        threads,
                        registers,
                        kib * 1024,
                        said,
                        occupancy(machine, threads, registers, kib * 1024).blocks_per_sm,
                    ]
                )
    columns = ("threads", "registers", "shared_bytes", "driver_blocks", "model_blocks")
    how = "cuOccupancyMaxActiveBlocksPerMultiprocessor, dynamic shared memory, beside cusim.machine.occupancy"
    b.found.table("occupancy", how, columns, rows)
    b.found.add("occupancy_difference", "blocks", f"{how}: driver less model", [row[3] - row[4] for row in rows])


def bandwidth(b: Bench) -> None:
    """Bytes read and written a nanosecond, out of L2 and out of device memory."""
    for name, mib, passes, per_sm in (("l2_8mib", 8, 200, 4), ("l2_16mib", 16, 100, 2), ("hbm", 2048, 1, 4)):
        count = mib * 2**20 // 16
        source, target = b.zeros(mib * 2**20, np.uint8), b.zeros(mib * 2**20, np.uint8)
        arguments = (source, target, np.uint64(count), np.uint32(passes))
        launch = b.launch("copy", b.sms * per_sm, _COPY_THREADS, arguments)
        b.elapsed_ns(launch.go, 0.1)
        rate = [2 * count * 16 * passes / b.elapsed_ns(launch.go, 0.1) for _ in range(11)]
        how = (
            f"copy of {mib} MiB, {passes} times in a kernel of {b.sms * per_sm} blocks, past L1, bytes read and written"
        )
        b.found.add(f"bandwidth_{name}", "GB/s", how, rate)
