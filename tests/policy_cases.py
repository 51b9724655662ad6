"""Small programs that policies, orders and the CUDA printer are tried on."""

from __future__ import annotations

from random import Random

from cusim.program.buffer import Access
from cusim.program.build import Parts, gemm_kernel, tile_kernel, tile_range
from cusim.program.depends import TileDep, dependences
from cusim.program.expr import Expr, c, k, r
from cusim.program.kernel import BlockResources, Gemm, Kernel, Stream
from cusim.program.program import Program

BLOCK = BlockResources(128, 64, 16 * 1024)


def program_of(*parts: Parts, name: str = "case") -> Program:
    return Program(tuple(kernel for kernel, _ in parts), tuple(b for _, buffers in parts for b in buffers), name=name)


def chain(
    m: int,
    n: int,
    n2: int,
    tile: tuple[int, int, int],
    tile2: tuple[int, int, int],
    *,
    split: int = 1,
    split2: int = 1,
    stages: int = 2,
    swiglu: bool = False,
) -> Program:
    """``up``, m x n, and ``down``, m x n2, whose operand A is up's output."""
    up = gemm_kernel("up", Gemm(m, n, 64 * split), tile, BLOCK, split_k=split, stages=stages)
    gemm = Gemm(m, n2, n // 2, prologue="swiglu") if swiglu else Gemm(m, n2, n)
    down = gemm_kernel("down", gemm, tile2, BLOCK, a="up", split_k=split2, stages=stages)
    return program_of(up, down)


def gpt3_mlp_256() -> Program:
    """Table I, B = 256: grids 1 x 48 x 4 and 1 x 96 x 2."""
    return chain(256, 6144, 12288, (256, 128, 32), (256, 128, 32), split=4, split2=2)


def figure_1() -> Program:
    """Fig. 1: two kernels of 3 x 2 tiles; a consumer tile reads a row of two producer tiles, one at each k step."""
    return chain(3, 2, 2, (1, 1, 1), (1, 1, 1))


def only_dep(program: Program) -> TileDep:
    (dep,) = dependences(program)
    return dep


def reader(
    grid: tuple[int, int, int], rows: tuple[Expr, Expr], cols: tuple[Expr, Expr], *, steps: int, at_k: int | None = None
) -> Kernel:
    """A kernel ``down`` that reads ranges of ``up`` given in elements."""
    kernel, _ = tile_kernel(
        "down", grid, BLOCK, Stream(64), needs=(Access("up", rows, cols, "r", at_k),), steps=steps
    )  # fmt: skip
    return kernel


def read_of_tiles(producer: tuple[int, int], down: Kernel) -> Program:
    """A producer ``up`` of one-element tiles before *down*."""
    up = tile_kernel("up", (*producer, 1), BLOCK, Stream(64))
    parts = tile_kernel("down", down.grid, BLOCK, Stream(64))
    return program_of(up, (down, parts[1]))


def random_program(rng: Random) -> Program:
    """Operand A or B or two halves of A, or ranges that move along rows, columns, both or backwards; split or not."""
    kind = rng.choice(("a", "b", "swiglu", "walk", "walk", "three"))
    if kind == "walk":
        return _walk(rng)
    m, n, n2 = rng.randint(1, 40), 2 * rng.randint(1, 24), rng.randint(1, 40)
    up, down = _tile(rng), _tile(rng)
    if kind == "b":
        return _operand_b(rng, m, n, n2)
    depth = n // 2 if kind == "swiglu" else n
    split2 = _slices(rng, -(-depth // down[2]))
    program = chain(m, n, n2, up, down, split=rng.randint(1, 2), split2=split2, swiglu=kind == "swiglu")
    return program if kind != "three" else _third(rng, program, m, n2)


def _third(rng: Random, program: Program, m: int, n2: int) -> Program:
    """A third kernel that reads both others: fan-in 2 with unequal tile heights."""
    tile = _tile(rng)
    down, across = tile_range(r, tile[0]), tile_range(c, tile[1])
    also = Access("up", down, across, "r", 0)
    gemm = Gemm(m, rng.randint(1, 30), n2)
    split = _slices(rng, -(-n2 // tile[2]))
    kernel, buffers = gemm_kernel("out", gemm, tile, BLOCK, a="down", split_k=split, needs=(also,))
    return Program((*program.kernels, kernel), (*program.buffers, *buffers), name="three")


def _operand_b(rng: Random, m: int, n: int, n2: int) -> Program:
    """``down`` = W x up: the producer's rows are the k dimension."""
    up, down = _tile(rng), _tile(rng)
    producer, made = gemm_kernel("up", Gemm(m, n, 8), up, BLOCK)
    split = _slices(rng, -(-m // down[2]))
    kernel, buffers = gemm_kernel("down", Gemm(n2, n, m), down, BLOCK, split_k=split)
    reads = (kernel.reads[0], Access("up", tile_range(k, down[2]), tile_range(c, down[1]), "r"))
    consumer = Kernel(
        kernel.name, kernel.grid, kernel.tile, kernel.block, kernel.cost, reads, kernel.writes, kernel.steps
    )  # fmt: skip
    return program_of((producer, made), (consumer, buffers), name="operand_b")


def _walk(rng: Random) -> Program:
    """Ranges that move by any affine form of r, c and k, also backwards or repeating, with a halo."""
    rows, cols, steps = rng.randint(1, 6), rng.randint(1, 6), rng.randint(1, 7)
    forms = (r, c, k, k % 3, (steps - 1) - k, r + k, c - k, r * 2, k // 2, r + c)
    first, second = rng.choice(forms), rng.choice(forms)
    row, col = (first, first + rng.randint(1, 2)), (second, second + rng.randint(1, 2))
    grid = (rng.randint(1, 4), rng.randint(1, 4), _slices(rng, steps))
    moving = any("k" in bound.uses() for bound in (*row, *col))
    at_k = None if moving else rng.choice((None, 0, 1))
    return read_of_tiles((rows, cols), reader(grid, row, col, steps=steps, at_k=at_k))


def _slices(rng: Random, steps: int) -> int:
    """A split that leaves no slice without steps."""
    return rng.choice([z for z in range(1, min(steps, 4) + 1) if (z - 1) * -(-steps // z) < steps])


def _tile(rng: Random) -> tuple[int, int, int]:
    return rng.randint(1, 16), rng.randint(1, 16), rng.randint(1, 8)
