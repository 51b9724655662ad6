"""Warpgroups of a block by the rows of its tile: threads, registers and occupancy as the compiled kernels have them."""

from __future__ import annotations

import pytest

from backend_gpu import shapes
from cusim.errors import InputError, Problems
from cusim.machine import load_machine, occupancy
from cusim.program.build import gemm_kernel
from cusim.program.kernel import BlockResources, Gemm
from cusim.program.toml_kernel import parse_tile
from cusim.workloads.blocks import Tiling, block_of, fitting
from cusim.workloads.defaults import architecture_of

H200 = load_machine("h200")
GEMM = Gemm(4096, 4096, 4096)


def block(text: str, stages: int = 4) -> BlockResources:
    rule, tile = architecture_of("h200"), parse_tile(text)
    assert rule is not None
    assert tile is not None
    problems = Problems(text)
    tiling = fitting(GEMM, Tiling(tile, 1, stages), rule, "tile", problems)
    problems.raise_if_any()
    return block_of(GEMM, tiling, rule)


def held(taken: BlockResources) -> int:
    return occupancy(H200, taken.threads, taken.registers, taken.smem_bytes).blocks_per_sm


# Consumers multiply 64 rows each, but for 256 rows, which two share: four would leave too few registers. One more
# warpgroup loads. With two or more consumers, registers move between warpgroups: the block takes all of an SM's.
@pytest.mark.parametrize(
    ("tile", "threads", "registers"),
    [
        ("64x128x64", 256, 104),
        ("64x192x64", 256, 136),
        ("128x64x64", 384, 168),
        ("128x256x64", 384, 168),
        ("192x64x64", 512, 128),
        ("192x192x64", 512, 128),
        ("256x128x64", 384, 168),
    ],
)
def test_threads_and_registers_by_rows(tile: str, threads: int, registers: int) -> None:
    taken = block(tile)
    assert (taken.threads, taken.registers) == (threads, registers)


@pytest.mark.parametrize("tile", shapes.tiles("wgmma"))
def test_blocks_have_the_threads_that_kernels_are_compiled_with(tile: str) -> None:
    size = parse_tile(tile)
    assert size is not None
    taken = block(tile)
    kernel, _ = gemm_kernel("k", GEMM, size, taken, stages=4)
    shape = shapes.shape_of(kernel, "sm_90a")
    assert taken.threads == shape.threads
    assert shape.shared_bytes <= taken.smem_bytes <= shape.shared_bytes + 4096
    if shape.part[0] > 1:
        assert held(taken) == 1
        assert held(BlockResources(taken.threads, taken.registers, 0)) == 1  # by registers alone


@pytest.mark.parametrize("tile", ["128x256x64", "192x192x64", "256x128x64", "64x256x64"])
def test_accumulators_that_fit_are_no_reason_to_refuse(tile: str) -> None:
    assert held(block(tile)) >= 1


def test_a_tile_whose_accumulators_no_sm_holds_is_refused_for_its_registers() -> None:
    """Two warpgroups of 256 x 256 hold 256 sums a thread and need addresses besides; shared memory would do."""
    with pytest.raises(InputError, match=r"needs \d+ registers for its accumulators") as caught:
        block("256x256x64")
    assert [(problem.key, problem.given) for problem in caught.value.problems] == [("tile", "256x256x64")]


def test_one_warpgroup_leaves_room_for_a_second_block_where_shared_memory_does() -> None:
    assert held(block("64x128x64")) == 2
    assert held(block("64x192x64")) == 1
