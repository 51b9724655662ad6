"""One compiled kernel with its buffers on a GPU: what the numeric and speed tests launch."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from backend_gpu.abi import FAULT, PARAMS, STAMPS, KernelFlag
from backend_gpu.bind import Bound, bind
from backend_gpu.build import build
from backend_gpu.tensormap import maps_of
from cusim.policies.plan import Plan
from cusim.program.build import gemm_kernel
from cusim.program.kernel import BlockResources, Gemm
from cusim.program.program import Program

BLOCK = BlockResources(384, 168, 196 * 1024)
BUDGET_NS = 200_000_000
#: Sets of counters that timed runs of one epoch take in turn.
COPIES = 8


def chain(
    first: Gemm, second: Gemm, tiles: Any, stages: Any, splits: Any = (1, 1), persistent: bool = False
) -> Program:
    """Two products, the second on the result of the first."""
    up, up_buffers = gemm_kernel("up", first, tiles[0], BLOCK, split_k=splits[0], stages=stages[0])
    down, down_buffers = gemm_kernel("down", second, tiles[1], BLOCK, a="up", split_k=splits[1], stages=stages[1])
    kernels = tuple(replace(kernel, persistent=persistent) for kernel in (up, down))
    return Program(kernels, up_buffers + down_buffers, name="chain")


def single(gemm: Gemm, tile: Any, stages: int, split: int = 1, persistent: bool = False) -> Program:
    kernel, buffers = gemm_kernel("up", gemm, tile, BLOCK, split_k=split, stages=stages)
    return Program((replace(kernel, persistent=persistent),), buffers, name="single")


def pitched(array: Any) -> Any:
    """The matrix in rows of a multiple of 8 elements, as 16-bit words; what pads a row is NaN."""
    import cupy as cp

    rows, cols = array.shape
    held = cp.full((rows, -(-cols // 8) * 8), 0x7FFF, cp.uint16)
    held[:, :cols] = array.view(cp.uint16)
    return held


def random_words(rows: int, cols: int, dtype: str, scale: float, seed: int) -> tuple[Any, Any]:
    """(pitched 16-bit words, the same numbers as fp32)."""
    import cupy as cp

    values = cp.random.default_rng(seed).standard_normal((rows, cols), dtype=cp.float32) * np.float32(scale)
    if dtype == "fp16":
        half = values.astype(cp.float16)
        return pitched(half), half.astype(cp.float32)
    words = ((values.view(cp.uint32) + 0x8000) >> 16).astype(cp.uint16)
    return pitched(words), to_float(words, dtype)


def to_float(words: Any, dtype: str) -> Any:
    import cupy as cp

    if dtype == "fp16":
        return words.view(cp.float16).astype(cp.float32)
    return (words.astype(cp.uint32) << 16).view(cp.float32)


@dataclass
class Shared:
    """What all kernels of a program share: the epoch and the fault record."""

    epoch: Any
    fault: Any

    @classmethod
    def make(cls) -> Shared:
        import cupy as cp

        return cls(cp.zeros(1, cp.uint32), cp.zeros(FAULT.itemsize // 4, cp.uint32))

    def next(self) -> None:
        self.epoch += 1


class Launch:
    """A bound kernel, loaded, with its own counters; ``run`` launches it on the current stream."""

    def __init__(
        self,
        program: Program,
        plan: Plan,
        name: str,
        shared: Shared,
        a: Any,
        b: Any,
        *,
        c: Any = None,
        arch: str = "sm_90a",
        family: Any = None,
        stamps: bool = False,
        started: bool = False,
    ) -> None:
        import cupy as cp

        self.bound: Bound = bind(program, plan, name, arch=arch, family=family)
        self.built = build(self.bound)
        self.kernel = load(self.built.cubin).get_function(self.bound.function)
        self.kernel.max_dynamic_shared_size_bytes = self.bound.shape.shared_bytes
        gemm = self.bound.gemm
        self.a, self.b = a, b
        self.c = cp.full((gemm.m, -(-gemm.n // 8) * 8), 0x7FFF, cp.uint16) if c is None else c
        self.partials = cp.full(max(self.bound.partial_floats, 1), cp.nan, cp.float32)
        self.counters = cp.zeros((COPIES, 2 + max(self.bound.arrivals, 1)), cp.uint32)
        self.stamps = cp.zeros((self.bound.tickets, STAMPS.itemsize // 8), cp.uint64) if stamps else None
        self.outgoing = [cp.zeros(slot.semaphores, cp.uint32) for slot in self.bound.outgoing]
        self.params = np.zeros(1, PARAMS)
        p = self.params
        p["a"], p["b"], p["c"], p["partials"] = a.data.ptr, b.data.ptr, self.c.data.ptr, self.partials.data.ptr
        p["tickets"], p["arrivals"] = self.counters.data.ptr, self.counters[0, 2:].data.ptr
        p["started"] = self.counters[0, 1:].data.ptr if started else 0
        p["epoch"], p["fault"] = shared.epoch.data.ptr, shared.fault.data.ptr
        p["stamps"] = 0 if self.stamps is None else self.stamps.data.ptr
        for slot, held in enumerate(self.outgoing):
            p["sem_out"][0, slot] = held.data.ptr
        p["m"], p["n"], p["k"] = gemm.m, gemm.n, gemm.k
        p["lda"], p["ldb"], p["ldc"] = a.shape[1], b.shape[1], self.c.shape[1]
        p["spin_budget_ns"], p["flags"] = BUDGET_NS, int(self.bound.flags)
        self.maps = (
            maps_of(self.bound, a.data.ptr, b.data.ptr, a.shape[1], b.shape[1]) if self.bound.tensor_maps else ()
        )
        sms = cp.cuda.Device().attributes["MultiProcessorCount"]
        self.grid = min(sms, self.bound.tickets) if self.bound.persistent else self.bound.tickets

    def wait_for(self, producer: Launch) -> None:
        for slot, held in enumerate(producer.outgoing):
            self.params["sem_in"][0, slot] = held.data.ptr

    def flag(self, flag: KernelFlag, on: bool = True) -> None:
        now = int(self.params["flags"][0])
        self.params["flags"] = now | int(flag) if on else now & ~int(flag)

    def run(self) -> None:
        self.launch(self.params)

    def launch(self, params: Any) -> None:
        size = self.bound.shape.shared_bytes
        self.kernel((self.grid,), (self.bound.shape.threads,), (params, *self.maps), shared_mem=size)

    def prepare_again(self) -> None:
        """Parameters for each set of counters; once the flags are as they shall be."""
        self.turn, self.again = 0, []
        for copy in range(COPIES):
            params = self.params.copy()
            params["tickets"] = self.counters[copy].data.ptr
            params["arrivals"] = self.counters[copy, 2:].data.ptr
            self.again.append(params)

    def run_again(self) -> None:
        """A run in the epoch of the one before, on the next of several sets of counters; for timing."""
        self.turn = (self.turn + 1) % COPIES
        self.launch(self.again[self.turn])

    def reset(self) -> None:
        """Zeros every set of counters, on the current stream."""
        import cupy as cp

        self.counters.data.memset_async(0, self.counters.nbytes, cp.cuda.get_current_stream())

    def result(self) -> Any:
        return to_float(self.c, self.bound.gemm.dtype)[:, : self.bound.gemm.n]


_LOADED: dict[bytes, Any] = {}


def load(cubin: bytes) -> Any:
    """The module of a cubin, kept alive."""
    import cupy as cp

    if cubin not in _LOADED:
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(cubin)
            file.flush()
            module = cp.RawModule(path=file.name)
            module.compile()
        _LOADED[cubin] = module
    return _LOADED[cubin]


def gelu(x: Any) -> Any:
    import cupy as cp

    return 0.5 * x * (1 + cp.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def reference(a: Any, b: Any, gemm: Gemm) -> Any:
    """The product in fp32 of what the tensor cores are given: SwiGLU is rounded as the kernel rounds it."""
    import cupy as cp

    if gemm.prologue == "swiglu":
        gate, up = a[:, : gemm.k], a[:, gemm.k :]
        joined = gate / (1 + cp.exp(-gate)) * up
        a = joined.astype(cp.float16).astype(cp.float32) if gemm.dtype == "fp16" else joined
    found = a.astype(cp.float64) @ b.astype(cp.float64) if a.size * b.shape[1] < 2**31 else a @ b
    return gelu(found) if gemm.epilogue == "gelu" else found


def relative_error(found: Any, wanted: Any) -> float:
    import cupy as cp

    wanted = wanted.astype(cp.float32)
    return float(cp.linalg.norm(found - wanted) / cp.linalg.norm(wanted))
