"""The printed code, built with g++, gives what Python gives on every tile and k step of random programs."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import TypeAlias

import numpy as np
import pytest

from cusim.errors import InputError
from cusim.policies.base import Post, SyncPolicy, Wait
from cusim.policies.batched import BatchedPolicy
from cusim.policies.cuda import print_header, print_math
from cusim.policies.identifiers import dependence_identifiers, distinct, kernel_identifiers
from cusim.policies.orders import ColumnOrder, GroupOrder, Order, RowOrder, TableOrder, order_table
from cusim.policies.plan import Plan
from cusim.policies.plan_serial import plan_digest
from cusim.policies.registry import build_plan
from cusim.policies.row import RowPolicy
from cusim.policies.tabulated import tabulate
from cusim.policies.tile import TilePolicy
from cusim.program.depends import TileDep, dependences
from cusim.program.expr import Const, Expr, Lookup, as_expr, c, k, maximum, minimum, r, z
from cusim.program.program import Program
from tests.policy_cases import chain, random_program

Case: TypeAlias = tuple[Program, Plan]

CASES = 60


@dataclass(frozen=True)
class Wild:
    """Posts and waits of random expressions, also negative ones: not sound, but the same on both sides."""

    posted: tuple[Expr, ...]
    awaited: tuple[tuple[Expr, Expr, Expr | None, Expr], ...]
    name: str = "wild"

    def size(self, dep: TileDep) -> int:
        return 7

    def posts(self, dep: TileDep) -> tuple[Post, ...]:
        return tuple(Post(expr, expr - 3) for expr in self.posted)

    def waits(self, dep: TileDep) -> tuple[Wait, ...]:
        return tuple(Wait(*parts) for parts in self.awaited)


def test_printed_code_equals_the_python_policies(tmp_path: Path) -> None:
    rng = Random(20240521)
    cases = [random_case(rng) for _ in range(CASES)]
    text = [print_math(), "#include <stdio.h>\n"]
    for number, (program, plan) in enumerate(cases):
        text.append(f"namespace case{number} {{\n{print_header(program, plan)}{dump(program, plan)}}}\n")
    calls = "".join(f"    case{number}::dump();\n" for number in range(CASES))
    lines = run(tmp_path, "".join(text) + f"int main() {{\n{calls}    return 0;\n}}\n")
    expected = [line for program, plan in cases for line in python_lines(program, plan)]
    assert len(lines) > 10_000
    assert lines == expected


def test_division_and_remainder_round_down_for_every_sign(tmp_path: Path) -> None:
    body = (
        "int main() {\n    for (int a = -9; a <= 9; ++a) for (int b = -4; b <= 4; ++b) if (b != 0)\n"
        '        printf("%d %d %d %d\\n", cusim_div(a, b), cusim_mod(a, b), cusim_min(a, b), cusim_max(a, b));\n'
        "    return 0;\n}\n"
    )
    pairs = [(a, b) for a in range(-9, 10) for b in range(-4, 5) if b]
    expected = [f"{a // b} {a % b} {min(a, b)} {max(a, b)}" for a, b in pairs]
    assert run(tmp_path, f"{print_math()}#include <stdio.h>\n{body}") == expected


def test_names_become_distinct_identifiers() -> None:
    names = ["a-b", "a.b", "a_b", "a_b_2", "", "é"]
    assert distinct(names) == ("a_b", "a_b_2", "a_b_3", "a_b_2_2", "_", "__2")


def test_two_buffers_between_the_same_kernels_have_identifiers_of_their_own() -> None:
    (dep,) = dependences(chain(8, 8, 8, (4, 4, 4), (4, 4, 4)))
    assert dependence_identifiers((dep,)) == ("up_down",)
    pair = (dep, replace(dep, buffer="scale"))
    assert dependence_identifiers(pair) == ("up_down_up", "up_down_scale")


def test_header_holds_the_digests_and_only_tiles_for_a_stream_plan() -> None:
    program = chain(8, 8, 8, (4, 4, 4), (4, 4, 4))
    header = print_header(program, Plan())
    assert f'"{program.digest}"' in header
    assert f'"{plan_digest(Plan())}"' in header
    assert "cusim_tile_up(" in header
    assert "cusim_post" not in header


def test_what_the_grid_makes_redundant_is_not_printed() -> None:
    program = chain(768, 6144, 12288, (128, 256, 64), (128, 256, 64))
    header = print_header(program, build_plan(program, policy="tile", order="group:8"))
    assert "*r_out = cusim_mod(t, 6);" in header
    assert "*c_out = cusim_div(t, 6);" in header
    assert "*index_out = ((r * 24) + cusim_div((((k - 1) * 64) + 319), 256));" in header
    row = print_header(program, build_plan(program, policy="row"))
    for line in ("*index_out = r;", "*target_out = 24;", "*at_k_out = 0;", "*count_out = 1;"):
        assert line in row


def test_a_dependence_without_policy_is_refused() -> None:
    with pytest.raises(InputError, match="no policy for this dependence"):
        print_header(chain(8, 8, 8, (4, 4, 4), (4, 4, 4)), Plan(launch="wait-first"))


def test_a_constant_of_more_than_32_bits_is_refused() -> None:
    program = chain(8, 8, 8, (4, 4, 4), (4, 4, 4))
    plan = Plan({"up>down": Wild((r + 2**31,), ())}, launch="none")
    with pytest.raises(InputError, match="32-bit"):
        print_header(program, plan)


def random_case(rng: Random) -> Case:
    program = random_program(rng)
    if rng.random() < 0.3:
        program = renamed(program, {"up": "1st-kernel", "down": "1st.kernel"})
    sync = {dep.name: random_policy(rng, dep) for dep in dependences(program)}
    order = {kernel.name: random_order(rng, kernel.grid) for kernel in program.kernels}
    return program, Plan(sync, order, launch="wait-first")


def renamed(program: Program, names: dict[str, str]) -> Program:
    kernels = tuple(replace(kernel, name=names.get(kernel.name, kernel.name)) for kernel in program.kernels)
    return Program(kernels, program.buffers, name='na"me */ ??/')


def random_policy(rng: Random, dep: TileDep) -> SyncPolicy:
    salt = rng.randint(0, 99)
    axes = rng.sample(range(4), rng.randint(0, 4))

    def entries(*at: int) -> list[tuple[int, int, int]]:
        seed = Random(str([salt, *(at[axis] for axis in axes)]))
        return [(seed.randint(0, 20), seed.randint(1, 9), seed.randint(1, 3)) for _ in range(seed.randint(0, 3))]

    table = tabulate("table", dep, lambda row, col: ((row * 7 + col * salt) % 5, 1 + row), entries)
    parts = tuple(
        (wild(rng, 3), wild(rng, 2), rng.choice((None, wild(rng, 2, (z,)) % 5)), wild(rng, 3)) for _ in range(2)
    )
    exotic = Wild((wild(rng, 3, (r, c)), wild(rng, 2, (r, c))), parts)
    return rng.choice((TilePolicy(), RowPolicy(), BatchedPolicy(rng.randint(1, 4)), table, exotic))


def wild(rng: Random, depth: int, variables: tuple[Expr, ...] = (r, c, z, k)) -> Expr:
    """A random expression whose values stay small."""
    if depth == 0:
        return rng.choice((*variables, as_expr(rng.randint(-9, 9))))
    left, right = wild(rng, depth - 1, variables), wild(rng, depth - 1, variables)
    divisor = rng.choice((-5, -2, 2, 3, 7))
    table = tuple(rng.randint(-50, 50) for _ in range(rng.randint(1, 5)))
    choices = (
        left + right, left - right, left * right % 11, left // divisor, left % divisor,
        minimum(left, right), maximum(left, right), Lookup(table, right % len(table)),
    )  # fmt: skip
    return rng.choice(choices)


def random_order(rng: Random, grid: tuple[int, int, int]) -> Order:
    table = order_table(RowOrder(), grid).tolist()
    rng.shuffle(table)
    shuffled = TableOrder(tuple((row, col, slice_) for row, col, slice_ in table))
    return rng.choice((RowOrder(), ColumnOrder(), GroupOrder(rng.randint(1, 6)), shuffled))


def dump(program: Program, plan: Plan) -> str:
    """C++ that prints all tiles, posts and waits of a case."""
    lines = ["static void dump() {", "    int a = 0, b = 0, d = 0, e = 0;"]
    for name in kernel_identifiers(program).values():
        lines.append(f"    for (int t = 0; t < cusim_tiles_{name}; ++t) {{ cusim_tile_{name}(t, &a, &b, &d);")
        lines.append('        printf("%d %d %d\\n", a, b, d); }')
    deps = dependences(program)
    for dep, name in zip(deps, dependence_identifiers(deps), strict=True):
        counts = (f"cusim_{what}_{name}" for what in ("semaphores", "posts", "waits"))
        lines.append(f'    printf("%d %d %d\\n", {", ".join(f"(int){count}" for count in counts)});')
        lines += loops(dep.producer_grid[:2], "r", "c")
        for number in range(len(plan.sync[dep.name].posts(dep))):
            lines.append(f"        cusim_post_{name}_{number}(r, c, 0, 0, &a, &b);")
            lines.append('        printf("%d %d\\n", a, b);')
        lines.append("    }")
        lines += loops((*dep.consumer_grid, dep.slice_steps), "r", "c", "z", "j")
        lines.append(f"        const int k = z * {dep.slice_steps} + j; if (k >= {dep.steps}) continue;")
        for number in range(len(plan.sync[dep.name].waits(dep))):
            lines.append(f"        cusim_wait_{name}_{number}(r, c, z, k, &a, &b, &d, &e);")
            lines.append('        if (d == -1 || d == k) printf("%d %d %d %d\\n", a, b, d, e);')
        lines.append("    }")
    return "\n".join([*lines, "    (void)a; (void)b; (void)d; (void)e;", "}", ""])


def loops(sizes: tuple[int, ...], *names: str) -> list[str]:
    heads = [f"for (int {n} = 0; {n} < {size}; ++{n})" for n, size in zip(names, sizes, strict=True)]
    return [f"    {' '.join(heads)} {{", "        (void)r; (void)c;"]


def python_lines(program: Program, plan: Plan) -> list[str]:
    """What the dump of a case has to print, from the expressions."""
    lines = []
    for kernel in program.kernels:
        lines += [" ".join(map(str, row)) for row in order_table(plan.order_of(kernel.name), kernel.grid).tolist()]
    for dep in dependences(program):
        policy = plan.sync[dep.name]
        posts, waits = policy.posts(dep), policy.waits(dep)
        lines.append(f"{policy.size(dep)} {len(posts)} {len(waits)}")
        rows, cols, _ = dep.producer_grid
        lines += values([(post.index, post.add) for post in posts], np.argwhere(np.ones((rows, cols, 1, 1))))
        places = np.argwhere(np.ones((*dep.consumer_grid, dep.slice_steps)))
        places[:, 3] += places[:, 2] * dep.slice_steps
        places = places[places[:, 3] < dep.steps]
        every = Const(-1)
        found = values([(w.index, w.target, w.at_k or every, w.count) for w in waits], places)
        steps = np.repeat(places[:, 3], len(waits)).tolist()
        lines += [line for line, step in zip(found, steps, strict=True) if int(line.split()[2]) in (-1, step)]
    return lines


def values(groups: list[tuple[Expr, ...]], places: np.ndarray) -> list[str]:
    """One line for each place and group of expressions."""
    at = dict(zip("rczk", places.T, strict=True))
    columns = [[np.broadcast_to(expr.eval(**at), len(places)).tolist() for expr in group] for group in groups]
    return [" ".join(str(column[i]) for column in group) for i in range(len(places)) for group in columns]


def run(folder: Path, text: str) -> list[str]:
    """Output lines of a C++ program, built without a warning."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler: neither g++ nor clang++ is on the path")
    source, program = folder / "case.cpp", folder / "case"
    source.write_text(text, encoding="utf-8")
    flags = ["-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror"]
    built = subprocess.run([compiler, *flags, "-o", program, source], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr[:4000]
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()
