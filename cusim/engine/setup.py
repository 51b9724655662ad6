"""From a program, a machine and a plan to kernels ready to run: costs, semaphores, waits and posts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cusim.engine.clock import Clock
from cusim.engine.cost import BlockCost, block_cost, finish_ps, has_bf16_and_tf32
from cusim.engine.panels import Panels
from cusim.engine.run import KernelRun, Outgoing, Overheads, posts_by_tile, semaphore_totals
from cusim.engine.semaphore import Semaphores
from cusim.engine.waits import Incoming
from cusim.errors import InputError, Problems
from cusim.machine.load import load_machine, machine_names
from cusim.machine.machine import Machine
from cusim.machine.occupancy import Occupancy, occupancy, why_no_block
from cusim.machine.room import Room, block_room
from cusim.policies.flags import Flags
from cusim.policies.orders import RowOrder, order_table
from cusim.policies.plan import Plan
from cusim.program.depends import TileDep, dependences, hazards
from cusim.program.kernel import DTYPE_BYTES, Gemm, Kernel, Measured
from cusim.program.program import Program

#: Threads and registers of a wait-kernel. It loads a word, compares and loops: one thread does (cuSync launches one),
#: so one warp; a 64-bit address, the word and the target fit 16 registers, which take 512 of an SM's 65536.
SPIN_THREADS, SPIN_REGISTERS = 32, 16
#: What of an SM's port to L2 a block reaches that reads partial sums through registers, eight loads of a thread in
#: flight. On an H200 each further slice of a lone 128x256 tile took 1.37 us, 96 GB/s of 127
#: (traces/h200/occasion-3.csv, single-split, 128x2048x4096).
PARTIALS_READ_SHARE = 0.75


@dataclass(frozen=True, slots=True)
class Setup:
    """Kernels ready to run, in issue order, with the dependences that the plan synchronises tile by tile."""

    runs: tuple[KernelRun, ...]
    deps: tuple[TileDep, ...]
    producers: Mapping[int, tuple[int, ...]]
    semaphores: tuple[Semaphores, ...]
    spin_demand: Room


def kernel_occupancy(kernel: Kernel, machine: Machine) -> Occupancy:
    """How many blocks of the kernel an SM of the machine holds."""
    block = kernel.block
    return occupancy(machine, block.threads, block.registers, block.smem_bytes, block.cluster)


def slots_of(program: Program, machine: Machine) -> dict[str, int]:
    """Blocks of each kernel that the whole machine holds at once."""
    return {k.name: kernel_occupancy(k, machine).blocks_per_sm * machine.limits.sms for k in program.kernels}


def check_runnable(program: Program, machine: Machine, plan: Plan) -> None:
    """Raises InputError, with everything at once, for blocks that fit no SM and plans that do not fit the program."""
    problems = Problems(program.name)
    for place, kernel in enumerate(program.kernels):
        block = kernel.block
        why = why_no_block(machine, block.threads, block.registers, block.smem_bytes, block.cluster)
        if why:
            problems.add(f"kernel[{place}].block", kernel.name, why)
        if kernel.gemm is not None and kernel.gemm.dtype == "bf16" and not has_bf16_and_tf32(machine):
            problems.add(f"kernel[{place}].gemm.dtype", "bf16", f"{machine.gpu} has no bf16; allowed: fp16 fp32")
        if kernel.blocks > machine.limits.grid_max_blocks:
            problems.add(f"kernel[{place}].grid", kernel.blocks, f"at most {machine.limits.grid_max_blocks} blocks")
    check_measured(program, machine, problems)
    names = {kernel.name for kernel in program.kernels}
    for label, chosen in (("order", plan.order), ("flags", plan.flags)):
        for name in sorted(set(chosen) - names):
            problems.add(f"plan.{label}", name, f"no such kernel; allowed: {' '.join(sorted(names))}")
    if plan.streams is not None and plan.streams < 1:
        problems.add("plan.streams", plan.streams, "must be 1 or more")
    if plan.overlapped:
        for dep in dependences(program):
            if dep.name not in plan.sync:
                problems.add("plan.sync", dep.name, f"launch {plan.launch} needs a policy for this dependence")
        for hazard in hazards(program):
            why = (
                f"{hazard.later} reuses it after {hazard.earlier} ({hazard.kind}): only launch stream keeps them apart"
            )
            problems.add("plan.launch", hazard.buffer, why)
    problems.raise_if_any()


def check_measured(program: Program, machine: Machine, problems: Problems) -> None:
    """Records times that were measured on neither *machine* nor one that is known by name or file."""
    for place, kernel in enumerate(program.kernels):
        home = kernel.cost.measured_on if isinstance(kernel.cost, Measured) else machine.name
        if home == machine.name:
            continue
        try:
            load_machine(home)
        except InputError:
            why = f"unknown machine; allowed: the machine at hand or {' '.join(machine_names())}"
            problems.add(f"kernel[{place}].measured_on", home, why)


def prepare(program: Program, machine: Machine, plan: Plan, env: Clock, costs: Mapping[str, BlockCost]) -> Setup:
    """Builds the runs of all kernels; *costs* overrides the machine's model for kernels that were measured."""
    deps = dependences(program) if plan.overlapped else ()
    ticketed = {name for dep in deps for name in (dep.producer, dep.consumer)}
    posting = {dep.producer for dep in deps}
    runs = []
    for index, kernel in enumerate(program.kernels):
        per_sm = kernel_occupancy(kernel, machine)
        flags = plan.flags_of(kernel.name)
        order = RowOrder() if flags.T else plan.order_of(kernel.name)  # T: a block's own index, whatever the order
        table = order_table(order, kernel.grid)
        cost = costs.get(kernel.name) or block_cost(kernel, machine, table, per_sm.blocks_per_sm)
        run = KernelRun(
            index, kernel, table, cost,
            _overheads(kernel, machine, flags, cost, kernel.name in ticketed, kernel.name in posting),
            kernel_room(kernel, machine), per_sm.blocks_per_sm * machine.limits.sms, env,
        )  # fmt: skip
        run.slice_visible_ps = machine.sync.visible_ps
        run.reduce_ps = _reduce_ps(kernel, machine)
        if run.reduce_ps and kernel.name in posting:
            run.reduce_ps += run.overheads.post_ps  # the slices' own counter was posted to before
        if isinstance(kernel.cost, Gemm):
            run.panels = Panels(kernel, kernel.cost, machine)
        runs.append(run)
    semaphores = _connect(program, machine, plan, deps, runs)
    producers: dict[int, tuple[int, ...]] = {}
    for dep in deps:
        place = program.position(dep.consumer)
        producers[place] = (*producers.get(place, ()), program.position(dep.producer))
    return Setup(tuple(runs), deps, producers, semaphores, spin_room(machine))


def kernel_room(kernel: Kernel, machine: Machine) -> Room:
    """What one block of the kernel takes of an SM."""
    return block_room(machine, kernel.block.threads, kernel.block.registers, kernel.block.smem_bytes)


def spin_room(machine: Machine) -> Room:
    """What a wait-kernel takes of an SM."""
    return block_room(machine, SPIN_THREADS, SPIN_REGISTERS, 0)


def _overheads(kernel: Kernel, machine: Machine, flags: Flags, cost: BlockCost, synced: bool, posts: bool) -> Overheads:
    """Without R the loads of the independent operand queue behind each wait, `stages` of them in flight; with R they
    run ahead of the first.
    """
    sync, block = machine.sync, machine.block
    behind = 0 if flags.R else block.load_ps // kernel.stages
    post = (sync.post_store_ps if flags.A else sync.post_ps) if posts or kernel.grid[2] > 1 else 0
    return Overheads(
        entry_ps=block.ticket_ps if synced and not flags.T else 0,
        post_ps=post,
        wait_ps=sync.satisfied_ps + behind,
        later_wait_ps=round((sync.satisfied_ps + behind) * (1.0 - sync.hidden_wait_share)),
        refill_ps=block.load_ps,
        preload_ps=round(_independent_share(kernel) * min(kernel.stages, kernel.slice_steps) * cost.step_ps)
        if flags.R
        else 0,
        merge_ps=_port_ps(kernel, machine, _element_bytes(kernel)) if kernel.gemm and kernel.reduce == "serial" else 0,
    )


def _independent_share(kernel: Kernel) -> float:
    """The part of a GEMM's loads that no other kernel makes: operand B's."""
    gemm = kernel.gemm
    if gemm is None:
        return 0.0
    rows = kernel.tile[0] * (2 if gemm.prologue == "swiglu" else 1)
    return kernel.tile[1] / (rows + kernel.tile[1])


def _reduce_ps(kernel: Kernel, machine: Machine) -> int:
    """Time in which the last slice to arrive reads and adds the partial sums of all (fp32), and writes the tile."""
    gemm = kernel.gemm
    if gemm is None or kernel.reduce != "last_arriver":
        return 0
    read = round(_port_ps(kernel, machine, kernel.grid[2] * DTYPE_BYTES["fp32"]) / PARTIALS_READ_SHARE)
    return machine.block.load_ps + read + round(finish_ps(kernel, machine))


def _port_ps(kernel: Kernel, machine: Machine, elem_bytes: int) -> int:
    """Time in which one SM pulls an output tile of *elem_bytes* an element from L2."""
    moved = kernel.tile[0] * kernel.tile[1] * elem_bytes
    return round(moved / (machine.rates.sm_l2_bytes_per_clock * machine.rates.clock_hz) * 1e12)


def _element_bytes(kernel: Kernel) -> int:
    return DTYPE_BYTES[kernel.gemm.dtype] if kernel.gemm else 1


def _connect(
    program: Program, machine: Machine, plan: Plan, deps: tuple[TileDep, ...], runs: list[KernelRun]
) -> tuple[Semaphores, ...]:
    """Gives every dependence its semaphores, and every kernel what it waits for and posts to."""
    incoming: dict[int, list[Incoming]] = {run.index: [] for run in runs}
    outgoing: dict[int, list[Outgoing]] = {run.index: [] for run in runs}
    made = []
    for place, dep in enumerate(deps):
        policy = plan.sync[dep.name]
        producer = runs[program.position(dep.producer)]
        posts = posts_by_tile(policy.posts(dep), producer.kernel)
        totals = semaphore_totals(posts, policy.size(dep))
        sems = Semaphores(dep.name, place, totals, machine.sync.same_address_ps)
        stored = plan.flags_of(dep.producer).A
        visible = machine.sync.visible_store_ps if stored else machine.sync.visible_ps
        outgoing[producer.index].append(Outgoing(sems, posts, visible))
        incoming[program.position(dep.consumer)].append(Incoming(dep, policy.waits(dep), sems))
        made.append(sems)
    for run in runs:
        run.connect(incoming[run.index], outgoing[run.index])
    return tuple(made)
