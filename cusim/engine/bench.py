"""How fast the engine is, beside a bare SimPy loop in the same process (design §10).

``python -m cusim.engine.bench`` prints the figures and writes ``build/bench.json``. The ratios are the figures of
merit; a rate alone says more about the computer it was taken on.
"""

from __future__ import annotations

import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from simpy import Environment

from cusim.engine.anchor import anchored_costs
from cusim.engine.predict import predict
from cusim.engine.simulate import simulate
from cusim.machine.load import load_machine
from cusim.machine.machine import Machine
from cusim.policies.base import SyncPolicy
from cusim.policies.batched import BatchedPolicy
from cusim.policies.flags import Flags
from cusim.policies.orders import GroupOrder
from cusim.policies.plan import Plan
from cusim.policies.row import RowPolicy
from cusim.policies.tile import TilePolicy
from cusim.program.build import gemm_kernel
from cusim.program.kernel import BlockResources, Gemm
from cusim.program.program import Program

REPEATS = 5
TILES = 20_000
#: One block an SM, as on the readings' H200, and two that share its tensor pipe.
WIDE = BlockResources(threads=384, registers=168, smem_bytes=196 * 1024)
PAIRED = BlockResources(threads=256, registers=128, smem_bytes=98 * 1024)


def bare_loop(tiles: int, slots: int) -> float:
    """Seconds that a SimPy process for each slot takes to hold *tiles* timeouts: what any slot model must pay."""
    env = Environment()
    left = [tiles]

    def slot(length: int) -> Generator[Any, Any, None]:
        while left[0] > 0:
            left[0] -= 1
            yield env.timeout(length)

    for index in range(slots):
        env.process(slot(1000 + index))
    return _seconds(env.run)


def engine_loop(program: Program, machine: Machine, plan: Plan) -> float:
    """Seconds that the engine takes to simulate a program, sharing on; set-up included."""
    costs = anchored_costs(program, machine, plan)
    return _seconds(lambda: simulate(program, machine, plan, costs))


def measure() -> dict[str, Any]:
    """All figures: tiles a second of the bare loop, the engine's ratios to it, and the growth of time with tiles."""
    machine = load_machine("h200")
    wide, paired = chain(TILES, WIDE), chain(TILES, PAIRED)
    slots = machine.limits.sms
    bare = [bare_loop(_tiles(wide), slots) for _ in range(REPEATS)]
    cases: dict[str, tuple[Program, Plan]] = {
        "stream_ratio": (wide, Plan()),
        "tile_ratio": (wide, overlapped(wide, TilePolicy())),
        "row_ratio": (wide, overlapped(wide, RowPolicy())),
        "contended_ratio": (paired, overlapped(paired, TilePolicy())),
    }
    result: dict[str, Any] = {"bare_tiles_per_s": round(_tiles(wide) / statistics.median(bare))}
    for name, (program, plan) in cases.items():
        times = [engine_loop(program, machine, plan) for _ in range(REPEATS)]
        result[name] = round(_ratio(bare, times, _tiles(wide) / _tiles(program)), 3)
    result["seconds_by_tiles"] = {
        str(tiles): round(engine_loop(chain(tiles, WIDE), machine, Plan()), 3) for tiles in (1_000, 10_000, 100_000)
    }
    result["all_policies_m2048_s"] = round(all_policies(machine), 3)
    result["python"] = platform.python_version()
    return result


def _ratio(bare: list[float], engine: list[float], scale: float) -> float:
    """Engine speed over bare speed, both in tiles a second, by medians."""
    return statistics.median(bare) / (statistics.median(engine) * scale)


def all_policies(machine: Machine) -> float:
    """Seconds for GPT-3's MLP at M = 2048 in stream order and under every policy."""
    program = two_gemms((2048, 6144, 12288), (2048, 12288, 6144), (128, 256, 64), WIDE)
    plans = [Plan(), *(overlapped(program, policy) for policy in (TilePolicy(), RowPolicy(), BatchedPolicy()))]

    def run() -> None:
        for plan in plans:
            predict(program, machine, plan)

    return _seconds(run)


def chain(tiles: int, block: BlockResources) -> Program:
    """Two dependent GEMMs of about *tiles* tiles in all, each 24 tiles wide."""
    size = (128 * max(1, tiles // 48), 24 * 128, 24 * 128)
    return two_gemms(size, size, (128, 128, 64), block)


def two_gemms(
    first: tuple[int, int, int], second: tuple[int, int, int], tile: tuple[int, int, int], block: BlockResources
) -> Program:
    """GEMMs of m, n, k elements, the second reading the first's output."""
    one, buffers = gemm_kernel("first", Gemm(*first), tile, block)
    two, more = gemm_kernel("second", Gemm(*second), tile, block, a="first")
    return Program((one, two), (*buffers, *more), name="bench")


def overlapped(program: Program, policy: SyncPolicy) -> Plan:
    """Semaphores, bands of two rows, a wait-kernel."""
    return Plan(
        sync={"first>second": policy},
        order={kernel.name: GroupOrder(2) for kernel in program.kernels},
        flags={kernel.name: Flags(R=policy.name == "tile") for kernel in program.kernels},
        launch="wait-first",
    )


def _tiles(program: Program) -> int:
    return sum(kernel.blocks for kernel in program.kernels)


def _seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def main() -> None:
    """Measures, prints and writes ``build/bench.json``."""
    result = measure()
    target = Path("build/bench.json")
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(result, indent=2) + "\n")
    json.dump(result, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
