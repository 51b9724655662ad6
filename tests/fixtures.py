"""The contract fixture: three kernels, fan-in of 2, unequal tile heights; and a brute-force oracle for dependences."""

from __future__ import annotations

from dataclasses import replace

from cusim.program.buffer import Access, Buffer
from cusim.program.build import gemm_kernel, tile_kernel, tile_range
from cusim.program.expr import as_expr, c, k, minimum, r
from cusim.program.kernel import BlockResources, Gemm, Kernel, Measured, Stream
from cusim.program.program import Program

BLOCK = BlockResources(256, 128, 48 * 1024)


def contract_program() -> Program:
    """``p`` (tiles 8 high) and ``q`` (tiles 6 high, split 2) are both read by ``w`` (tiles 5 high): 24 rows each."""
    p, p_buffers = gemm_kernel("p", Gemm(24, 16, 32, epilogue="gelu"), (8, 8, 8), BLOCK)
    q, q_buffers = gemm_kernel(
        "q", Gemm(24, 12, 32), (6, 4, 8), BLOCK, split_k=2, stages=3, reduce="last_arriver", measured=(7_000, "h200")
    )
    extra = Access("q", tile_range(r, 5), (c * 3, minimum(c * 3 + 5, 12)), "r", at_k=1)
    w, w_buffers = gemm_kernel("w", Gemm(24, 10, 16), (5, 4, 4), BLOCK, a="p", needs=(extra,))
    block = BlockResources(128, 40, 1000, cluster=2)
    w = replace(w, block=block, persistent=True)
    buffers = (*p_buffers, *q_buffers, *w_buffers)
    placed = tuple(replace(buffer, addr=4096 * i) if i % 2 else buffer for i, buffer in enumerate(buffers))
    return Program((p, q, w), placed, seed=7, name="contract")


def toml_program() -> Program:
    """Four kernels that the TOML form can say in full: GEMMs, a split, needs of every kind, times, a cluster."""
    p, p_buffers = gemm_kernel("p", Gemm(24, 16, 32, "bf16", "gelu"), (8, 8, 8), BLOCK, split_k=2)
    q, q_buffers = tile_kernel(
        "q-1", (3, 4, 1), BLOCK, Measured(12_400_000, "h200", Stream(512, 9)), steps=2,
        needs=(Access("p", tile_range(r, 8), tile_range(k, 8), "r"),),
    )  # fmt: skip
    shifted = Access("q-1", tile_range(2 - r, 1), (as_expr(0), as_expr(4)), "r")
    swiglu = Gemm(24, 12, 8, "bf16", prologue="swiglu")
    w, w_buffers = gemm_kernel("w", swiglu, (8, 6, 4), BLOCK, a="p", measured=(1_234_000, "a100"), needs=(shifted,))
    v, v_buffers = tile_kernel(
        "v", (2, 2, 3), BlockResources(64, 32, 300, 2), Stream(4096), stages=2, reduce="last_arriver",
        needs=(Access("q-1", tile_range(r + 1, 1), tile_range(c * 2 + 1, 1), "r"),),
    )  # fmt: skip
    return Program((p, q, w, v), (*p_buffers, *q_buffers, *w_buffers, *v_buffers), name="four")


def elements(access: Access, buffer: Buffer, at: dict[str, int]) -> set[tuple[int, int]]:
    """Every element of the buffer that an access touches at one tile and step, one by one."""
    low, high = (int(bound.eval(**at)) for bound in access.rows)
    left, right = (int(bound.eval(**at)) for bound in access.cols)
    return {
        (i, j) for i in range(low, high) for j in range(left, right) if 0 <= i < buffer.rows and 0 <= j < buffer.cols
    }


def overlapping_tiles(
    program: Program, producer: Kernel, consumer: Kernel, row: int, col: int, slice_: int
) -> set[tuple[int, int]]:
    """Tiles of *producer* that write an element which one block of *consumer* reads, element by element."""
    wanted: set[tuple[str, int, int]] = set()
    first = slice_ * consumer.slice_steps
    steps = range(first, min(first + consumer.slice_steps, consumer.steps))
    for read in consumer.reads:
        for step in steps if read.streamed else [first + (read.at_k or 0)]:
            at = {"r": row, "c": col, "z": slice_, "k": step}
            wanted |= {(read.buffer, *element) for element in elements(read, program.buffer(read.buffer), at)}
    found = set()
    for i in range(producer.grid[0]):
        for j in range(producer.grid[1]):
            for write in producer.writes:
                made = elements(write, program.buffer(write.buffer), {"r": i, "c": j, "z": 0, "k": 0})
                if any((write.buffer, *element) in wanted for element in made):
                    found.add((i, j))
    return found
