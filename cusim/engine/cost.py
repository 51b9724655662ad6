"""What a block costs when it has an SM and the memory to itself, and what it asks of both (design §6.4).

A block's work is entry, prologue, k steps and tail, in picoseconds at full speed. Sharing slows it down later: by the
tensor pipe of its SM (:mod:`cusim.engine.blocks`) and by the memory that all SMs share (:mod:`cusim.engine.shared`).
"""

from __future__ import annotations

from dataclasses import dataclass

from cusim.engine.reuse import hbm_share, link_share
from cusim.engine.soft import norm
from cusim.machine.machine import Machine
from cusim.machine.occupancy import block_warps
from cusim.program.expr import IntArray
from cusim.program.kernel import DTYPE_BYTES, Gemm, Kernel, Measured, Stream

#: The tensor pipe of an SM, in the integer parts that loads are counted in.
FULL_PIPE = 1_000_000
#: CUDA-core operations of GeLU (tanh form) for one element, counted from the formula.
ACTIVATION_FLOPS = 12
#: How the products of one k step and the joining of operand A's halves for the next overlap: between one after the
#: other (1) and side by side (large). On an H200 single products of four widths of tile, alike but for the products'
#: time, agree on one time for the joining at 1.5 (traces/h200/occasion-3.csv, single-swiglu).
JOIN_ORDER = 1.5
#: Warps of the block that a machine's ``lone_block_share`` is stated for: the 256 threads of the papers' kernels
#: (mma.sync). More warps keep the pipe busier in proportion; an H200 was read full with 12 (wgmma), as its file says.
LONE_WARPS = 8


@dataclass(frozen=True, slots=True)
class BlockCost:
    """The parts of a block's work in ps, its load on the tensor pipe (of :data:`FULL_PIPE`), and the bytes a second
    that it draws from L2, from HBM and across the link between the halves of L2 while it runs at full speed.
    *activity* is its load as a part of what as many such blocks as an SM holds keep busy: what counts against the
    power budget. *fill_ps* is the end of the prologue, from the first load on (None: a whole round trip).
    *partials_bytes* are what a slice of a split-K tile hands in, to be read again by whoever adds up;
    unless those of all blocks *partials_stay* in L2, they are written to HBM too.
    """

    prologue_ps: int
    step_ps: int
    tail_ps: int
    pipe_load: int
    l2_bytes_per_s: int
    hbm_bytes_per_s: int
    activity: int = 0
    link_bytes_per_s: int = 0
    fill_ps: int | None = None
    partials_bytes: int = 0
    partials_stay: bool = True


def block_cost(kernel: Kernel, machine: Machine, table: IntArray, blocks_per_sm: int) -> BlockCost:
    """The cost of one block of *kernel*, whose tiles run in the order of *table*.

    A measured cost comes back with the time of its main loop still to be anchored (:mod:`cusim.engine.anchor`).
    """
    work = kernel.cost.work if isinstance(kernel.cost, Measured) else kernel.cost
    if isinstance(work, Gemm):
        return _gemm(kernel, work, machine, table, blocks_per_sm)
    if isinstance(work, Stream):
        return _stream(kernel, work, machine)
    return BlockCost(_prologue(machine), 1, machine.block.epilogue_ps, 0, 0, 0)


def _gemm(kernel: Kernel, gemm: Gemm, machine: Machine, table: IntArray, blocks_per_sm: int) -> BlockCost:
    rates, elem = machine.rates, DTYPE_BYTES[gemm.dtype]
    tile_m, tile_n, tile_k = kernel.tile
    a_width = 2 if gemm.prologue == "swiglu" else 1
    saturated = pipe_flops_per_s(machine, gemm.dtype)
    flops = 2 * tile_m * tile_n * tile_k
    step_bytes = (a_width * tile_m + tile_n) * tile_k * elem
    compute_ps = flops / (saturated * lone_share(kernel, machine)) * 1e12
    compute_ps += machine.block.step_clocks / rates.tensor_clock_hz * 1e12
    if gemm.prologue != "none":
        compute_ps = norm((compute_ps, _join_ps(kernel, machine)), JOIN_ORDER)
    port_ps = step_bytes / _port_bytes_per_ps(machine)
    ring_ps = (machine.block.load_ps + compute_ps) / kernel.stages  # a stage is loaded again once it has been used
    step_ps = max(1, round(max(compute_ps, port_ps, ring_ps)))
    # The first stages are on their way together: their round trip is the prologue's.
    ahead_ps = round(kernel.stages * max(0.0, step_ps - max(compute_ps, port_ps, 1.0)))
    slots = blocks_per_sm * machine.limits.sms
    share = hbm_share(kernel, gemm, table, slots, rates.l2_capacity_bytes, elem)
    crossing = link_share(kernel, gemm, table, slots)
    # A slice hands its sums in; whoever is last to arrive writes the tile (:func:`finish_ps`).
    partial = kernel.grid[2] > 1 and kernel.reduce == "last_arriver"
    tail = partials_ps(kernel, machine) if partial else finish_ps(kernel, machine)
    draw = step_bytes / step_ps * 1e12
    pipe_load = min(FULL_PIPE, round(FULL_PIPE * (flops / saturated * 1e12) / step_ps))
    most = min(1.0, lone_share(kernel, machine) * blocks_per_sm)
    return BlockCost(
        prologue_ps=_prologue(machine) - ahead_ps,
        step_ps=step_ps,
        tail_ps=machine.block.epilogue_ps + round(tail),
        pipe_load=pipe_load,
        l2_bytes_per_s=round(draw),
        hbm_bytes_per_s=round(draw * share),
        activity=min(FULL_PIPE, round(pipe_load / most)),
        link_bytes_per_s=round(draw * crossing),
        fill_ps=machine.block.load_ps - ahead_ps,
        partials_bytes=partials_bytes(kernel) if partial else 0,
        partials_stay=partials_bytes(kernel) * kernel.blocks <= rates.l2_capacity_bytes,
    )


def _stream(kernel: Kernel, work: Stream, machine: Machine) -> BlockCost:
    """A copy-like tile: its bytes go through the SM's port, all of them to or from HBM."""
    step_bytes = work.tile_bytes / kernel.steps
    core_ps = work.tile_flops / kernel.steps / _core_flops_per_ps(machine)
    step_ps = max(1, round(max(step_bytes / _port_bytes_per_ps(machine), core_ps)))
    draw = round(step_bytes / step_ps * 1e12)
    return BlockCost(_prologue(machine), step_ps, machine.block.epilogue_ps, 0, draw, draw)


def pipe_flops_per_s(machine: Machine, dtype: str) -> float:
    """Operations a second of one SM whose pipe is kept full: fp16 and bf16 on the tensor cores; fp32 there as TF32, at
    half the rate (A100: 156 of 312 TFLOP/s by its data sheet), or on the CUDA cores where there is none.
    """
    rates = machine.rates
    per_clock: float = rates.tensor_flops_per_clock_sm
    if dtype == "fp32":
        per_clock = per_clock / 2 if has_bf16_and_tf32(machine) else rates.fp32_flops_per_clock_sm
    return per_clock * rates.tensor_clock_hz * rates.tensor_efficiency


def has_bf16_and_tf32(machine: Machine) -> bool:
    """True for sm_80 and newer, whose tensor cores take bf16 and TF32."""
    digits = "".join(letter for letter in machine.arch if letter.isdigit())
    return not digits or int(digits) >= 80


def lone_share(kernel: Kernel, machine: Machine) -> float:
    """The part of the pipe that one block keeps busy alone; more warps keep more of it busy."""
    return min(1.0, machine.rates.lone_block_share * max(1.0, block_warps(kernel.block.threads) / LONE_WARPS))


def _join_ps(kernel: Kernel, machine: Machine) -> float:
    """Time in which a block's threads join the halves of a k step of operand A (SwiGLU)."""
    elements = kernel.tile[0] * kernel.tile[2] / kernel.block.threads
    return machine.block.join_clocks * elements / machine.rates.tensor_clock_hz * 1e12


def _prologue(machine: Machine) -> int:
    return machine.block.prologue_ps + machine.block.load_ps


def finish_ps(kernel: Kernel, machine: Machine) -> float:
    """Time in which a block applies a GEMM's epilogue to its tile and stores it."""
    gemm = kernel.gemm
    if gemm is None:
        return 0.0
    elements = kernel.tile[0] * kernel.tile[1]
    stored = _store_ps(elements * DTYPE_BYTES[gemm.dtype], machine)
    return stored + (ACTIVATION_FLOPS * elements / _core_flops_per_ps(machine) if gemm.epilogue != "none" else 0.0)


def partials_ps(kernel: Kernel, machine: Machine) -> float:
    """Time in which a split-K block stores the partial sums of its tile, in fp32."""
    return _store_ps(partials_bytes(kernel), machine)


def partials_bytes(kernel: Kernel) -> int:
    """The partial sums of a tile, in fp32."""
    return kernel.tile[0] * kernel.tile[1] * DTYPE_BYTES["fp32"]


def _store_ps(bytes_: int, machine: Machine) -> float:
    return bytes_ / (machine.rates.sm_store_bytes_per_clock * machine.rates.clock_hz) * 1e12


def _port_bytes_per_ps(machine: Machine) -> float:
    return machine.rates.sm_l2_bytes_per_clock * machine.rates.clock_hz / 1e12


def _core_flops_per_ps(machine: Machine) -> float:
    return machine.rates.fp32_flops_per_clock_sm * machine.rates.clock_hz / 1e12
