"""What blocks take of an SM that several kernels share: warps, registers, shared memory and block slots."""

from __future__ import annotations

from typing import TypeAlias

from cusim.machine.machine import Machine
from cusim.machine.occupancy import block_smem, block_warps, occupancy, warp_registers

Room: TypeAlias = tuple[int, ...]


def sm_room(machine: Machine) -> Room:
    """What an empty SM has: warps, registers, bytes of shared memory, block slots."""
    most = machine.limits
    return (most.warps_per_sm, most.registers_per_sm, most.smem_per_sm_bytes, most.blocks_per_sm)


def block_room(machine: Machine, threads: int, registers: int, smem_bytes: int) -> Room:
    """What one block takes along the axes of :func:`sm_room`.

    Where the driver places fewer blocks than the plain sums would allow (registers that do not divide within a
    sub-partition), a block takes so much more that exactly the driver's number of equal blocks fits.
    """
    warps = block_warps(threads)
    plain = (warps, warp_registers(machine, registers) * warps, block_smem(machine, smem_bytes), 1)
    per_sm = occupancy(machine, threads, registers, smem_bytes)
    names = ("warps", "registers", "shared memory", "block slots")
    return tuple(
        max(take, have // (per_sm.limits[name] + 1) + 1) if per_sm.limits[name] < have else take
        for take, have, name in zip(plain, sm_room(machine), names, strict=True)
    )
