"""What a program's results should be, in single precision, and how far a result may lie from it."""

from __future__ import annotations

from typing import Any

from backend_gpu.bench import Bench, gemm_of, operands
from backend_gpu.elements import EPSILON, gelu, narrow, silu, widen
from cusim.program.kernel import Kernel

_FP32_UNIT = 2.0**-24


def tolerance(kernel: Kernel) -> float:
    """The largest relative error (Frobenius norm) of a tile: two units of the stored type, one for the rounding and
    one for the GPU's short-cut tanh and the operands' own rounding, and what fp32 sums of k terms lose at worst.
    """
    gemm = gemm_of(kernel)
    return 2 * EPSILON[gemm.dtype] + gemm.k * _FP32_UNIT


def references(bench: Bench, number: int) -> dict[str, Any]:
    """By output buffer: the result in fp32 of the inputs of set *number*, rounded as it is stored where it is read."""
    xp, found = bench.device.xp, {}
    stored = dict(bench.buffers[number])
    for kernel in bench.program.kernels:
        a, b, c = operands(kernel)
        gemm = gemm_of(kernel)
        left = widen(xp, stored[a], gemm.dtype)
        if gemm.prologue == "swiglu":
            joined = silu(xp, left[:, : gemm.k]) * left[:, gemm.k :]
            left = widen(xp, narrow(xp, joined, gemm.dtype), gemm.dtype)
        product = left @ widen(xp, stored[b], gemm.dtype)
        found[c] = gelu(xp, product) if gemm.epilogue == "gelu" else product
        stored[c] = narrow(xp, found[c], gemm.dtype)
    return found


def worst_error(bench: Bench, number: int, kernel: Kernel, reference: Any) -> float:
    """The relative error of the kernel's worst tile, as stored in set *number*; infinite where a number is none.

    A tile's error is measured against the root mean square of the whole result, or one of small numbers would count.
    """
    xp = bench.device.xp
    gemm = gemm_of(kernel)
    found = widen(xp, bench.buffers[number][operands(kernel)[2]], gemm.dtype)
    off = found - reference
    scale = float(xp.sqrt(xp.mean(reference * reference)))
    height, width, _ = kernel.tile
    rows, cols, _ = kernel.grid
    padded = xp.zeros((rows * height, cols * width), xp.float32)
    padded[: gemm.m, : gemm.n] = off * off
    sums = padded.reshape(rows, height, cols, width).sum(axis=(1, 3))
    worst = float(xp.max(xp.sqrt(sums / (height * width)))) / scale
    return worst if worst == worst else float("inf")  # NaN is unequal to itself
