"""Small machines, programs and plans for the engine's tests, with every latency 0 unless a test sets it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from cusim.engine.cost import BlockCost
from cusim.engine.dispatcher import Rule
from cusim.engine.record import make_trace
from cusim.engine.simulate import Finished, simulate
from cusim.machine import load_machine, with_overrides
from cusim.machine.machine import Machine
from cusim.policies.base import SyncPolicy
from cusim.policies.flags import Flags
from cusim.policies.orders import Order
from cusim.policies.plan import Launch, Plan
from cusim.policies.row import RowPolicy
from cusim.policies.tile import TilePolicy
from cusim.program.buffer import Access
from cusim.program.build import Parts, gemm_kernel
from cusim.program.kernel import BlockResources, Gemm, Kernel, Measured
from cusim.program.program import Program
from cusim.trace.trace import Trace

_LAUNCH = (
    "gap", "graph_gap", "early", "early_wait", "latency", "enqueue", "event", "wait_kernel", "wait_value", "event_host",
)  # fmt: skip
TIMES = {
    "block": ("prologue", "epilogue", "ticket", "load"),
    "sync": ("post", "post_store", "visible", "visible_store", "poll", "satisfied", "same_address"),
    "launch": _LAUNCH,
    "dispatch": ("block", "refill"),
}
FREE = (
    "rates.sm_l2_bytes_per_clock=4096B/clock",
    "rates.sm_store_bytes_per_clock=4096B/clock",
    "rates.l2_link_bytes_per_s=10000TB/s",
    "rates.contention_sharpness=1000",
    "rates.clock_droop=0",
    "sync.hidden_wait_share=0",
    "block.step_clocks=0clock",
    *(f"{section}.{name}_ps=0ps" for section, names in TIMES.items() for name in names),
    "rates.sustained_share=1",
)
SM_SMEM = 228 * 1024
RESERVE = 1024


def tiny(sms: int, *settings: str) -> Machine:
    """An H200 of *sms* SMs, SM 0 first, on which only a tile's work takes time and power limits nothing."""
    return with_overrides(load_machine("h200"), [f"limits.sms={sms}", "dispatch.sm_order=ascending", *FREE, *settings])


def fits(per_sm: int, threads: int = 32) -> BlockResources:
    """A block of which shared memory lets *per_sm* stay on an SM, and a few wait-kernels beside them."""
    return BlockResources(threads, 16, (SM_SMEM - 4 * RESERVE) // per_sm // 128 * 128 - RESERVE)


def cost(
    step: int, *, prologue: int = 0, tail: int = 0, pipe: int = 0, l2: int = 0, hbm: int = 0, link: int = 0
) -> BlockCost:
    """A block's cost; *step*, *prologue* and *tail* in ps, *pipe* in millionths, the memories in bytes a second."""
    return BlockCost(prologue, step, tail, pipe, l2, hbm, link_bytes_per_s=link)


def grid_kernel(
    name: str,
    grid: tuple[int, int],
    steps: int = 1,
    *,
    a: str | None = None,
    split: int = 1,
    stages: int = 1,
    block: BlockResources | None = None,
    reduce: Literal["serial", "last_arriver"] = "serial",
    needs: tuple[Access, ...] = (),
) -> Parts:
    """A GEMM whose tiles are single elements, so that *grid* and *steps* are its M, N and K."""
    gemm = Gemm(grid[0], grid[1], steps)
    return gemm_kernel(
        name, gemm, (1, 1, 1), block or fits(1), a=a, split_k=split, stages=stages, reduce=reduce, needs=needs
    )  # fmt: skip


def program_of(*parts: Parts, name: str = "case") -> Program:
    return Program(tuple(kernel for kernel, _ in parts), tuple(b for _, buffers in parts for b in buffers), name=name)


def pair(
    first: tuple[int, int], cols: int, *, stages: int = 1, block: BlockResources | None = None
) -> Program:  # fmt: skip
    """``a`` with tiles *first* and one step, then ``b`` of as many rows and *cols* columns, which reads its row."""
    return program_of(
        grid_kernel("a", first, block=block, stages=stages),
        grid_kernel("b", (first[0], cols), first[1], a="a", block=block, stages=stages),
    )


def plan(
    program: Program,
    launch: Launch = "none",
    policy: SyncPolicy | None = None,
    *,
    deps: Sequence[str] = ("a>b",),
    order: Mapping[str, Order] | None = None,
    flags: Flags | None = None,
    streams: int | None = None,
) -> Plan:
    """*policy* (TileSync unless given) for each of *deps*, and the same *flags* for every kernel."""
    return Plan(
        sync=dict.fromkeys(deps, policy or TilePolicy()),
        order=order or {},
        flags={kernel.name: flags or Flags() for kernel in program.kernels},
        launch=launch,
        streams=streams,
    )


POLICIES: tuple[SyncPolicy, ...] = (TilePolicy(), RowPolicy())


@dataclass(frozen=True)
class Ran:
    """A simulated run with the columns that tests read; times in ps. *left* is when each block gave up its slot."""

    finished: Finished
    trace: Trace
    total: int
    left: np.ndarray

    def of(self, kernel: str, column: str) -> list[int]:
        """A column of one kernel's blocks, in ticket order."""
        rows = self.trace.tiles["kernel"] == self.trace.kernels.index(kernel)
        values = self.left if column == "left" else self.trace.tiles[column]
        return [int(value) for value in values[rows]]

    def event(self, kernel: str, column: str) -> int:
        return int(self.trace.events[column][self.trace.kernels.index(kernel)])


def ran(
    program: Program,
    machine: Machine,
    chosen: Plan,
    costs: Mapping[str, BlockCost] | int,
    rule: Rule = "arrival",
    seed: int = 0,
    *,
    exact: bool = True,
    stuck: bool = False,
) -> Ran:
    """Simulates with given block costs (or one k-step time for all); *exact*: the memory's speed has no quantum.

    What a given cost draws from memory holds for every block, as if measured: no panels are looked for in L2.
    """
    given = {k.name: cost(costs) for k in program.kernels} if isinstance(costs, int) else costs
    bounds = (0.0, 0) if exact else ()
    stated = replace(program, kernels=tuple(_as_measured(k) if k.name in given else k for k in program.kernels))
    finished = simulate(stated, machine, chosen, given, rule, seed, *bounds)
    assert stuck or not finished.unfinished, f"{finished.unfinished} blocks never ended"
    trace = make_trace(finished.setup.runs, finished.wait_rows, finished.dependences, {})
    posted, end = trace.tiles["posted"], trace.tiles["end"]
    return Ran(finished, trace, finished.total_ps, np.where(posted >= 0, posted, end))


def _as_measured(kernel: Kernel) -> Kernel:
    """The kernel with its cost given; the time is not looked at."""
    return replace(kernel, cost=Measured(1, "given", kernel.gemm)) if kernel.gemm else kernel
