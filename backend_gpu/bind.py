"""From a program and a plan to the source of one kernel: the printed policies, and the glue that the kernels call.

No policy is written here: orders, posts and waits come from :mod:`cusim.policies.cuda`; the glue numbers them and
names the semaphores' arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from backend_gpu.abi import SLOTS, KernelFlag
from backend_gpu.shapes import Family, Shape, shape_of
from cusim.errors import refuse
from cusim.policies.cuda import print_header
from cusim.policies.identifiers import dependence_identifiers, kernel_identifiers
from cusim.policies.plan import Plan
from cusim.policies.semaphores import posted
from cusim.program.depends import TileDep, dependences
from cusim.program.kernel import Gemm, Kernel
from cusim.program.program import Program

_DTYPES = {"fp16": "false", "bf16": "true"}
_EPILOGUES = {"none": "CUSIM_NONE", "gelu": "CUSIM_GELU"}
_PROLOGUES = {"none": "CUSIM_NONE", "swiglu": "CUSIM_SWIGLU"}


@dataclass(frozen=True, slots=True)
class Slot:
    """One dependence at one of a kernel's semaphore arrays: its *name*, and how many *semaphores* it has."""

    name: str
    semaphores: int


@dataclass(frozen=True, slots=True)
class Bound:
    """One kernel ready to be compiled.

    *function* is the entry; *tickets* the blocks of a launch (fewer for a persistent kernel). Buffers it needs beyond
    the operands: *partial_floats* of split-K sums, *arrivals* counters, the semaphores of *incoming* and *outgoing*
    (slot by slot, in ``sem_in`` and ``sem_out``). *flags* are those of the plan.
    """

    kernel: str
    function: str
    source: str
    arch: str
    shape: Shape
    gemm: Gemm
    tickets: int
    slices: int
    partial_floats: int
    arrivals: int
    incoming: tuple[Slot, ...]
    outgoing: tuple[Slot, ...]
    flags: KernelFlag
    persistent: bool

    @property
    def tensor_maps(self) -> bool:
        """True when the launch takes three tensor maps after the parameters: A, B and A's second half."""
        return self.shape.family == "wgmma"


def bind(program: Program, plan: Plan, name: str, *, arch: str = "sm_90a", family: Family | None = None) -> Bound:
    """The kernel *name* of a program under a plan, for an architecture such as ``sm_90a`` or ``sm_80``.

    *family* chooses mma.sync where both exist. InputError for a kernel that is no GEMM, a tile or type there is no
    kernel for, too many dependences, or flag A on a semaphore with several posters.
    """
    kernel = _kernel(program, name)
    shape = shape_of(kernel, arch, family)
    gemm = kernel.gemm
    assert gemm is not None
    if gemm.dtype not in _DTYPES:
        raise refuse(f"kernel {name}", "dtype", gemm.dtype, f"allowed on a GPU: {', '.join(_DTYPES)}")
    deps = dependences(program) if plan.overlapped else ()
    incoming, outgoing = _slots(deps, plan, name)
    flags = _flags(deps, plan, name)
    function = f"cusim_{kernel_identifiers(program)[name]}"
    slices = kernel.grid[2]
    rows, cols = shape.tile
    return Bound(
        name, function, _source(program, plan, kernel, shape, gemm, function), arch, shape, gemm, kernel.blocks, slices,
        kernel.blocks * rows * cols if slices > 1 else 0, kernel.output_tiles if slices > 1 else 0,
        incoming, outgoing, flags, kernel.persistent,
    )  # fmt: skip


def glue(program: Program, plan: Plan, name: str) -> str:
    """The printed header and the struct ``CusimGlue`` of a kernel: what its templates ask for orders and semaphores."""
    kernel = _kernel(program, name)
    deps = dependences(program) if plan.overlapped else ()
    known = list(zip(deps, dependence_identifiers(deps), strict=True))
    into = [(dep, ident) for dep, ident in known if dep.consumer == name]
    out = [(dep, ident) for dep, ident in known if dep.producer == name]
    fixed, stepped, posts = _numbered(into, out, plan)
    sizes = {
        "tickets": kernel.blocks,
        "cols": kernel.grid[1],
        "slices": kernel.grid[2],
        "steps": kernel.steps,
        "slice_steps": kernel.slice_steps,
        "fixed_waits": len(fixed),
        "step_waits": len(stepped),
        "posts": len(posts),
    }
    totals = [posted(plan.sync[dep.name], dep).total.tolist() for dep, _ in into]
    lines = [
        print_header(program, plan),
        *(_total_table(slot, values) for slot, values in enumerate(totals) if len(set(values)) > 1),
        "struct CusimGlue {",
        f"    enum {{ {', '.join(f'{key} = {value}' for key, value in sizes.items())} }};",
        "    struct Wait { int slot, index, target, at_k, count; };",
        "    struct Post { int slot, index, add; };",
        "    CUSIM_MEMBER void tile(int t, int* r, int* c, int* z) {"
        f" cusim_tile_{kernel_identifiers(program)[name]}(t, r, c, z); }}",
        *_wait_functions(fixed, stepped),
        *_post_function(posts),
        *_total_function(totals),
        "};",
    ]
    return "\n".join(lines) + "\n"


def _kernel(program: Program, name: str) -> Kernel:
    for kernel in program.kernels:
        if kernel.name == name:
            return kernel
    raise refuse("program", "kernel", name, f"allowed: {', '.join(k.name for k in program.kernels)}")


def _slots(deps: Sequence[TileDep], plan: Plan, name: str) -> tuple[tuple[Slot, ...], tuple[Slot, ...]]:
    into = tuple(Slot(dep.name, plan.sync[dep.name].size(dep)) for dep in deps if dep.consumer == name)
    out = tuple(Slot(dep.name, plan.sync[dep.name].size(dep)) for dep in deps if dep.producer == name)
    for what, slots in (("into", into), ("out of", out)):
        if len(slots) > SLOTS:
            raise refuse(f"kernel {name}", "dependences", len(slots), f"at most {SLOTS} lead {what} a kernel")
    return into, out


def _flags(deps: Sequence[TileDep], plan: Plan, name: str) -> KernelFlag:
    chosen = plan.flags_of(name)
    flags = KernelFlag(0) if chosen.T else KernelFlag.TICKETED
    if chosen.R:
        flags |= KernelFlag.REORDER
    if chosen.A:
        flags |= KernelFlag.STORE_POST
        for dep in deps:
            posts = posted(plan.sync[dep.name], dep)
            if dep.producer == name and len(np.unique(posts.index)) != len(posts.index):
                raise refuse("plan", f"flags.{name}", "A", f"several tiles post one semaphore of {dep.name}")
    return flags


def _numbered(
    into: list[tuple[TileDep, str]], out: list[tuple[TileDep, str]], plan: Plan
) -> tuple[list[tuple[int, str]], list[tuple[int, str]], list[tuple[int, str]]]:
    """(slot, printed function) of the waits before one k step, those of every step, and the posts."""
    fixed: list[tuple[int, str]] = []
    stepped: list[tuple[int, str]] = []
    posts: list[tuple[int, str]] = []
    for slot, (dep, ident) in enumerate(into):
        for number, wait in enumerate(plan.sync[dep.name].waits(dep)):
            (stepped if wait.at_k is None else fixed).append((slot, f"cusim_wait_{ident}_{number}"))
    for slot, (dep, ident) in enumerate(out):
        posts += [(slot, f"cusim_post_{ident}_{i}") for i in range(len(plan.sync[dep.name].posts(dep)))]
    return fixed, stepped, posts


def _wait_functions(fixed: list[tuple[int, str]], stepped: list[tuple[int, str]]) -> list[str]:
    """A wait before one k step is asked twice: first for that step, then for its values there."""
    call = "f(r, c, z, k, &w.index, &w.target, &w.at_k, &w.count);"
    lines = [
        "    CUSIM_MEMBER Wait step_wait(int i, int r, int c, int z, int k) {",
        "        Wait w = {0, 0, 0, -1, 0};",
    ]
    lines += [
        f"        if (i == {i}) {{ w.slot = {slot}; {call.replace('f(', f + '(')} }}"
        for i, (slot, f) in enumerate(stepped)
    ]
    lines += ["        (void)i; (void)r; (void)c; (void)z; (void)k;", "        return w;", "    }"]
    lines += ["    CUSIM_MEMBER Wait fixed_wait(int i, int r, int c, int z) {", "        Wait w = {0, 0, 0, -1, 0};"]
    for i, (slot, f) in enumerate(fixed):
        first, second = (call.replace("f(", f + "(").replace(" k,", f" {k},", 1) for k in ("0", "w.at_k"))
        lines.append(f"        if (i == {i}) {{ w.slot = {slot}; {first} {second} }}")
    return [*lines, "        (void)i; (void)r; (void)c; (void)z;", "        return w;", "    }"]


def _post_function(posts: list[tuple[int, str]]) -> list[str]:
    lines = ["    CUSIM_MEMBER Post post(int i, int r, int c) {", "        Post p = {0, 0, 0};"]
    for i, (slot, f) in enumerate(posts):
        lines.append(f"        if (i == {i}) {{ p.slot = {slot}; {f}(r, c, 0, 0, &p.index, &p.add); }}")
    return [*lines, "        (void)i; (void)r; (void)c;", "        return p;", "    }"]


def _total_table(slot: int, values: list[int]) -> str:
    return f"CUSIM_TABLE cusim_totals_{slot}[{len(values)}] = {{{', '.join(map(str, values))}}};"


def _total_function(totals: list[list[int]]) -> list[str]:
    """What a semaphore receives in a run: a number where all of a dependence receive alike, else a table."""
    lines = ["    CUSIM_MEMBER int total(int slot, int index) {"]
    for slot, values in enumerate(totals):
        value = str(values[0]) if len(set(values)) == 1 else f"cusim_totals_{slot}[index]"
        lines.append(f"        if (slot == {slot}) return {value};")
    return [*lines, "        (void)slot; (void)index;", "        return 0;", "    }"]


def _source(program: Program, plan: Plan, kernel: Kernel, shape: Shape, gemm: Gemm, function: str) -> str:
    macros = {
        "NAME": function,
        "BM": shape.tile[0],
        "BN": shape.tile[1],
        "STAGES": shape.stages,
        "BF16": _DTYPES[gemm.dtype],
        "EPILOGUE": _EPILOGUES[gemm.epilogue],
        "PROLOGUE": _PROLOGUES[gemm.prologue],
        "PERSISTENT": str(kernel.persistent).lower(),
    }
    if shape.family == "wgmma":
        macros["GROUPS"] = shape.part[0]
    else:
        macros |= {"BK": kernel.tile[2], "WM": shape.part[0], "WN": shape.part[1]}
    lines = ["#define CUSIM_WGMMA"] if shape.family == "wgmma" else []
    lines += ['#include "ptx.cuh"', glue(program, plan, kernel.name)]
    lines += [f"#define CUSIM_{key} {value}" for key, value in macros.items()]
    return "\n".join([*lines, f'#include "gemm_{shape.family}.cu"', ""])
