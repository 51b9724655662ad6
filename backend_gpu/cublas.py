"""cuBLAS beside our kernels: the same matrix products one after the other, in a stream or in a CUDA graph.

Called through the library itself, since CuPy refuses its products while a stream is captured.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from cusim.errors import CusimError
from cusim.program.kernel import Gemm
from cusim.program.program import Program

_BUSY_NS = 400_000
_NAMES = ("libcublas.so.13", "libcublas.so.12")
_HALF, _COMPUTE_FP32, _NO_TRANSPOSE, _DEFAULT_ALGORITHM = 2, 68, 0, -1
_WORKSPACE_BYTES = 64 << 20


class _Product(NamedTuple):
    """One product C = A B of row-major fp16 matrices; *lda* is A's pitch in elements."""

    gemm: Gemm
    a: Any
    b: Any
    c: Any
    lda: int


def two_products(program: Program, device: Any, *, repeats: int, graph: bool) -> list[int]:
    """Nanoseconds of each run: the program's GEMMs in order, behind a busy kernel, less an empty run.

    Random fp16 inputs; no activation between, and of a SwiGLU operand only the first half is multiplied: the least that
    a library user runs.
    """
    cupy = device.xp
    stream = cupy.cuda.Stream(non_blocking=True)
    products = _products(program, cupy)
    cublas = _Cublas(cupy, stream)

    def once() -> None:
        for product in products:
            cublas.multiply(product)

    for _ in range(3):
        once()
    stream.synchronize()
    launch: Callable[[], None] = once
    if graph:
        stream.begin_capture()
        once()
        captured = stream.end_capture()
        captured.upload(stream)

        def launch() -> None:
            captured.launch(stream)

    empty = sorted(_timed(cupy, device, stream, lambda: None) for _ in range(repeats))[repeats // 2]
    return [_timed(cupy, device, stream, launch) - empty for _ in range(repeats)]


class _Cublas:
    """A handle of the library that CuPy has loaded, on one stream, with a workspace of its own for captures."""

    def __init__(self, cupy: Any, stream: Any) -> None:
        from cupy.cuda.device import get_cublas_handle

        get_cublas_handle()  # loads the library
        self._library = next((found for found in map(_loaded, _NAMES) if found is not None), None)
        if self._library is None:
            raise CusimError(f"cuBLAS cannot be loaded: {' or '.join(_NAMES)}")
        self._handle = ctypes.c_void_p()
        self._workspace = cupy.zeros(_WORKSPACE_BYTES, cupy.uint8)
        self._check(self._library.cublasCreate_v2(ctypes.byref(self._handle)))
        self._check(self._library.cublasSetStream_v2(self._handle, ctypes.c_void_p(stream.ptr)))
        at, size = ctypes.c_void_p(self._workspace.data.ptr), ctypes.c_size_t(_WORKSPACE_BYTES)
        self._check(self._library.cublasSetWorkspace_v2(self._handle, at, size))
        self._one, self._zero = ctypes.c_float(1.0), ctypes.c_float(0.0)

    def multiply(self, product: _Product) -> None:
        """Issues one product; cuBLAS counts columns first, so it is given the transposed problem."""
        gemm = product.gemm
        assert self._library is not None
        self._check(
            self._library.cublasGemmEx(
                self._handle, _NO_TRANSPOSE, _NO_TRANSPOSE, gemm.n, gemm.m, gemm.k, ctypes.byref(self._one),
                ctypes.c_void_p(product.b.data.ptr), _HALF, gemm.n,
                ctypes.c_void_p(product.a.data.ptr), _HALF, product.lda, ctypes.byref(self._zero),
                ctypes.c_void_p(product.c.data.ptr), _HALF, gemm.n, _COMPUTE_FP32, _DEFAULT_ALGORITHM,
            )
        )  # fmt: skip

    @staticmethod
    def _check(status: int) -> None:
        if status != 0:
            raise CusimError(f"cuBLAS: status {status}")


def _loaded(name: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


def _products(program: Program, cupy: Any) -> Sequence[_Product]:
    """The program's GEMMs, each reading the first columns of what the one before wrote."""
    random = cupy.random.default_rng(0)
    found: list[_Product] = []
    for gemm in (kernel.gemm for kernel in program.kernels if kernel.gemm is not None):
        a, lda = (found[-1].c, found[-1].gemm.n) if found else (_filled(random, cupy, gemm.m, gemm.k), gemm.k)
        out = cupy.zeros((gemm.m, gemm.n), cupy.float16)
        found.append(_Product(gemm, a, _filled(random, cupy, gemm.k, gemm.n), out, lda))
    cupy.cuda.Device().synchronize()
    return found


def _filled(random: Any, cupy: Any, rows: int, cols: int) -> Any:
    return (random.random((rows, cols), dtype=cupy.float32) - 0.5).astype(cupy.float16)


def _timed(cupy: Any, device: Any, stream: Any, launch: Callable[[], None]) -> int:
    """Event to event, queued behind a busy kernel."""
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    device.busy(stream, _BUSY_NS)
    begin.record(stream)
    launch()
    end.record(stream)
    end.synchronize()
    return round(float(cupy.cuda.get_elapsed_time(begin, end)) * 1e6)
