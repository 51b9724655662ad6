"""The stronger rival: stream order at the tile, order and split-K that suit each kernel and machine best.

A gain over stream order at one tile may only say that the tile is poor. In stream order kernels don't meet, so each is
chosen alone: every candidate is predicted, cheapest lower bound first, until no bound is below the best time found.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from cusim.engine.cost import FULL_PIPE, block_cost
from cusim.engine.predict import predict
from cusim.engine.result import Prediction
from cusim.engine.setup import kernel_occupancy
from cusim.errors import Problems
from cusim.machine.machine import Machine
from cusim.policies.orders import GroupOrder, Order, RowOrder, order_table
from cusim.policies.plan import Plan
from cusim.program.build import gemm_kernel
from cusim.program.kernel import Gemm, Kernel, Measured
from cusim.program.program import Program
from cusim.workloads.blocks import Architecture, Tiling, block_of, fitting

ROWS, COLS, SPLITS = (64, 128, 256), (64, 128, 256), (1, 2, 3, 4)
ORDERS: tuple[Order, ...] = (RowOrder(), GroupOrder(2), GroupOrder(8))


@dataclass(frozen=True, slots=True)
class Strongest:
    """A program cut anew for stream order, its plan, and how many candidates were predicted of how many."""

    program: Program
    plan: Plan
    predicted: int
    candidates: int


def strongest_stream(program: Program, machine: Machine, rule: Architecture | None) -> Strongest:
    """Stream order with every kernel at its own best tile, order and split-K, as far as the model can tell.

    Without an architecture's *rule* for the blocks of other tiles, and for kernels that are no GEMM or whose time was
    measured, only the order is chosen.
    """
    kernels, orders = [], {}
    predicted = candidates = 0
    for kernel in program.kernels:
        best = _best(kernel, program, machine, rule)
        kernels.append(best.kernel)
        orders[kernel.name] = best.order
        predicted, candidates = predicted + best.predicted, candidates + best.candidates
    return Strongest(
        replace(program, kernels=tuple(kernels)), Plan(order=orders, label="stream"), predicted, candidates
    )


@dataclass(frozen=True, slots=True)
class _Best:
    kernel: Kernel
    order: Order
    predicted: int
    candidates: int


@functools.lru_cache(maxsize=256)
def _best(kernel: Kernel, program: Program, machine: Machine, rule: Architecture | None) -> _Best:
    options = sorted(
        (
            (_bound_ps(cut, order, machine), place, cut, order)
            for place, (cut, order) in enumerate(_options(kernel, rule))
        ),
        key=lambda option: option[:2],
    )
    best, least, predicted = (kernel, ORDERS[0]), math.inf, 0
    for bound, _, cut, order in options:
        if bound >= least:
            break
        predicted += 1
        alone = replace(program, kernels=(replace(cut, reads=()),))
        result = predict(alone, machine, Plan(order={cut.name: order}))
        if isinstance(result, Prediction) and result.total_ps < least:
            best, least = (cut, order), result.total_ps
    return _Best(*best, predicted, len(options))


def _options(kernel: Kernel, rule: Architecture | None) -> Iterator[tuple[Kernel, Order]]:
    for order in ORDERS:
        yield kernel, order
    gemm = kernel.gemm
    if rule is None or gemm is None or isinstance(kernel.cost, Measured):
        return
    for rows in ROWS:
        for cols in COLS:
            for split in SPLITS:
                cut = _cut(kernel, gemm, (rows, cols, kernel.tile[2]), split, rule)
                if cut is not None:
                    for order in ORDERS:
                        yield cut, order


def _cut(kernel: Kernel, gemm: Gemm, tile: tuple[int, int, int], split: int, rule: Architecture) -> Kernel | None:
    """The kernel with another tile and split-K; None where no SM holds its block or a slice would be empty."""
    problems = Problems("tile")
    tiling = fitting(gemm, Tiling(tile, split, rule.stages), rule, "tile", problems)
    steps = -(-gemm.k // tile[2])
    if problems.found or (split - 1) * -(-steps // split) >= steps:
        return None
    operand = kernel.reads[0].buffer
    name = None if operand == f"{kernel.name}.a" else operand
    block = block_of(gemm, tiling, rule)
    made, _ = gemm_kernel(kernel.name, gemm, tile, block, a=name, split_k=split, stages=tiling.stages)
    return made


def _bound_ps(kernel: Kernel, order: Order, machine: Machine) -> int:
    """No run of the kernel is shorter: its blocks' work over all slots, at the speed that the pipes allow."""
    per_sm = kernel_occupancy(kernel, machine).blocks_per_sm
    if per_sm == 0:
        return 0  # predicting it names the reason
    cost = block_cost(kernel, machine, order_table(order, kernel.grid), per_sm)
    step = cost.step_ps * max(1.0, per_sm * cost.pipe_load / FULL_PIPE) / per_sm
    return int(kernel.output_tiles * kernel.steps * step / machine.limits.sms)
