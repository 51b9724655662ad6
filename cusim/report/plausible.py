"""What is odd about a user's kernels: nothing that stops a prediction, but a number mistyped looks like this."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cusim.engine.result import Prediction
from cusim.machine.check import WARP_SIZE
from cusim.machine.load import load_machine
from cusim.machine.machine import Machine
from cusim.policies.plan import Plan
from cusim.program.kernel import DTYPE_BYTES, Kernel, Measured
from cusim.program.program import Program
from cusim.report.result import Predict

#: A measured time this many times the model's, or this part of it, is worth a look.
_FAR = 5.0


def kernel_notes(program: Program, machine: Machine, predict: Predict) -> list[str]:
    """A sentence for each thing about a kernel that can hardly be meant; *predict* times measured kernels alone."""
    return [
        f"{kernel.name}: {text}"
        for kernel in program.kernels
        for text in (*_block(kernel), *_measured(program, kernel, machine, predict))
    ]


def _block(kernel: Kernel) -> Iterator[str]:
    block, gemm = kernel.block, kernel.gemm
    if block.threads % WARP_SIZE:
        yield f"{block.threads} threads are no multiple of {WARP_SIZE}: the last warp is part empty"
    if gemm is None:
        return
    rows, cols, depth = kernel.tile
    stage = (rows + cols) * depth * DTYPE_BYTES[gemm.dtype]
    if block.smem_bytes < stage:
        yield (
            f"{block.smem_bytes / 1024:g} KiB of shared memory hold less than one k step of the tile's operands "
            f"({stage / 1024:g} KiB); is shared_kib static plus dynamic, as Nsight Compute prints it?"
        )


def _measured(program: Program, kernel: Kernel, machine: Machine, predict: Predict) -> Iterator[str]:
    cost = kernel.cost
    if not isinstance(cost, Measured) or cost.work is None:
        return
    here = machine.base or machine
    home = here if cost.measured_on == machine.name else load_machine(cost.measured_on)
    if kernel.gemm is not None:
        flops_per_s = 2 * kernel.gemm.m * kernel.gemm.n * kernel.gemm.k / cost.time_ps * 1e12
        rates = home.rates
        peak = rates.tensor_flops_per_clock_sm * rates.clock_hz * home.limits.sms
        if flops_per_s > peak:
            yield (
                f"its measured time means {flops_per_s / 1e12:.0f} TFLOP/s, the tensor cores of {home.gpu} have "
                f"{peak / 1e12:.0f}"
            )
            return
    alone = Program((replace(kernel, cost=cost.work, reads=(), persistent=False),), program.buffers, name=kernel.name)
    modelled = predict(alone, home, Plan())
    if isinstance(modelled, Prediction) and modelled.span_ps:
        yield from _far(cost.time_ps, modelled.span_ps, home.gpu)


def _far(measured_ps: int, modelled_ps: int, gpu: str) -> Iterator[str]:
    ratio = measured_ps / modelled_ps
    if max(ratio, 1 / ratio) > _FAR:
        times = f"{ratio:.1f} times" if ratio > 1 else f"1/{1 / ratio:.1f} of"
        yield f"its measured time is {times} the {modelled_ps / 1e6:.1f} us that the model of {gpu} would give it"
