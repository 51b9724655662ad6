"""Blocks per SM, against sums done by hand and against NVIDIA's own calculator."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cusim.errors import InputError
from cusim.machine import load_machine, occupancy, resource_share, why_no_block, with_overrides

KIB = 1024


# Each case: machine, threads, registers, shared memory, blocks per SM, what limits them.
@pytest.mark.parametrize(
    ("name", "threads", "registers", "smem", "blocks", "limited_by"),
    [
        # 128x256x64, fp16, 4 stages: (128 + 256) x 64 x 2 B x 4 = 192 KiB, 196 with barriers and padding; 197 with
        # the reserve, 228 / 197 = 1. Registers: 168 x 32 = 5376 for each of 12 warps; 16384 / 5376 = 3 a
        # partition, 12 an SM, 12 / 12 = 1 as well: shared memory is named first.
        ("h200", 384, 168, 196 * KIB, 1, "shared memory"),
        # 256x128x32, 2 stages: (256 + 128) x 32 x 2 B x 2 = 48 KiB, 96 / 48 = 2. Registers: 128 x 32 = 4096 a
        # warp, 4 a partition, 16 an SM, 16 / 8 = 2.
        ("v100", 256, 128, 48 * KIB, 2, "shared memory"),
        # 256x256x32, 2 stages: 512 x 32 x 2 B x 2 = 64 KiB, 96 / 64 = 1.
        ("v100", 256, 128, 64 * KIB, 1, "shared memory"),
        # All of an SM: 227 + 1 = 228.
        ("h200", 128, 32, 227 * KIB, 1, "shared memory"),
        # The reserve costs a block here: 2 x 82 KiB are 164, but 2 x (82 + 1) are 166.
        ("a100", 128, 32, 82 * KIB, 1, "shared memory"),
        ("a100", 128, 32, 81 * KIB, 2, "shared memory"),
        # V100 reserves nothing, so that two halves fit.
        ("v100", 128, 32, 48 * KIB, 2, "shared memory"),
        # 1 B + 1 KiB rounds up to 1152 B: 228 x 1024 / 1152 = 202, so the slots decide.
        ("h200", 32, 16, 1, 32, "block slots"),
        # 2048 threads / 1024 = 2; registers 32 x 32 = 1024 a warp, 16 a partition, 64 an SM, 64 / 32 = 2 too:
        # registers are named first.
        ("h200", 1024, 32, 0, 2, "registers"),
        # 16 x 32 = 512 a warp, 32 a partition, 128 an SM, 128 / 32 = 4: now the warps decide, 64 / 32 = 2.
        ("h200", 1024, 16, 0, 2, "warps"),
        # 33 registers cost as much as 40: 33 x 32 = 1056 -> 1280 a warp, 12 a partition, 48 an SM, 48 / 8 = 6.
        ("h200", 256, 33, 0, 6, "registers"),
        # What does not divide in a partition is lost: 96 x 32 = 3072 a warp, 5 a partition, 20 an SM, 20 / 3 = 6;
        # over the whole SM it would be 65536 / 3072 = 21, 21 / 3 = 7.
        ("a100", 96, 96, 0, 6, "registers"),
        # 65 threads are 3 warps: 64 / 3 = 21.
        ("h200", 65, 16, 0, 21, "warps"),
        # 5 warps are placed singly (64 / 5 = 12) though the launch check counts them as 8.
        ("a100", 160, 16, 0, 12, "warps"),
    ],
)
def test_by_hand(name: str, threads: int, registers: int, smem: int, blocks: int, limited_by: str) -> None:
    found = occupancy(load_machine(name), threads, registers, smem)
    assert (found.blocks_per_sm, found.limited_by) == (blocks, limited_by)
    assert found.limits[limited_by] == blocks == min(found.limits.values())


# Answers of cudaOccMaxActiveBlocksPerMultiprocessor (cuda_occupancy.h, CUDA 13.0) with opt-in shared memory and the
# largest carve-out, drawn at random: one for each machine, limit and small result. 60,000 such draws agreed.
NVIDIA = [
    ("a100", 12, 50, 0, 32), ("a100", 444, 200, 0, 0), ("a100", 256, 141, 0, 1),
    ("a100", 993, 20, 43008, 2), ("a100", 64, 80, 0, 12), ("a100", 480, 148, 219136, 0),
    ("a100", 32, 66, 111697, 1), ("a100", 171, 136, 73728, 2), ("a100", 128, 70, 36305, 4),
    ("a100", 1056, 56, 10192, 0), ("a100", 719, 12, 40803, 2), ("a100", 160, 16, 0, 12),
    ("h200", 31, 16, 0, 32), ("h200", 384, 192, 188416, 0), ("h200", 352, 138, 102907, 1),
    ("h200", 192, 160, 0, 2), ("h200", 207, 71, 0, 4), ("h200", 986, 229, 235095, 0),
    ("h200", 71, 206, 143360, 1), ("h200", 224, 8, 92160, 2), ("h200", 192, 58, 62464, 3),
    ("h200", 1056, 42, 147456, 0), ("h200", 1002, 16, 0, 2), ("h200", 224, 15, 0, 9),
    ("v100", 32, 21, 0, 32), ("v100", 551, 176, 43901, 0), ("v100", 426, 126, 0, 1),
    ("v100", 354, 64, 0, 2), ("v100", 32, 120, 0, 16), ("v100", 130, 200, 123796, 0),
    ("v100", 422, 32, 77613, 1), ("v100", 173, 112, 44678, 2), ("v100", 32, 208, 28672, 3),
    ("v100", 1088, 10, 0, 0), ("v100", 896, 8, 26624, 2), ("v100", 408, 21, 0, 4),
]  # fmt: skip


@pytest.mark.parametrize(("name", "threads", "registers", "smem", "blocks"), NVIDIA)
def test_as_nvidia_calculates(name: str, threads: int, registers: int, smem: int, blocks: int) -> None:
    machine = load_machine(name)
    assert occupancy(machine, threads, registers, smem).blocks_per_sm == blocks
    assert (why_no_block(machine, threads, registers, smem) is None) == (blocks > 0)


MACHINES = st.sampled_from(["v100", "a100", "h100", "h200"])
THREADS = st.integers(1, 1100)
REGISTERS = st.integers(0, 260)
SMEM = st.integers(0, 240 * KIB)


@given(MACHINES, THREADS, REGISTERS, SMEM, st.integers(0, 300), st.integers(0, 60), st.integers(0, 32 * KIB))
def test_a_larger_block_never_fits_more_often(
    name: str, threads: int, registers: int, smem: int, more_threads: int, more_registers: int, more_smem: int
) -> None:
    machine = load_machine(name)
    blocks = occupancy(machine, threads, registers, smem).blocks_per_sm
    larger = (threads + more_threads, registers + more_registers, smem + more_smem)
    assert occupancy(machine, *larger).blocks_per_sm <= blocks
    assert resource_share(machine, *larger) >= resource_share(machine, threads, registers, smem)


@given(MACHINES, THREADS, REGISTERS, SMEM)
def test_what_fits_takes_no_more_than_the_sm(name: str, threads: int, registers: int, smem: int) -> None:
    machine = load_machine(name)
    found = occupancy(machine, threads, registers, smem)
    assert found.blocks_per_sm * resource_share(machine, threads, registers, smem) <= 1 + 1e-9
    assert found.blocks_per_sm <= machine.limits.blocks_per_sm


def test_reasons_why_no_sm_holds_a_block() -> None:
    h200 = load_machine("h200")
    assert why_no_block(h200, 384, 168, 196 * KIB) is None
    assert why_no_block(h200, 128, 32, 228 * KIB) == (
        "no SM can hold this block: 228 KiB of shared memory, H200 allows 227 KiB a block"
    )
    assert why_no_block(h200, 1056, 256, 0, cluster=32) == (
        "no SM can hold this block: 1056 threads, H200 allows 1024 a block; "
        "256 registers a thread, H200 allows 255; a cluster of 32, H200 allows 16"
    )
    # 12 warps of 192 x 32 = 6144 registers: 73728 of 65536.
    assert why_no_block(h200, 384, 192, 0) == (
        "no SM can hold this block: 73728 registers once rounded, H200 allows 65536 a block"
    )


def test_clusters_need_hopper() -> None:
    assert occupancy(load_machine("h100"), 128, 32, 0, cluster=2).blocks_per_sm == 16
    found = occupancy(load_machine("a100"), 128, 32, 0, cluster=2)
    assert (found.blocks_per_sm, found.limited_by) == (0, "clusters")


@pytest.mark.parametrize(
    ("threads", "registers", "smem", "share"),
    [
        (384, 168, 196 * KIB, 12 * 5376 / 65536),  # registers 0.984, shared memory 197 / 228 = 0.864
        (1024, 32, 0, 0.5),
        (32, 8, 0, 1 / 32),  # a block slot
        (128, 32, 113 * KIB, 0.5),  # (113 + 1) / 228
    ],
)
def test_dominant_share(threads: int, registers: int, smem: int, share: float) -> None:
    assert resource_share(load_machine("h200"), threads, registers, smem) == pytest.approx(share)


def test_what_if_settings_reach_occupancy() -> None:
    roomy = with_overrides(load_machine("h200"), ["smem_per_sm_bytes=456KiB"])
    assert occupancy(roomy, 256, 64, 196 * KIB).blocks_per_sm == 2


def test_senseless_sizes_are_refused_together() -> None:
    with pytest.raises(InputError) as caught:
        occupancy(load_machine("h200"), 0, -1, -1, 0)
    assert [problem.key for problem in caught.value.problems] == [
        "threads",
        "registers",
        "smem_bytes",
        "cluster",
    ]
