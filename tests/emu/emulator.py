"""The CUDA kernels built with g++ on the emulated machine, and called with numpy arrays."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backend_gpu.abi import FAULT, PARAMS, STAMPS, TENSOR_MAP
from backend_gpu.bind import glue
from backend_gpu.build import kernel_sources
from cusim.policies.cuda import print_math
from cusim.policies.plan import Plan
from cusim.policies.semaphores import posted
from cusim.program.depends import dependences
from cusim.program.program import Program

HERE = Path(__file__).parent
BUDGET_NS = 3_000_000


@dataclass(frozen=True)
class Case:
    """A kernel of a program, for the template that *shape* names, such as ``WgmmaShape<64, 64, 3, 1, ...>``."""

    program: Program
    plan: Plan
    kernel: str
    shape: str

    @property
    def wgmma(self) -> bool:
        return self.shape.startswith("Wgmma")


def shape(
    family: str,
    rows: int,
    cols: int,
    stages: int,
    part: Sequence[int],
    *,
    bf16: bool = False,
    gelu: bool = False,
    swiglu: bool = False,
    persistent: bool = False,
) -> str:
    """The template of a shape as C++."""
    tail = [str(bf16).lower(), int(gelu), int(swiglu), str(persistent).lower()]
    depth = [] if family == "wgmma" else [64]
    return f"{family.capitalize()}Shape<{', '.join(map(str, [rows, cols, *depth, stages, *part, *tail]))}>"


class Library:
    """All cases compiled into one library; *edits* are faults planted in the kernels: (file, old, new)."""

    def __init__(self, folder: Path, cases: Sequence[Case], edits: Sequence[tuple[str, str, str]] = ()) -> None:
        compiler = shutil.which("g++")
        if compiler is None:
            pytest.skip("no g++ on the path: the kernels cannot be emulated")
        files = dict(kernel_sources())
        for name, old, new in edits:
            assert files[name].count(old) >= 1, f"{name} no longer holds {old!r}"
            files[name] = files[name].replace(old, new)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        (folder / "cases.cpp").write_text(_source(cases), encoding="utf-8")
        command = [
            compiler,
            "-std=c++17",
            "-O1",
            "-shared",
            "-fPIC",
            "-DCUSIM_EMU",
            "-Wall",
            "-Wextra",
            "-Wno-unknown-pragmas",
            "-Wno-clobbered",
            f"-I{folder}",
            f"-I{HERE}",
            "-o",
            "cases.so",
            "cases.cpp",
        ]
        built = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert built.returncode == 0, built.stderr[:5000]
        self.warnings = built.stderr
        self.cases = list(cases)
        self.calls: Any = ctypes.CDLL(str(folder / "cases.so"))
        self.calls.emu_run.restype = ctypes.c_char_p


class Machine:
    """Device memory of one program: epoch, fault record, buffers with guards on both sides."""

    def __init__(self, library: Library) -> None:
        self.code = library
        self.epoch = np.zeros(1, np.uint32)
        self.fault = np.zeros(1, FAULT)
        self._held: list[Any] = []
        self._guards: list[Any] = []

    def guarded(self, shape: tuple[int, ...], dtype: Any, fill: Any) -> Any:
        """An array with 4 KiB of guard bytes on both sides, aligned to 64 bytes."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        raw = np.full(size + 8192 + 64, 0xAB, np.uint8)
        start = 4096 + (-(raw.ctypes.data + 4096)) % 64
        body = raw[start : start + size].view(dtype).reshape(shape)
        body[...] = fill
        self._guards.append((raw, start, size))
        return body

    def untouched(self) -> bool:
        """True while nothing was written outside a guarded array."""
        return all(
            (raw[:start] == 0xAB).all() and (raw[start + size :] == 0xAB).all() for raw, start, size in self._guards
        )

    def launch(
        self, number: int, a: Any, b: Any, c: Any, *, flags: int, sem_in: Any = (), sem_out: Any = (), grid: int = 0
    ) -> Launch:
        return Launch(self, number, a, b, c, flags, sem_in, sem_out, grid)

    def run(self, launches: Sequence[Launch], *, seed: int = 1, late: bool = True, resident: int = 8) -> str | None:
        """One epoch of the launches side by side; what went wrong, or None."""
        self.epoch += 1
        calls = self.code.calls
        for launch in launches:
            maps = launch.maps.ctypes.data_as(ctypes.c_void_p)
            calls.emu_add(launch.number, launch.params.ctypes.data_as(ctypes.c_void_p), maps, launch.grid)
        found = calls.emu_run(resident, seed, int(late))
        return None if found is None else found.decode()


class Launch:
    """One kernel with its buffers and counters."""

    def __init__(
        self, machine: Machine, number: int, a: Any, b: Any, c: Any, flags: int, sem_in: Any, sem_out: Any, grid: int
    ) -> None:
        case = machine.code.cases[number]
        kernel = next(k for k in case.program.kernels if k.name == case.kernel)
        gemm = kernel.gemm
        assert gemm is not None
        self.number, self.c, self.gemm = number, c, gemm
        rows, cols = kernel.tile[:2]
        self.partials = machine.guarded((kernel.blocks * rows * cols,), np.float32, np.nan)
        self.counters = machine.guarded((2 + kernel.output_tiles,), np.uint32, 0)
        self.stamps = machine.guarded((kernel.blocks,), STAMPS, 0)
        self.grid = grid or kernel.blocks
        self.params = np.zeros(1, PARAMS)
        p = self.params
        p["a"], p["b"], p["c"], p["partials"] = a.ctypes.data, b.ctypes.data, c.ctypes.data, self.partials.ctypes.data
        p["tickets"], p["started"], p["arrivals"] = (self.counters[i:].ctypes.data for i in (0, 1, 2))
        p["epoch"], p["fault"], p["stamps"] = (
            machine.epoch.ctypes.data,
            machine.fault.ctypes.data,
            self.stamps.ctypes.data,
        )
        for slot, array in enumerate(sem_in):
            p["sem_in"][0, slot] = array.ctypes.data
        for slot, array in enumerate(sem_out):
            p["sem_out"][0, slot] = array.ctypes.data
        p["m"], p["n"], p["k"] = gemm.m, gemm.n, gemm.k
        p["lda"], p["ldb"], p["ldc"] = a.shape[1], b.shape[1], c.shape[1]
        p["spin_budget_ns"], p["flags"] = BUDGET_NS, flags
        half = 2 * gemm.k if gemm.prologue == "swiglu" else 0
        self.maps = np.zeros(3, TENSOR_MAP)
        self.maps["words"][0, :6] = (a.ctypes.data, gemm.k, gemm.m, a.strides[0], 64, rows)
        self.maps["words"][1, :6] = (b.ctypes.data, gemm.n, gemm.k, b.strides[0], 64, 64)
        self.maps["words"][2, :6] = (a.ctypes.data + half, gemm.k, gemm.m, a.strides[0], 64, rows)


def semaphores(machine: Machine, program: Program, plan: Plan) -> list[Any]:
    """One array a dependence."""
    return [machine.guarded((plan.sync[dep.name].size(dep),), np.uint32, 0) for dep in dependences(program)]


def totals(program: Program, plan: Plan) -> list[Any]:
    """What each semaphore of each dependence receives in a run."""
    return [posted(plan.sync[dep.name], dep).total for dep in dependences(program)]


def to_words(values: Any, dtype: str) -> Any:
    """fp32 numbers rounded to fp16 or bf16, as 16-bit words."""
    if dtype == "fp16":
        return values.astype(np.float16).view(np.uint16)
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def from_words(words: Any, dtype: str) -> Any:
    """16-bit words as fp32 numbers."""
    if dtype == "fp16":
        return words.view(np.float16).astype(np.float32)
    return (words.astype(np.uint32) << 16).view(np.float32)


def _source(cases: Sequence[Case]) -> str:
    parts = [
        '#define CUSIM_WGMMA\n#include "gemm_wgmma.cuh"\n#include "gemm_mma.cuh"\n#include "library.h"\n',
        print_math(),
    ]
    rows = []
    for number, case in enumerate(cases):
        call = (
            "gemm_wgmma<Shape, CusimGlue>(p, maps, maps + 1, maps + 2)"
            if case.wgmma
            else "gemm_mma<Shape, CusimGlue>(p)"
        )
        used = "" if case.wgmma else "(void)maps; "
        header = _guard_free(glue(case.program, case.plan, case.kernel), number)
        parts.append(
            f"namespace case{number} {{\n{header}\nusing Shape = {case.shape};\n"
            f"static void body(const CusimParams& p, const CusimTensorMap* maps) {{ {used}{call}; }}\n}}\n"
        )
        rows.append(f"{{case{number}::body, case{number}::Shape::THREADS, case{number}::Shape::SHARED_BYTES}}")
    return "".join(parts) + f"const Kernel kernels[] = {{{', '.join(rows)}}};\n"


def _guard_free(text: str, number: int) -> str:
    """The header under a guard of its own: two kernels of one program each need a copy in their namespace."""
    return text.replace("CUSIM_PLAN_", f"CASE{number}_PLAN_")


def fault_of(machine: Machine) -> Mapping[str, int]:
    """The fault record as numbers."""
    return {name: int(machine.fault[name][0]) for name in FAULT.names or ()}
