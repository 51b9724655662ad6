"""cuBLAS beside our kernels: the same two matrix products through CuPy, in a stream or in a CUDA graph."""

from __future__ import annotations

from typing import Any

from cusim.program.kernel import Gemm
from cusim.program.program import Program

_BUSY_NS = 400_000


def two_products(program: Program, device: Any, *, repeats: int, graph: bool) -> list[int]:
    """Nanoseconds of each run: the program's GEMMs one after the other, behind a busy kernel, less an empty run.

    Random fp16 inputs; no activation between, and of a SwiGLU operand only the first half is multiplied: the least that
    a library user runs.
    """
    cupy = device.xp
    stream = cupy.cuda.Stream(non_blocking=True)
    random = cupy.random.default_rng(0)
    pairs = [(gemm, _filled(random, cupy, gemm.k, gemm.n)) for gemm in _gemms(program)]
    first = _filled(random, cupy, pairs[0][0].m, pairs[0][0].k)

    def once() -> None:
        value = first
        for gemm, weight in pairs:
            value = cupy.matmul(value[:, : gemm.k], weight)

    with stream:
        for _ in range(3):
            once()
        stream.synchronize()
        launch = once
        if graph:
            stream.begin_capture()
            once()
            captured = stream.end_capture()
            captured.upload(stream)
            launch = lambda: captured.launch(stream)  # noqa: E731
        empty = sorted(_timed(cupy, device, stream, lambda: None) for _ in range(repeats))[repeats // 2]
        return [_timed(cupy, device, stream, launch) - empty for _ in range(repeats)]


def _gemms(program: Program) -> list[Gemm]:
    return [kernel.gemm for kernel in program.kernels if kernel.gemm is not None]


def _filled(random: Any, cupy: Any, rows: int, cols: int) -> Any:
    return (random.random((rows, cols), dtype=cupy.float32) - 0.5).astype(cupy.float16)


def _timed(cupy: Any, device: Any, stream: Any, launch: Any) -> int:
    """Event to event, queued behind a busy kernel."""
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    device.busy(stream, _BUSY_NS)
    begin.record(stream)
    launch()
    end.record(stream)
    end.synchronize()
    return round(float(cupy.cuda.get_elapsed_time(begin, end)) * 1e6)
