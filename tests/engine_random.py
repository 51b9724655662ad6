"""Random programs, plans and machines for the engine's properties: chains, splits, fan-in, fan-out, persistence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from hypothesis import strategies as st

from cusim.engine.cost import BlockCost
from cusim.engine.dispatcher import Rule
from cusim.machine.machine import Machine
from cusim.policies.base import SyncPolicy
from cusim.policies.batched import BatchedPolicy
from cusim.policies.flags import Flags
from cusim.policies.orders import ColumnOrder, GroupOrder, Order, RowOrder, TableOrder
from cusim.policies.plan import Launch, Plan
from cusim.policies.row import RowPolicy
from cusim.policies.tile import TilePolicy
from cusim.program.buffer import Access
from cusim.program.build import Parts, gemm_kernel, tile_range
from cusim.program.depends import dependences
from cusim.program.expr import as_expr, r
from cusim.program.kernel import Gemm, Kernel
from cusim.program.program import Program
from tests.engine_programs import Ran, fits, program_of, ran, tiny

LATENCIES = (
    "block.ticket_ps=40ps", "block.load_ps=300ps", "sync.post_ps=200ps", "sync.post_store_ps=150ps",
    "sync.visible_ps=120ps", "sync.visible_store_ps=90ps", "sync.satisfied_ps=25ps", "sync.same_address_ps=60ps",
    "launch.gap_ps=500ps", "launch.event_ps=600ps", "launch.wait_kernel_ps=250ps", "launch.wait_value_ps=230ps",
    "launch.graph_gap_ps=210ps", "launch.early_ps=130ps", "launch.early_wait_ps=170ps", "dispatch.block_ps=7ps",
)  # fmt: skip
#: A consumer arrives 1 ps after what releases it: at one instant the seed could put it ahead of its own producer.
FREE_BUT_ORDERED = ("launch.wait_kernel_ps=1ps", "launch.wait_value_ps=1ps")


@dataclass(frozen=True)
class Scene:
    """One random case: what ``simulate`` needs."""

    program: Program
    sms: int
    free: bool
    plan: Plan
    costs: dict[str, BlockCost]
    rule: Rule
    seed: int

    @property
    def machine(self) -> Machine:
        return machine_of(self.sms, self.free)

    def run(self, plan: Plan | None = None, *, stuck: bool = False) -> Ran:
        chosen = self.plan if plan is None else plan
        return ran(self.program, self.machine, chosen, self.costs, self.rule, self.seed, stuck=stuck)


@st.composite
def programs(draw: st.DrawFn, *, mixed: bool = True, loops: bool = True) -> Program:
    """Two to four kernels. *mixed*: blocks of unequal size; *loops*: some kernels are persistent."""
    rows = draw(st.integers(1, 6))
    common = draw(st.integers(1, 3))
    parts: list[Parts] = []
    for name in "abcd"[: draw(st.integers(2, 4))]:
        block = fits(draw(st.integers(1, 3)) if mixed else common, draw(st.sampled_from((32, 64, 256))))
        made = _kernel(draw, name, rows, [kernel for kernel, _ in parts], replace(block, registers=16))
        persistent = loops and draw(st.integers(0, 4)) == 0
        parts.append((replace(made[0], persistent=persistent), made[1]))
    return program_of(*parts, name="random")


def _kernel(draw: st.DrawFn, name: str, rows: int, earlier: list[Kernel], block: object) -> Parts:
    tile = (draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 2)))
    source = draw(st.sampled_from([None, *earlier])) if earlier else None
    depth = source.gemm.n if source is not None and source.gemm else draw(st.integers(1, 5))
    steps = -(-depth // tile[2])
    split = draw(st.sampled_from([z for z in (1, 1, 2, 3) if (z - 1) * -(-steps // z) < steps]))
    needs: tuple[Access, ...] = ()
    others = [kernel for kernel in earlier if kernel is not source]
    if others and draw(st.booleans()):
        other = draw(st.sampled_from(others))
        assert other.gemm is not None
        needs = (Access(other.name, tile_range(r, tile[0]), (as_expr(0), as_expr(other.gemm.n)), "r"),)
    return gemm_kernel(
        name, Gemm(rows, draw(st.integers(1, 6)), depth), tile, block, a=source.name if source else None,  # type: ignore[arg-type]
        split_k=split, stages=draw(st.integers(1, 3)), reduce=draw(st.sampled_from(("serial", "last_arriver"))),
        needs=needs,
    )  # fmt: skip


@st.composite
def orders(draw: st.DrawFn, kernel: Kernel) -> Order:
    """Any order, but slices that wait for each other are handed out in their sequence."""
    kind = draw(st.sampled_from(("row", "column", "group", "table")))
    rows, cols, slices = kernel.grid
    if kind == "table":
        tiles = draw(st.permutations([(i, j) for i in range(rows) for j in range(cols)]))
        return TableOrder(tuple((*tile, z) for z in range(slices) for tile in tiles))
    return {"row": RowOrder(), "column": ColumnOrder(), "group": GroupOrder(2)}[kind]


POLICIES: tuple[SyncPolicy, ...] = (TilePolicy(), RowPolicy(), BatchedPolicy(2))
LAUNCHES: tuple[Launch, ...] = ("stream", "graph", "wait-first", "wait-all", "wait-value", "none", "pdl")


@st.composite
def plans(draw: st.DrawFn, program: Program, launches: tuple[Launch, ...] = LAUNCHES) -> Plan:
    """*launches* may come without policies where they need none: ``pdl`` does by chance."""
    names = [kernel.name for kernel in program.kernels]
    flag = st.booleans()
    launch = draw(st.sampled_from(launches))
    whole = launch == "pdl" and draw(flag)
    return Plan(
        sync={} if whole else {dep.name: draw(st.sampled_from(POLICIES)) for dep in dependences(program)},
        order={kernel.name: draw(orders(kernel)) for kernel in program.kernels},
        flags={name: Flags(draw(st.integers(0, 3)) == 0, draw(flag), draw(flag), draw(flag)) for name in names},
        launch=launch,
        streams=draw(st.sampled_from((None, None, 2, 3))),
    )


@st.composite
def costs(draw: st.DrawFn, program: Program, *, shared: bool = True) -> dict[str, BlockCost]:
    """*shared*: blocks load the tensor pipe and draw memory."""
    short, rate = st.integers(0, 3000), st.integers(0, 3) if shared else st.just(0)
    return {
        kernel.name: BlockCost(
            draw(short), draw(st.integers(1, 4000)), draw(short), draw(rate) * 300_000,
            draw(rate) * 10**12, draw(rate) * 7 * 10**11,
        )
        for kernel in program.kernels
    }  # fmt: skip


@st.composite
def scenes(
    draw: st.DrawFn,
    *,
    launches: tuple[Launch, ...] = LAUNCHES,
    rules: tuple[Rule, ...] = ("arrival", "random", "adversarial"),
    free: bool | None = None,
    mixed: bool = True,
    loops: bool = True,
    shared: bool = True,
) -> Scene:
    """*free*: no latency at all, or by chance; the rest as for the parts."""
    program = draw(programs(mixed=mixed, loops=loops))
    plan = draw(plans(program, launches))
    return Scene(
        program, draw(st.integers(1, 5)), draw(st.booleans()) if free is None else free, plan,
        draw(costs(program, shared=shared)), draw(st.sampled_from(rules)), draw(st.integers(0, 3)),
    )  # fmt: skip


@cache
def machine_of(sms: int, free: bool) -> Machine:
    """The same few machines come again and again; memory that some of the costs saturate."""
    return tiny(sms, "hbm_bytes_per_s=4TB/s", "l2_bytes_per_s=6TB/s", *(FREE_BUT_ORDERED if free else LATENCIES))
