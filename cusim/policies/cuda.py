"""The one printer of CUDA: orders, posts and waits of a plan as a C header that nvcc and g++ accept alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cusim.errors import Problems, refuse
from cusim.policies.base import Post, SyncPolicy, Wait
from cusim.policies.identifiers import dependence_identifiers, identifier, kernel_identifiers
from cusim.policies.plan import Plan
from cusim.policies.plan_serial import plan_digest
from cusim.policies.tidy import blocks, producer_tiles, tickets, tidy, wait_places
from cusim.program.depends import TileDep, dependences
from cusim.program.expr import Const, Expr, Lookup, Op, as_expr, table_name, tables
from cusim.program.kernel import Kernel
from cusim.program.program import Program

_LARGEST = 2**31 - 1

_MATH = """\
#ifndef CUSIM_MATH_H
#define CUSIM_MATH_H
#ifdef __CUDACC__
#define CUSIM_FN __device__ __forceinline__
#define CUSIM_TABLE static __device__ const int
#else
#define CUSIM_FN static inline
#define CUSIM_TABLE static const int
#endif

/* Quotient and remainder round towards minus infinity, as in Python. */
CUSIM_FN int cusim_div(int a, int b) {
    const int q = a / b;
    return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}
CUSIM_FN int cusim_mod(int a, int b) {
    const int m = a % b;
    return (m != 0 && (m < 0) != (b < 0)) ? m + b : m;
}
CUSIM_FN int cusim_min(int a, int b) { return a < b ? a : b; }
CUSIM_FN int cusim_max(int a, int b) { return a > b ? a : b; }
#endif
"""


def print_math() -> str:
    """The helpers that every header begins with, under a guard of their own."""
    return _MATH


def print_header(program: Program, plan: Plan, *, deps: Sequence[TileDep] | None = None) -> str:
    """The header of one program and plan.

    For each kernel ``cusim_tiles_K`` (an enumerator: its number of blocks) and
    ``cusim_tile_K(t, &r, &c, &z)``: the tile of ticket t. For each dependence of an overlapped plan the enumerators
    ``cusim_semaphores_D``, ``cusim_posts_D`` and ``cusim_waits_D``, and for each i below the last two
    ``cusim_post_D_i(r, c, z, k, &index, &add)`` and
    ``cusim_wait_D_i(r, c, z, k, &index, &target, &at_k, &count)``, where at_k is -1 for a wait at every k step. The
    values hold where the plan asks for them: on the grids, at the steps of the block's slice, and at k = at_k.
    K and D are the names of :mod:`cusim.policies.identifiers`. *deps* defaults to the program's own dependences.
    InputError for a dependence without policy, an order that does not fit, or a constant that exceeds 32 bits.
    """
    found = (dependences(program) if deps is None else tuple(deps)) if plan.overlapped else ()
    _check_policies(found, plan)
    bodies = [_kernel(kernel, name, plan) for kernel, name in _named(program)]
    for dep, name in zip(found, dependence_identifiers(found), strict=True):
        bodies.append(_dependence(dep, name, plan.sync[dep.name]))
    shown = [expr for exprs, _ in bodies for expr in exprs]
    _check_constants(shown)
    chosen = plan_digest(plan)
    guard = f"CUSIM_PLAN_{program.digest}_{chosen}_H"
    parts = [
        f"/* Written by cusim. Program {identifier(program.name)} {program.digest}, plan {chosen}. */",
        f"#ifndef {guard}\n#define {guard}",
        print_math(),
        f'#undef CUSIM_PROGRAM_DIGEST\n#define CUSIM_PROGRAM_DIGEST "{program.digest}"\n'
        f'#undef CUSIM_PLAN_DIGEST\n#define CUSIM_PLAN_DIGEST "{chosen}"',
        *_tables(shown),
        *(text for _, text in bodies),
        "#endif",
    ]
    return "\n".join(parts) + "\n"


def _named(program: Program) -> list[tuple[Kernel, str]]:
    names = kernel_identifiers(program)
    return [(kernel, names[kernel.name]) for kernel in program.kernels]


def _kernel(kernel: Kernel, name: str, plan: Plan) -> tuple[list[Expr], str]:
    """The expressions and the text of a kernel's order."""
    order = plan.order_of(kernel.name)
    domain = tickets(kernel.blocks)
    tile = {axis: tidy(expr, domain) for axis, expr in zip("rcz", order.coordinates(kernel.grid), strict=True)}
    text = (
        f"\n/* kernel {identifier(kernel.name)}: {' x '.join(map(str, kernel.grid))} tiles */\n"
        f"enum {{ cusim_tiles_{name} = {kernel.blocks} }};\n" + _function(f"cusim_tile_{name}", ("t",), tile)
    )
    return list(tile.values()), text


def _dependence(dep: TileDep, name: str, policy: SyncPolicy) -> tuple[list[Expr], str]:
    """The expressions and the text of a dependence's posts and waits."""
    posts, waits = policy.posts(dep), policy.waits(dep)
    counts = {"semaphores": policy.size(dep), "posts": len(posts), "waits": len(waits)}
    values = ", ".join(f"cusim_{what}_{name} = {count}" for what, count in counts.items())
    rows = [(f"cusim_post_{name}_{i}", _post(post, dep)) for i, post in enumerate(posts)]
    rows += [(f"cusim_wait_{name}_{i}", _wait(wait, dep)) for i, wait in enumerate(waits)]
    text = f"\n/* {identifier(dep.producer)} to {identifier(dep.consumer)} */\nenum {{ {values} }};\n"
    text += "".join(_function(function, ("r", "c", "z", "k"), results) for function, results in rows)
    return [expr for _, results in rows for expr in results.values()], text


def _post(post: Post, dep: TileDep) -> dict[str, Expr]:
    domain = producer_tiles(dep)
    return {"index": tidy(post.index, domain), "add": tidy(post.add, domain)}


def _wait(wait: Wait, dep: TileDep) -> dict[str, Expr]:
    domain = wait_places(wait, dep)
    at_k = as_expr(-1) if wait.at_k is None else tidy(wait.at_k, blocks(dep))
    index, target, count = (tidy(expr, domain) for expr in (wait.index, wait.target, wait.count))
    return {"index": index, "target": target, "at_k": at_k, "count": count}


def _function(name: str, inputs: tuple[str, ...], results: Mapping[str, Expr]) -> str:
    """A function that stores each result through a pointer of its name; one-letter results end in ``_out``."""
    used = frozenset().union(*(expr.uses() for expr in results.values()))
    outputs = {f"{key}_out": expr for key, expr in results.items()}
    parameters = [f"int {given}" for given in inputs] + [f"int* {out}" for out in outputs]
    lines = [f"    (void){given};" for given in inputs if given not in used]
    lines += [f"    *{out} = {expr.cuda()};" for out, expr in outputs.items()]
    return f"CUSIM_FN void {name}({', '.join(parameters)}) {{\n" + "\n".join(lines) + "\n}\n"


def _tables(exprs: Iterable[Expr]) -> list[str]:
    """A definition for each lookup table that is read, each once."""
    found: dict[str, tuple[int, ...]] = {}
    for expr in exprs:
        for table in sorted(tables(expr)):
            if found.setdefault(table_name(table), table) != table:
                raise refuse("plan", "table", table_name(table), "two tables share this name")
    return [f"CUSIM_TABLE {name}[{len(table)}] = {{{', '.join(map(str, table))}}};" for name, table in found.items()]


def _check_policies(deps: Sequence[TileDep], plan: Plan) -> None:
    problems = Problems("plan")
    for name in dict.fromkeys(dep.name for dep in deps):
        if name not in plan.sync:
            problems.add(f"sync.{name}", None, "the plan has no policy for this dependence")
    problems.raise_if_any()


def _check_constants(exprs: Iterable[Expr]) -> None:
    for expr in exprs:
        for value in _constants(expr):
            if abs(value) > _LARGEST:
                raise refuse("plan", "constant", value, "does not fit the 32-bit integers of the printed code")


def _constants(expr: Expr) -> Iterable[int]:
    """Every integer that the printed expression holds."""
    match expr:
        case Const(value):
            yield value
        case Op(_, left, right):
            yield from _constants(left)
            yield from _constants(right)
        case Lookup(table, index):
            yield from table
            yield from _constants(index)
