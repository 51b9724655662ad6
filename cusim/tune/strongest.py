"""The stronger rival: stream order at the tile, order and split-K that suit each kernel and machine best.

A gain over stream order at one tile may only say that the tile is poor. In stream order kernels don't meet, so each is
chosen alone: every way to cut it has a time that it cannot beat, and cuts are predicted from the lowest of these until
none is left that could be a percent faster than the best found.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from cusim.engine.predict import predict
from cusim.engine.result import Prediction
from cusim.errors import Problems
from cusim.machine.machine import Machine
from cusim.policies.orders import GroupOrder, Order, RowOrder
from cusim.policies.plan import Plan
from cusim.program.build import gemm_kernel
from cusim.program.kernel import Gemm, Kernel, Measured
from cusim.program.program import Program
from cusim.tune.bound import least_ps
from cusim.workloads.blocks import Architecture, Tiling, block_of, fitting

SIDES, SPLITS = (64, 128, 256), (1, 2, 3, 4)
#: Where warpgroups take 64 rows each, three of them make a tile too.
WARPGROUP_SIDES = (64, 128, 192, 256)
ORDERS: tuple[Order, ...] = (RowOrder(), GroupOrder(2), GroupOrder(8))
#: A candidate whose bound is not below this part of the best time is not predicted.
CLOSE = 0.99
#: Blocks that are simulated for a program before the search ends with what it has; about a second.
MOST_BLOCKS = 40_000
#: Bounds this close together (in parts of the least) count as equal, and the cut with fewer blocks is tried first.
_BIN = 0.03


@dataclass(frozen=True, slots=True)
class Strongest:
    """A program cut anew for stream order, its plan, and how many candidates were predicted of how many.

    *fixed* says by kernel why its tile and split-K were not chosen; *complete* is false where the search ended at
    :data:`MOST_BLOCKS`.
    """

    program: Program
    plan: Plan
    predicted: int
    candidates: int
    fixed: tuple[tuple[str, str], ...] = ()
    complete: bool = True


def strongest_stream(
    program: Program, machine: Machine, rule: Architecture | None, plan: Plan | None = None
) -> Strongest:
    """Stream order with every kernel at its own best tile, order and split-K, as far as the model can tell.

    Without an architecture's *rule* for the blocks of other tiles, and for kernels whose time was measured, only the
    order is chosen; for kernels that are no GEMM nothing. *plan* is a stream plan whose orders are tried too.
    """
    budget = MOST_BLOCKS // len(program.kernels)
    given = plan or Plan()
    searches = [_Search(k, program, machine, rule, given.order_of(k.name), budget) for k in program.kernels]
    found = [_best(search) for search in searches]
    return Strongest(
        replace(program, kernels=tuple(best.kernel for best in found)),
        Plan(order={best.kernel.name: best.order for best in found}, label="stream"),
        sum(best.predicted for best in found),
        sum(best.candidates for best in found),
        tuple((kernel.name, why) for kernel in program.kernels if (why := _fixed(kernel, rule)) is not None),
        all(best.complete for best in found),
    )


@dataclass(frozen=True, slots=True)
class _Search:
    """One kernel of a program to be cut anew; *given* is an order tried besides, *budget* the blocks to simulate."""

    kernel: Kernel
    program: Program
    machine: Machine
    rule: Architecture | None
    given: Order
    budget: int


@dataclass(frozen=True, slots=True)
class _Best:
    kernel: Kernel
    order: Order
    predicted: int
    candidates: int
    complete: bool


@functools.lru_cache(maxsize=1024)
def _best(search: _Search) -> _Best:
    kernel, machine = search.kernel, search.machine
    orders = tuple(dict.fromkeys((*ORDERS, search.given)))
    if kernel.gemm is None:
        return _Best(kernel, search.given, 0, 0, True)
    cuts = _sorted(list(dict.fromkeys(_cuts(kernel, search.rule))), machine)
    best, least, predicted, blocks = (kernel, search.given), 0, 0, 0
    for bound, cut in cuts:
        mine = 0
        for order in orders:
            # Orders differ in memory traffic alone: none helps a cut that is already as fast as without any.
            if (least and bound >= CLOSE * least) or (mine and bound >= CLOSE * mine):
                break
            if blocks >= search.budget and least:
                return _Best(*best, predicted, len(cuts) * len(orders), False)
            predicted, blocks = predicted + 1, blocks + cut.blocks
            total = _alone_ps(cut, order, search.program, machine)
            mine = min(total, mine or total)
            if not least or total < least:
                best, least = (cut, order), total
    return _Best(*best, predicted, len(cuts) * len(orders), True)


def _sorted(cuts: list[Kernel], machine: Machine) -> list[tuple[int, Kernel]]:
    """The cuts with the times that they cannot beat, lowest first; of those about as low the fewest blocks first."""
    bounds = [least_ps(cut, machine) for cut in cuts]
    least = max(min(bounds), 1)
    places = sorted(
        range(len(cuts)), key=lambda place: (int((bounds[place] / least - 1) / _BIN), cuts[place].blocks, place)
    )
    return [(bounds[place], cuts[place]) for place in places]


def _alone_ps(kernel: Kernel, order: Order, program: Program, machine: Machine) -> int:
    alone = replace(program, kernels=(replace(kernel, reads=()),))
    result = predict(alone, machine, Plan(order={kernel.name: order}))
    assert isinstance(result, Prediction), "a kernel alone waits for nobody"
    return result.total_ps


def _fixed(kernel: Kernel, rule: Architecture | None) -> str | None:
    """Why the kernel's tile and split-K stay as they are; None where they are chosen."""
    if kernel.gemm is None:
        return "no GEMM"
    if isinstance(kernel.cost, Measured):
        return "measured at this tile"
    return "blocks of other tiles are not known for this machine" if rule is None else None


def _cuts(kernel: Kernel, rule: Architecture | None) -> Iterator[Kernel]:
    """The kernel as it is, then with every other tile and split-K that fits an SM."""
    yield kernel
    gemm = kernel.gemm
    if gemm is None or rule is None or _fixed(kernel, rule):
        return
    sides = WARPGROUP_SIDES if rule.group_rows else SIDES
    for rows in sides:
        for cols in sides:
            for split in SPLITS:
                cut = _cut(kernel, gemm, (rows, cols, kernel.tile[2]), split, rule)
                if cut is not None:
                    yield cut


def _cut(kernel: Kernel, gemm: Gemm, tile: tuple[int, int, int], split: int, rule: Architecture) -> Kernel | None:
    """The kernel with another tile and split-K; None where no SM holds its block or a slice would be empty."""
    problems = Problems("tile")
    tiling = fitting(gemm, Tiling(tile, split, rule.stages), rule, "tile", problems)
    steps = -(-gemm.k // tile[2])
    if problems.found or (split - 1) * -(-steps // split) >= steps:
        return None
    operand = kernel.reads[0].buffer if kernel.reads else f"{kernel.name}.a"
    name = None if operand == f"{kernel.name}.a" else operand
    block = block_of(gemm, tiling, rule)
    made, _ = gemm_kernel(
        kernel.name, gemm, tile, block, a=name, split_k=split, stages=tiling.stages, reduce=kernel.reduce
    )
    return made
