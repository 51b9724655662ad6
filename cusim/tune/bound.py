"""A time that no order of a kernel's blocks can beat, cheap enough to be asked of hundreds of ways to cut a GEMM."""

from __future__ import annotations

from cusim.engine.cost import FULL_PIPE, BlockCost, block_cost
from cusim.engine.setup import kernel_occupancy
from cusim.machine.machine import Machine
from cusim.policies.orders import RowOrder, order_table
from cusim.program.kernel import DTYPE_BYTES, Kernel, Measured


def least_ps(kernel: Kernel, machine: Machine) -> int:
    """The least time of the kernel alone, whatever its order; 0 where nothing is known: a measured time, no GEMM.

    The largest of: the blocks' work over all slots; the work of the SM that gets the most blocks; one block; the bytes
    through L2; and both operands once from HBM.
    """
    room = kernel_occupancy(kernel, machine).blocks_per_sm
    if room == 0 or kernel.gemm is None or isinstance(kernel.cost, Measured):
        return 0  # predicting it names the reason, or costs little
    # The order decides only what comes from HBM, which is bounded apart: any table does.
    cost = block_cost(kernel, machine, order_table(RowOrder(), (1, 1, 1)), room)
    works = [_work_ps(kernel, cost, slice_) for slice_ in range(kernel.grid[2])]
    sms = machine.limits.sms
    most = -(-kernel.blocks // sms)
    looped = max(kernel.slice_steps * cost.step_ps / max(works), 1e-9)
    share = max(1.0 / room, cost.pipe_load * min(looped, 1.0) / FULL_PIPE)
    spread = sum(works) * kernel.output_tiles * share / sms
    return int(max(spread, most * min(works) * share, max(works), _memory_ps(kernel, cost, machine)))


def _work_ps(kernel: Kernel, cost: BlockCost, slice_: int) -> int:
    """The work of a block of one slice: posts and tickets apart."""
    steps = min(kernel.slice_steps, kernel.steps - slice_ * kernel.slice_steps)
    return cost.prologue_ps + cost.tail_ps + max(steps, 0) * cost.step_ps


def _memory_ps(kernel: Kernel, cost: BlockCost, machine: Machine) -> float:
    gemm, rates = kernel.gemm, machine.rates
    assert gemm is not None
    through_l2 = kernel.output_tiles * kernel.steps * cost.step_ps * cost.l2_bytes_per_s / rates.l2_bytes_per_s
    rows, cols = kernel.grid[0] * kernel.tile[0], kernel.grid[1] * kernel.tile[1]
    halves = 2 if gemm.prologue == "swiglu" else 1
    once = (rows * halves + cols) * gemm.k * DTYPE_BYTES[gemm.dtype]
    return max(through_l2, 1e12 * once / rates.hbm_bytes_per_s)
