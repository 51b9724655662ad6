"""How many blocks an SM holds, and what stops it from holding one more.

The rules are those of NVIDIA's cuda_occupancy.h (CUDA 13.0), which the driver's own answer follows:
registers go to warps in units of 256 within a sub-partition, so what does not divide there is lost; shared
memory is the block's own plus the driver's reserve, rounded to its unit. The largest shared-memory carve-out
is assumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cusim.errors import Problems
from cusim.machine.check import WARP_SIZE
from cusim.machine.machine import Machine

UNLIMITED = 2**31 - 1
_FIRST_WITH_CLUSTERS = 90
_LARGEST_CLUSTER = 16


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Blocks of one kernel that an SM holds at once; *limited_by* names the tightest of *limits*.

    *limits* maps "shared memory", "registers", "warps", "block slots" and "clusters" to the blocks each
    alone would allow. ``blocks_per_sm`` is 0 where no SM can hold the block: ``why_no_block`` says why.
    """

    blocks_per_sm: int
    limited_by: str
    limits: Mapping[str, int]


def occupancy(machine: Machine, threads: int, registers: int, smem_bytes: int, cluster: int = 1) -> Occupancy:
    """Occupancy of blocks of *threads*, *registers* a thread, *smem_bytes* of static + dynamic memory.

    *cluster* is the blocks of a cluster: it decides whether the block can run at all, not how many fit.
    Among equal limits the first named wins. Raises InputError for sizes that make no sense.
    """
    _check(threads, registers, smem_bytes, cluster)
    limits = {
        "shared memory": _by_smem(machine, smem_bytes),
        "registers": _by_registers(machine, threads, registers),
        "warps": _by_warps(machine, threads),
        "block slots": machine.limits.blocks_per_sm,
        "clusters": UNLIMITED if cluster <= _largest_cluster(machine) else 0,
    }
    limited_by = min(limits, key=limits.__getitem__)
    return Occupancy(limits[limited_by], limited_by, limits)


def why_no_block(machine: Machine, threads: int, registers: int, smem_bytes: int, cluster: int = 1) -> str | None:
    """One sentence on why no SM can hold the block, naming every limit it breaks; None where one can."""
    limits = occupancy(machine, threads, registers, smem_bytes, cluster).limits
    most, gpu = machine.limits, machine.gpu
    reasons = []
    if not limits["shared memory"]:
        given, allowed = _kib(smem_bytes), _kib(most.smem_per_block_bytes)
        reasons.append(f"{given} of shared memory, {gpu} allows {allowed} a block")
    if not limits["warps"]:
        reasons.append(f"{threads} threads, {gpu} allows {most.threads_per_block} a block")
    if registers > most.registers_per_thread:
        reasons.append(f"{registers} registers a thread, {gpu} allows {most.registers_per_thread}")
    elif not limits["registers"]:
        given_registers = warp_registers(machine, registers) * _rounded_warps(machine, threads)
        reasons.append(f"{given_registers} registers once rounded, {gpu} allows {most.registers_per_block} a block")
    if not limits["clusters"]:
        reasons.append(f"a cluster of {cluster}, {gpu} allows {_largest_cluster(machine)}")
    return f"no SM can hold this block: {'; '.join(reasons)}" if reasons else None


def resource_share(machine: Machine, threads: int, registers: int, smem_bytes: int) -> float:
    """The share of an SM that one block takes, by the resource it takes most of; above 1 where it cannot fit.

    What an SM loses to rounding counts as taken: warps, registers, shared memory and block slots.
    """
    _check(threads, registers, smem_bytes, 1)
    most, warps = machine.limits, block_warps(threads)
    shares = (
        warps / most.warps_per_sm,
        warp_registers(machine, registers) * warps / most.registers_per_sm,
        block_smem(machine, smem_bytes) / most.smem_per_sm_bytes,
        1 / most.blocks_per_sm,
    )
    return max(shares)


def _by_warps(machine: Machine, threads: int) -> int:
    if threads > machine.limits.threads_per_block:
        return 0
    return machine.limits.warps_per_sm // block_warps(threads)


def _by_registers(machine: Machine, threads: int, registers: int) -> int:
    most = machine.limits
    per_warp = warp_registers(machine, registers)
    if registers > most.registers_per_thread:
        return 0
    if not per_warp:
        return UNLIMITED
    # At launch the hardware rounds a block's warps up to whole sub-partitions, then places them singly.
    if per_warp * _rounded_warps(machine, threads) > most.registers_per_block:
        return 0
    warps_a_partition = most.registers_per_sm // most.partitions // per_warp
    return warps_a_partition * most.partitions // block_warps(threads)


def _by_smem(machine: Machine, smem_bytes: int) -> int:
    taken = block_smem(machine, smem_bytes)
    if taken > machine.limits.smem_per_block_bytes + machine.limits.smem_reserve_bytes:
        return 0
    return machine.limits.smem_per_sm_bytes // taken if taken else UNLIMITED


def block_warps(threads: int) -> int:
    """Warps of a block of *threads*, a last partial one counted whole."""
    return -(-threads // WARP_SIZE)


def _rounded_warps(machine: Machine, threads: int) -> int:
    return _up(block_warps(threads), machine.limits.partitions)


def warp_registers(machine: Machine, registers: int) -> int:
    """Registers that a warp takes at *registers* a thread, rounded up to the machine's unit."""
    return _up(registers * WARP_SIZE, machine.limits.register_unit)


def block_smem(machine: Machine, smem_bytes: int) -> int:
    """Bytes of shared memory that a block takes, the driver's reserve and the rounding included."""
    return _up(smem_bytes + machine.limits.smem_reserve_bytes, machine.limits.smem_unit_bytes)


def _largest_cluster(machine: Machine) -> int:
    number = machine.arch.removeprefix("sm_").rstrip("af")
    return _LARGEST_CLUSTER if number.isdigit() and int(number) >= _FIRST_WITH_CLUSTERS else 1


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _kib(size: int) -> str:
    return f"{size // 1024} KiB" if size % 1024 == 0 else f"{size} B"


def _check(threads: int, registers: int, smem_bytes: int, cluster: int) -> None:
    problems = Problems("block resources")
    for key, given, least in (
        ("threads", threads, 1),
        ("registers", registers, 0),
        ("smem_bytes", smem_bytes, 0),
        ("cluster", cluster, 1),
    ):
        if given < least:
            problems.add(key, given, f"must be {least} or more")
    problems.raise_if_any()
