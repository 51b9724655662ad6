"""Micro-benchmarks of the clock: what an SM's clock falls to while so many others run matrix products.

A block that holds one SM to itself reads the timer and the clock side by side, again and again, while a product of a
known number of tiles runs on the others. All SMs share the clock.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend_gpu.bench import Bench as Products
from backend_gpu.bench import Mode
from backend_gpu.micro_device import BUDGET_NS, ONE_BLOCK, Bench, Ints
from cusim.recording.cells import Cell, program_of

#: Rows and columns of tiles that run at once, and the tile; k is long enough for the clock to settle.
_GRIDS = ((1, 1), (3, 4), (6, 6), (8, 8), (9, 9), (10, 10), (11, 11), (10, 13))
_TILE, _DEPTH = (128, 192), 49152
#: Time between two readings, and how many: a GPU that lets a voltage regulator swing does so for 0.1 ms.
_STEP_NS, _READINGS = 2_000, 1_200
_SETTLED_NS = 120_000
#: Tiles of two and three warpgroups, and two depths whose difference is all main loop. Depths of 64 x an odd number
#: keep the rows of an operand from falling on the same channels of memory.
_STEP_TILES, _STEP_DEPTHS, _STEP_K = ((128, 256), (128, 192), (192, 192), (128, 128)), (64 * 129, 64 * 385), 64
_FLOPS_PER_CLOCK = 4096


def clock(b: Bench) -> None:
    """The clock of an idle SM while none, some and all of the others multiply random numbers, and while all multiply
    zeros, which hardly switch a transistor.
    """
    idle = _clocks(b, None)
    b.found.add("clock_idle", "GHz", "clock over timer on one SM, the others idle", idle)
    for rows, cols in _GRIDS:
        busy = min(rows * cols, b.sms - 1)
        values = [value for _ in range(3) for value in _clocks(b, _product(b, rows, cols))]
        how = f"clock over timer on one SM while {busy} others run products of random fp16 numbers, from 0.12 ms on"
        b.found.add(f"clock_tensor_{busy}", "GHz", how, values)
    zeros = _product(b, *_GRIDS[-1])
    for buffers in zeros.buffers:
        for array in buffers.values():
            array[:] = 0
    how = f"clock over timer on one SM while {b.sms - 2} others run products of zeros, from 0.12 ms on"
    b.found.add("clock_zeros", "GHz", how, _clocks(b, zeros))


def steps(b: Bench) -> None:
    """What a k step takes beyond its products: a lone tile at two depths, in clocks with one SM's tensor cores busy."""
    clocks_a_ns = float(np.median(b.found.quantities["clock_tensor_1"].samples))
    for rows, cols in _STEP_TILES:
        short, long = (_times(b, _product(b, 1, 1, (rows, cols), depth)) for depth in _STEP_DEPTHS)
        ns_a_step = (long - np.median(short)) / ((_STEP_DEPTHS[1] - _STEP_DEPTHS[0]) / _STEP_K)
        products = 2 * rows * cols * _STEP_K / _FLOPS_PER_CLOCK
        how = f"clocks of a k step of a lone {rows}x{cols} tile at clock_tensor_1, beyond the {products:g} of products"
        b.found.add(f"step_clocks_{rows}x{cols}", "clock", how, (ns_a_step * clocks_a_ns - products).tolist())


def _times(b: Bench, products: Products) -> NDArray[np.float64]:
    """Nanoseconds of a run, several times."""
    commands: Any = products.commands(0, Mode())
    return np.array([products.timed(commands) / 1000 for _ in range(9)])


def _product(b: Bench, rows: int, cols: int, tile: tuple[int, int] = _TILE, depth: int = _DEPTH) -> Products:
    """A product of rows x cols tiles, each on an SM of its own."""
    sizes = (rows * tile[0], cols * tile[1], depth)
    cell = Cell("", "calibrate", "", sizes[0], f"{tile[0]}x{tile[1]}x64", "1", "stream", "stream", "group:8", None)
    program, plan = program_of(replace(cell, gemm=sizes), "h200")
    products = Products(b.device, program, plan)
    products.run(products.commands(0, Mode()))
    return products


def _clocks(b: Bench, products: Products | None) -> list[float]:
    """GHz over stretches of ten readings, those in which the product runs."""
    readings = b.zeros(2 * _READINGS, np.uint64)
    arguments = (readings, np.uint32(_READINGS), np.uint64(_STEP_NS), np.uint64(BUDGET_NS))
    commands: Any = products.commands(0, Mode(stamped=True)) if products else None
    b.launch("clocks", 1, 32, arguments, stream=b.streams[1], shared=ONE_BLOCK).go()
    time.sleep(2e-4)
    begin, end = 0, 2**63 - 1
    if products:
        products.epoch += 1
        commands.issue_beside(products.epoch)
    rows = b.read(readings).reshape(-1, 2)
    if products:
        stamps = b.device.to_host(products.stamps[0]).reshape(-1, 8).astype(np.int64)
        begin, end = int(stamps[:, 0].max()) + _SETTLED_NS, int(stamps[:, 3].min())
    return _rates(rows[rows[:, 0] > 0][::10], begin, end)


def _rates(rows: Ints, begin: int, end: int) -> list[float]:
    """Clocks a nanosecond of each stretch that lies between *begin* and *end*."""
    inside = (rows[:-1, 0] >= begin) & (rows[1:, 0] <= end)
    rates = np.diff(rows[:, 1]) / np.diff(rows[:, 0])
    return [round(float(rate), 5) for rate in rates[inside]]
