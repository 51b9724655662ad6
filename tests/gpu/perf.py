"""Speed of the GEMM kernels against cuBLAS, and the price of semaphores that are already posted.

``python -m tests.gpu.perf FILE SECONDS`` writes a JSON file and starts nothing new after so many seconds. Every time is
a median over runs on fresh random data, each sample in a new random order, since a GPU at its power limit slows whoever
comes late. The best tile is picked in one round and read in another, beside cuBLAS alone.
"""

from __future__ import annotations

import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np

from backend_gpu.abi import KernelFlag
from backend_gpu.bind import bind
from backend_gpu.build import build, build_launchers
from cusim.policies.plan import Plan
from cusim.policies.registry import build_plan
from cusim.program.kernel import Gemm
from cusim.program.program import Program
from tests.gpu.harness import Launch, Shared, chain, load, random_words, single

TILES = [
    (128, 256, 4),
    (128, 192, 5),
    (128, 128, 6),
    (256, 128, 4),
    (192, 192, 4),
    (192, 128, 5),
    (64, 256, 5),
    (64, 128, 4),
    (128, 64, 8),
    (64, 64, 6),
]
#: N, K of GPT-3's and LLaMA's products.
SHAPES = {"gpt3-up": (6144, 12288), "gpt3-down": (12288, 6144), "llama-up": (5632, 8192), "llama-down": (8192, 2816)}


def medians(bodies: list[Any], samples: int = 9, inner: int = 4) -> list[float]:
    """Median microseconds of each body: *inner* calls queued behind a busy kernel, so that the host does not count.

    A body is a launch, or anything else to be called. At most as many calls as a launch has sets of counters.
    """
    import cupy as cp

    busy = load(build_launchers("sm_90a").cubin).get_function("cusim_busy")
    stream = cp.cuda.Stream(non_blocking=True)
    found = np.zeros((samples, len(bodies)))
    shuffled = np.random.default_rng(5)
    calls = [body.run_again if isinstance(body, Launch) else body for body in bodies]
    with stream:
        for body, call in zip(bodies, calls, strict=True):
            if isinstance(body, Launch):
                body.prepare_again()
                body.reset()
            call()
        for sample in range(samples + 1):
            events = [(cp.cuda.Event(), cp.cuda.Event()) for _ in bodies]
            for at in shuffled.permutation(len(bodies)):
                busy((1,), (1,), (np.uint64(300_000),))
                if isinstance(bodies[at], Launch):
                    bodies[at].reset()
                events[at][0].record(stream)
                for _ in range(inner):
                    calls[at]()
                events[at][1].record(stream)
            stream.synchronize()
            if sample:
                found[sample - 1] = [cp.cuda.get_elapsed_time(*pair) * 1e3 / inner for pair in events]
    return [float(x) for x in np.median(found, axis=0)]


def waves(m: int, n: int, tile: tuple[int, int], split: int) -> float:
    return -(-m // tile[0]) * -(-n // tile[1]) * split / 132


def candidates(m: int, name: str) -> list[tuple[str, Program, Plan]]:
    """Every tile, split and form that could suit a shape."""
    n, k = SHAPES[name]
    found = []
    for rows, cols, stages in TILES:
        if rows > 2 * max(m, 32) or (rows * cols <= 8192 and m > 256):
            continue
        for split in (1, 2, 3, 4, 6):
            many = waves(m, n, (rows, cols), split)
            if split > 1 and (many > 2.2 or m > 1024 or (split > 3 and m > 128)):
                continue
            if many < 0.45 and split < 6:
                continue
            for persistent in (False, True):
                if persistent and (many <= 1 or split > 1 or rows * cols < 24576):
                    continue
                program = single(Gemm(m, n, k), (rows, cols, 64), stages, split, persistent)
                plan = Plan(order=build_plan(program, order="group:8").order)
                found.append((f"{rows}x{cols}s{stages}z{split}{'p' if persistent else ''}", program, plan))
    return found


def compiled(case: tuple[int, str]) -> int:
    """Compiles all candidates of a shape, so that the measuring process finds them kept."""
    return len([build(bind(program, plan, "up")) for _, program, plan in candidates(*case)])


def gemm_rows(m: int, name: str) -> dict[str, Any]:
    import cupy as cp

    n, k = SHAPES[name]
    a, _ = random_words(m, k, "fp16", 1.0, m)
    b, _ = random_words(k, n, "fp16", 0.05, m + 1)
    c = cp.empty((m, n), cp.uint16)
    shared = Shared.make()
    shared.next()
    left, right, out = (x.view(cp.float16) for x in (a, b, c))
    names, bodies = ["cublas"], [lambda: cp.matmul(left, right, out=out)]
    for label, program, plan in candidates(m, name):
        launch = Launch(program, plan, "up", shared, a, b, c=c)
        launch.flag(KernelFlag.TICKETED, False)
        names.append(label)
        bodies.append(launch)
    first = dict(zip(names, medians(bodies, 5, 2), strict=True))
    best = min((label for label in names if label != "cublas"), key=lambda label: first[label])
    cublas, ours = medians([bodies[0], bodies[names.index(best)]], 21)
    return {
        "m": m,
        "shape": name,
        "best": best,
        "cublas_us": round(cublas, 1),
        "ours_us": round(ours, 1),
        "ratio": round(cublas / ours, 3),
        "tflops": [round(2 * m * n * k / t / 1e6) for t in (cublas, ours)],
        "all": {label: round(t, 1) for label, t in first.items()},
    }


def semaphore_cases(m: int, persistent: bool) -> list[tuple[str, Program, Plan, bool]]:
    """(label, program, plan, ticketed) of GPT-3's chain with and without semaphores."""
    tile, stages = ((128, 192, 64), 5) if persistent else ((128, 256, 64), 4)
    program = chain(Gemm(m, 6144, 12288), Gemm(m, 12288, 6144), (tile, tile), (stages, stages), (1, 1), persistent)
    found = []
    for label, policy, flags in (
        ("none", "stream", ""),
        ("row", "row", ""),
        ("tile", "tile", ""),
        ("tile R", "tile", "R"),
    ):
        plan = build_plan(program, policy=policy, order="group:2", flags=flags)
        found.append((label, program, plan, True))
        if not flags:
            found.append((f"{label} T", program, plan, False))
    return found


def semaphore_rows(m: int, persistent: bool) -> dict[str, Any]:
    """GPT-3's down product alone, everything already posted: with policies, and without."""
    shared = Shared.make()
    shared.next()
    a, _ = random_words(m, 12288, "fp16", 1.0, 1)
    b, _ = random_words(12288, 6144, "fp16", 0.05, 2)
    d, _ = random_words(6144, 12288, "fp16", 0.05, 3)
    names, bodies, kept = [], [], []
    for label, program, plan, ticketed in semaphore_cases(m, persistent):
        producer = Launch(program, plan, "up", shared, a, b)
        consumer = Launch(program, plan, "down", shared, producer.c, d)
        consumer.wait_for(producer)
        producer.flag(KernelFlag.TICKETED, False)
        consumer.flag(KernelFlag.TICKETED, ticketed)
        producer.run()
        names.append(label)
        bodies.append(consumer)
        kept.append((producer, consumer))
    table = dict(zip(names, medians(bodies, 25), strict=True))
    assert not shared.fault.any()
    extra = {k: round(100 * (v / table["none T" if k.endswith(" T") else "none"] - 1), 2) for k, v in table.items()}
    us = {k: round(v, 2) for k, v in table.items()}
    return {"m": m, "persistent": persistent, "us": us, "extra_pct": extra}


#: M, and persistent or not.
CHAINS = [(1024, False), (512, False), (768, False), (2048, True)]


def compiled_chain(case: tuple[int, bool]) -> int:
    """Compiles both kernels of a chain, for every policy."""
    return sum(
        len(build(bind(program, plan, k)).cubin) > 0
        for _, program, plan, _ in semaphore_cases(*case)
        for k in ("up", "down")
    )


def main() -> None:
    begun = time.monotonic()
    limit = begun + float(sys.argv[2])
    found: dict[str, Any] = {"gemm": [], "semaphores": []}

    def say(row: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(row) + "\n")
        sys.stdout.flush()
        with open(sys.argv[1], "w") as file:
            json.dump(found, file)

    cases = [(m, name) for m in (64, 128, 256, 512, 768, 1024, 1536, 2048) for name in SHAPES]
    with ProcessPoolExecutor(14, mp_context=get_context("spawn")) as pool:  # NVRTC takes a processor
        count = sum(pool.map(compiled, cases)) + sum(pool.map(compiled_chain, CHAINS))
        say({"compiled": count, "s": round(time.monotonic() - begun)})
    for m, persistent in CHAINS:
        if time.monotonic() < limit:
            found["semaphores"].append(semaphore_rows(m, persistent))
            say(found["semaphores"][-1])
    for m, name in cases:
        if time.monotonic() < limit:
            found["gemm"].append(gemm_rows(m, name))
            say(found["gemm"][-1])


if __name__ == "__main__":
    main()
