"""What a thread block of a GEMM takes, from its tile, by the rule of each architecture (see defaults.toml)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cusim.errors import Problems
from cusim.program.kernel import DTYPE_BYTES, BlockResources, Gemm

_KIB = 1024
#: Registers of an SM and threads of a block, alike on every architecture here.
_SM_REGISTERS, _MOST_THREADS, _MOST_REGISTERS = 65536, 1024, 255
#: What loading warps keep when they give registers up: the least that can be asked for.
_LOADING_REGISTERS = 24


@dataclass(frozen=True, slots=True)
class Architecture:
    """The rule of one architecture; fields as in defaults.toml, whose *source* says what is known and what assumed."""

    name: str
    machines: tuple[str, ...]
    accumulators_per_thread: int
    accumulators_per_register: int
    thread_step: int
    extra_threads: int
    group_rows: int
    most_groups: int
    other_registers: int
    extra_shared_kib: int
    most_shared_kib: int
    stages: int
    both_halves: bool
    source: str


@dataclass(frozen=True, slots=True)
class Tiling:
    """How one GEMM is cut: tile (m, n, k), split-K slices and pipeline stages."""

    tile: tuple[int, int, int]
    split_k: int
    stages: int


def block_of(gemm: Gemm, tiling: Tiling, rule: Architecture) -> BlockResources:
    """Threads, registers and shared memory of a block by the architecture's rule."""
    workers = _workers(tiling, rule)
    threads, registers = workers + rule.extra_threads, _working_registers(tiling, rule)
    if rule.extra_threads:  # warp-specialised: the loading warps give registers up to those that compute
        most = _SM_REGISTERS // threads // 8 * 8
        registers = most if workers > 128 else min(registers, most)
    return BlockResources(threads, registers, _shared_bytes(gemm, tiling, rule))


def fitting(gemm: Gemm, tiling: Tiling, rule: Architecture, key: str, problems: Problems) -> Tiling:
    """The tiling with as many stages, at most its own, as shared memory holds; reports a tile that fits no SM."""
    most = rule.most_shared_kib * _KIB
    stages = tiling.stages
    while stages > 2 and _shared_bytes(gemm, replace(tiling, stages=stages), rule) > most:
        stages -= 1
    found = replace(tiling, stages=stages)
    block = block_of(gemm, found, rule)
    size = "x".join(map(str, tiling.tile))
    if block.smem_bytes > most:
        why = f"takes {block.smem_bytes / _KIB:g} KiB of shared memory, a block of {rule.name} has {most // _KIB}"
        problems.add(key, size, f"{why}; choose a smaller tile")
    if block.threads > _MOST_THREADS or block.registers > _MOST_REGISTERS or _registers(block) > _SM_REGISTERS:
        why = f"takes {block.threads} threads of {block.registers} registers, more than an SM of {rule.name} holds"
        problems.add(key, size, f"{why}; choose a smaller tile")
    taken = _workers(found, rule) * _working_registers(found, rule) + rule.extra_threads * _LOADING_REGISTERS
    if rule.extra_threads and taken > _SM_REGISTERS:
        why = f"needs {taken} registers for its accumulators and addresses, an SM of {rule.name} has {_SM_REGISTERS}"
        problems.add(key, size, f"{why}; choose a smaller tile")
    return found


def _workers(tiling: Tiling, rule: Architecture) -> int:
    """Threads that compute."""
    accumulators = tiling.tile[0] * tiling.tile[1]
    held = _up(-(-accumulators // rule.accumulators_per_thread), rule.thread_step)
    return max(128, held, 128 * _groups(tiling, rule))


def _working_registers(tiling: Tiling, rule: Architecture) -> int:
    """Registers of a thread that computes: its accumulators, and what it needs besides."""
    accumulators = tiling.tile[0] * tiling.tile[1]
    held = -(-accumulators // (_workers(tiling, rule) * rule.accumulators_per_register))
    return _up(held + rule.other_registers, 8)


def _groups(tiling: Tiling, rule: Architecture) -> int:
    """Warpgroups that share the rows of a tile; each takes two bands of rows where there would be too many."""
    if not rule.group_rows:
        return 0
    groups = tiling.tile[0] // rule.group_rows
    return groups if groups <= rule.most_groups else groups // 2


def _shared_bytes(gemm: Gemm, tiling: Tiling, rule: Architecture) -> int:
    rows, cols, depth = tiling.tile
    halves = 2 if rule.both_halves and gemm.prologue == "swiglu" else 1
    staged = (halves * rows + cols) * depth * DTYPE_BYTES[gemm.dtype] * tiling.stages
    return staged + rule.extra_shared_kib * _KIB


def _registers(block: BlockResources) -> int:
    return block.threads * block.registers


def _up(value: int, step: int) -> int:
    return -(-value // step) * step
