"""Element types as numpy and CuPy hold them: bf16 has no type there, so it travels as the upper half of a float32."""

from __future__ import annotations

from typing import Any

import numpy as np

#: numpy's type of an element by the program's word; bf16 as raw bits.
STORED: dict[str, Any] = {"fp16": np.float16, "bf16": np.uint16, "fp32": np.float32}
#: Relative distance of neighbouring numbers.
EPSILON = {"fp16": 2.0**-10, "bf16": 2.0**-7, "fp32": 2.0**-23}
_BF16_NAN = 0x7FC0


def widen(xp: Any, stored: Any, dtype: str) -> Any:
    """The numbers as float32, in the array module *xp* (numpy or CuPy)."""
    if dtype == "bf16":
        return (stored.astype(xp.uint32) << xp.uint32(16)).view(xp.float32)
    return stored.astype(xp.float32)


def narrow(xp: Any, values: Any, dtype: str) -> Any:
    """float32 numbers as they are stored, rounded to nearest even."""
    if dtype != "bf16":
        return values.astype(STORED[dtype])
    bits = xp.ascontiguousarray(values, dtype=xp.float32).view(xp.uint32)
    odd = (bits >> xp.uint32(16)) & xp.uint32(1)
    return ((bits + xp.uint32(0x7FFF) + odd) >> xp.uint32(16)).astype(xp.uint16)


def fill_nan(stored: Any, dtype: str) -> None:
    """Fills an array with numbers that are none: whatever is read too early spoils the result."""
    stored.fill(_BF16_NAN if dtype == "bf16" else np.nan)


def random_matrix(xp: Any, shape: tuple[int, int], scale: float, dtype: str, seed: int) -> Any:
    """Normally distributed numbers of standard deviation *scale*; the same for the same seed and array module."""
    source = xp.random.default_rng(seed)
    return narrow(xp, source.standard_normal(shape, dtype=xp.float32) * xp.float32(scale), dtype)


def gelu(xp: Any, x: Any) -> Any:
    """GeLU in its tanh form, as the kernels compute it."""
    inner = xp.float32(0.7978845608028654) * (x + xp.float32(0.044715) * x * x * x)
    return xp.float32(0.5) * x * (xp.float32(1) + xp.tanh(inner))


def silu(xp: Any, x: Any) -> Any:
    """x times its logistic function."""
    return x / (xp.float32(1) + xp.exp(-x))
