"""The GEMM kernels on a GPU: numbers over shapes, tiles, types, epilogues and splits; semaphores; faults."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from backend_gpu.abi import FAULT, STAMPS, FaultKind, KernelFlag
from backend_gpu.detect import detect
from cusim.policies.registry import build_plan
from cusim.program.kernel import Gemm
from tests.gpu.harness import Launch, Shared, chain, load, random_words, reference, relative_error, single

pytestmark = pytest.mark.gpu

WGMMA = [
    (64, 64, 6),
    (64, 128, 4),
    (64, 256, 5),
    (128, 64, 6),
    (128, 128, 6),
    (128, 192, 5),
    (128, 256, 4),
    (192, 128, 5),
    (192, 192, 4),
    (256, 64, 4),
    (256, 128, 4),
]
MMA = [(64, 64, 4), (64, 128, 4), (128, 64, 4), (128, 128, 4), (128, 256, 3), (256, 128, 3)]
CASES = [("wgmma", *tile) for tile in WGMMA] + [("mma", *tile) for tile in MMA]
#: Rounding of the result to 8 bits (bf16) or 11 bits (fp16), as relative errors of the whole matrix.
TOLERANCE = {"fp16": 1e-3, "bf16": 5e-3}


@pytest.fixture(scope="module", autouse=True)
def gpu() -> None:
    found = detect()
    if not found.usable:
        pytest.skip(f"no usable GPU: {found.driver.problem or found.cupy.problem or found.nvrtc.problem}")
    if found.devices[0].compute_capability != "9.0":
        pytest.skip("the wgmma kernels need compute capability 9.0")


def run_single(
    gemm: Gemm, tile: tuple[int, int], stages: int, family: Any, split: int = 1, runs: int = 2, **how: Any
) -> float:
    import cupy as cp

    persistent = how.pop("persistent", False)
    a, a_real = random_words(gemm.m, gemm.k * (2 if gemm.prologue == "swiglu" else 1), gemm.dtype, 1.0, 1)
    b, b_real = random_words(gemm.k, gemm.n, gemm.dtype, 0.05, 2)
    shared = Shared.make()
    program = single(gemm, (*tile, 64), stages, split, persistent)
    plan = build_plan(program, policy="stream", order=how.pop("order", "group:2"))
    launch = Launch(program, plan, "up", shared, a, b, family=family)
    for flag in how.pop("flags", ()):
        launch.flag(*flag)
    wanted = reference(a_real, b_real, gemm)
    worst = 0.0
    for _ in range(runs):  # the second run meets counters that have grown
        launch.c.fill(0x7FFF)
        launch.partials.fill(cp.nan)
        shared.next()
        launch.run()
        worst = max(worst, nan_as_one(relative_error(launch.result(), wanted)))
        if launch.c.shape[1] > gemm.n:
            assert bool((launch.c[:, gemm.n :] == 0x7FFF).all()), "stored outside the matrix"
    assert not shared.fault.any(), shared.fault.get().view(FAULT)
    return worst


def nan_as_one(error: float) -> float:
    return 1.0 if np.isnan(error) else error


@pytest.mark.parametrize(("family", "rows", "cols", "stages"), CASES)
@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
@pytest.mark.parametrize("what", ["none", "gelu", "swiglu"])
def test_numbers(family: str, rows: int, cols: int, stages: int, dtype: str, what: str) -> None:
    if what == "swiglu":
        stages = max(2, stages // 2)
    # Whole tiles; edges everywhere; split-K with an odd number of steps; one row, one step a slice, the last one short.
    for size, split in (((256, 512, 512), 1), ((200, 328, 200), 1), ((333, 250, 456), 3), ((1, 8, 72), 2)):
        gemm = Gemm(
            *size,
            dtype,
            epilogue="gelu" if what == "gelu" else "none",
            prologue="swiglu" if what == "swiglu" else "none",
        )
        error = run_single(gemm, (rows, cols), stages, family, split)
        limit = TOLERANCE[dtype] * (2 if what != "none" else 1)
        assert error < limit, (size, split, error)


@pytest.mark.parametrize("family", ["wgmma", "mma"])
@pytest.mark.parametrize("split", [1, 4])
def test_persistent_blocks_and_orders(family: str, split: int) -> None:
    gemm = Gemm(1500, 3000, 512)
    for order in ("row", "column", "group:3"):
        for flags in ((), ((KernelFlag.TICKETED, False),), ((KernelFlag.REVERSE,),), ((KernelFlag.REORDER,),)):
            error = run_single(gemm, (128, 128), 4, family, split, 3, persistent=True, order=order, flags=flags)
            assert error < 1e-3, (order, flags)


class Pair:
    """Producer and consumer on two streams."""

    def __init__(
        self,
        policy: str,
        *,
        flags: str = "",
        family: Any = None,
        swiglu: bool = False,
        splits: Any = (1, 1),
        m: int = 700,
        persistent: bool = False,
        tiles: Any = None,
        stamps: bool = False,
    ) -> None:
        import cupy as cp

        up = Gemm(m, 1536, 1024, epilogue="none" if swiglu else "gelu")
        down = Gemm(m, 2048, 768 if swiglu else 1536, prologue="swiglu" if swiglu else "none")
        tiles = tiles or ((128, 128, 64), (128, 256, 64))
        program = chain(up, down, tiles, (3, 3 if family != "mma" else 2), splits, persistent)
        plan = build_plan(program, policy=policy, order="row" if "T" in flags else "group:2", flags=flags)
        self.shared = Shared.make()
        a, self.a = random_words(m, up.k, "fp16", 1.0, 3)
        b, self.b = random_words(up.k, up.n, "fp16", 0.05, 4)
        d, self.d = random_words(down.k, down.n, "fp16", 0.05, 5)
        self.up = Launch(program, plan, "up", self.shared, a, b, family=family, stamps=stamps, started=True)
        self.down = Launch(program, plan, "down", self.shared, self.up.c, d, family=family, stamps=stamps)
        self.down.wait_for(self.up)
        self.streams = [cp.cuda.Stream(non_blocking=True) for _ in range(2)]
        self.wanted = reference(reference(self.a, self.b, up).astype(cp.float16).astype(cp.float32), self.d, down)

    def poison(self) -> None:
        self.up.c.fill(0x7FFF)
        self.down.c.fill(0x7FFF)

    def run(self, *, consumer_first: bool = False) -> float:
        import cupy as cp

        from backend_gpu.build import build_launchers

        module = load(build_launchers("sm_90a").cubin)
        wait = module.get_function("cusim_wait_started")
        self.shared.next()
        cp.cuda.Device().synchronize()
        if consumer_first:
            with self.streams[1]:
                self.down.run()
        with self.streams[0]:
            self.up.run()
        if not consumer_first:
            with self.streams[1]:
                wait((1,), (1,), (self.up.params, np.uint32(self.up.grid), np.uint32(self.up.grid)))
                self.down.run()
        cp.cuda.Device().synchronize()
        return nan_as_one(relative_error(self.down.result(), self.wanted))


CHAINS = [
    ("tile", "RA", False, (1, 1)),
    ("tile", "", True, (1, 1)),
    ("row", "", False, (1, 1)),
    ("row", "T", True, (2, 3)),
    ("batched:2", "R", False, (2, 1)),
    ("tile", "R", False, (3, 2)),
]


@pytest.mark.parametrize(("policy", "flags", "swiglu", "splits"), CHAINS)
@pytest.mark.parametrize("family", ["wgmma", "mma"])
@pytest.mark.parametrize("persistent", [False, True])
def test_chains_wait_for_what_they_read(
    policy: str, flags: str, swiglu: bool, splits: Any, family: str, persistent: bool
) -> None:
    tiles = ((128, 128, 64), (128, 128, 64)) if family == "mma" else None
    pair = Pair(policy, flags=flags, family=family, swiglu=swiglu, splits=splits, persistent=persistent, tiles=tiles)
    for turn in range(4):
        pair.poison()
        pair.up.params["delay_max_ns"] = 200_000 if turn % 2 else 0
        pair.up.params["delay_seed"] = turn
        pair.up.flag(KernelFlag.REVERSE, turn == 3)
        assert pair.run() < 2e-3, turn
        assert not pair.shared.fault.any(), pair.shared.fault.get().view(FAULT)


@pytest.mark.parametrize("family", ["wgmma", "mma"])
def test_a_planted_missing_wait_is_seen(family: str) -> None:
    tiles = ((128, 128, 64), (128, 128, 64)) if family == "mma" else None
    pair = Pair("tile", family=family, tiles=tiles)
    pair.poison()
    pair.up.params["delay_max_ns"] = 1_000_000
    pair.down.flag(KernelFlag.NO_WAIT)
    assert pair.run(consumer_first=True) > 0.5


@pytest.mark.parametrize("family", ["wgmma", "mma"])
def test_a_consumer_without_producer_gives_up_and_says_where(family: str) -> None:
    import cupy as cp

    tiles = ((128, 128, 64), (128, 128, 64)) if family == "mma" else None
    pair = Pair("row", family=family, tiles=tiles)
    pair.down.params["spin_budget_ns"] = 2_000_000
    pair.down.params["kernel_id"] = 7
    pair.shared.next()
    pair.down.run()
    cp.cuda.Device().synchronize()
    fault = pair.shared.fault.get().view(FAULT)[0]
    assert fault["abort"] == 1
    assert (fault["kind"], fault["kernel"], fault["value"], fault["target"]) == (FaultKind.SEMAPHORE, 7, 0, 12)


@pytest.mark.parametrize("family", ["wgmma", "mma"])
def test_stamps_are_in_order(family: str) -> None:
    tiles = ((128, 128, 64), (128, 128, 64)) if family == "mma" else None
    pair = Pair("tile", family=family, tiles=tiles, stamps=True)
    pair.up.params["delay_max_ns"] = 200_000
    assert pair.run() < 2e-3
    for launch in (pair.up, pair.down):
        stamps = launch.stamps.get().view(STAMPS)[:, 0]
        for before, after in zip(
            ("placed", "ready", "first_load", "end"), ("ready", "first_load", "end", "posted"), strict=True
        ):
            assert (stamps[before] <= stamps[after]).all(), (before, after)
        assert sorted(stamps["where"] >> 32) == list(range(launch.bound.tickets))
    assert pair.down.stamps.get().view(STAMPS)["waited"].max() > 10_000
