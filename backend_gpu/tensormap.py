"""Tensor maps (CUtensorMap) for the bulk copies of the wgmma kernels, encoded by the driver."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend_gpu.abi import TENSOR_MAP
from backend_gpu.bind import Bound
from backend_gpu.detect import find_driver
from backend_gpu.shapes import DEPTH
from cusim.errors import CusimError

_DTYPES = {"fp16": 6, "bf16": 9}  # CU_TENSOR_MAP_DATA_TYPE_FLOAT16, _BFLOAT16
_NO_INTERLEAVE, _SWIZZLE_128B, _L2_256B, _ZERO_FILL = 0, 3, 3, 0


def tensor_map(address: int, rows: int, cols: int, pitch: int, box: tuple[int, int], dtype: str) -> NDArray[Any]:
    """The map of a row-major matrix at a device address: *pitch* elements a row (a multiple of 8), copies of *box*
    rows x columns with the 128-byte swizzle, zeros outside. One element of :data:`backend_gpu.abi.TENSOR_MAP`.

    CusimError where the driver refuses it (an address or pitch that is no multiple of 16 bytes).
    """
    found = np.zeros(2, TENSOR_MAP)  # the encoder wants a 64-byte boundary
    address_of = (found.ctypes.data + 63) & ~63
    encode = _driver().cuTensorMapEncodeTiled
    status = encode(
        ctypes.c_void_p(address_of), _DTYPES[dtype], 2, ctypes.c_void_p(address),
        (ctypes.c_uint64 * 2)(cols, rows), (ctypes.c_uint64 * 1)(pitch * 2),
        (ctypes.c_uint32 * 2)(box[1], box[0]), (ctypes.c_uint32 * 2)(1, 1),
        _NO_INTERLEAVE, _SWIZZLE_128B, _L2_256B, _ZERO_FILL,
    )  # fmt: skip
    if status != 0:
        raise CusimError(f"cuTensorMapEncodeTiled gave error {status} for {rows} x {cols}, {pitch} elements a row")
    held = np.zeros(1, TENSOR_MAP)
    ctypes.memmove(held.ctypes.data, address_of, TENSOR_MAP.itemsize)
    return held


def maps_of(bound: Bound, a: int, b: int, lda: int, ldb: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The three maps that follow the parameters at a launch: A, B, and A's second half (A again without SwiGLU).

    *a* and *b* are device addresses, *lda* and *ldb* elements a row.
    """
    gemm, box = bound.gemm, bound.shape.box_a
    first = tensor_map(a, gemm.m, gemm.k, lda, box, gemm.dtype)
    second = first
    if gemm.prologue == "swiglu":
        second = tensor_map(a + 2 * gemm.k, gemm.m, gemm.k, lda, box, gemm.dtype)
    return first, tensor_map(b, gemm.k, gemm.n, ldb, (DEPTH, DEPTH), gemm.dtype), second


@lru_cache(maxsize=1)
def _driver() -> ctypes.CDLL:
    part, library = find_driver()
    if library is None:
        raise CusimError(part.problem or "no NVIDIA driver")
    return library
