"""One row a kernel: its sizes, how many blocks fit an SM and why no more, and its waves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cusim.machine.machine import Machine
from cusim.machine.occupancy import occupancy
from cusim.program.kernel import Kernel, Measured
from cusim.program.program import Program
from cusim.report.shape import tile_text


@dataclass(frozen=True, slots=True)
class KernelRow:
    """A kernel on a machine; *m*, *n*, *k* are None unless it is a matrix product.

    *waves* is blocks over slots, a fraction, as Nsight Compute prints it; *slots* blocks per SM times SMs.
    *cost* says what its time rests on: ``model``, ``measured``, or ``rescaled from`` another machine. *used_by* names
    the policies whose tiles these are, where policies differ in them.
    """

    name: str
    m: int | None
    n: int | None
    k: int | None
    tile: str
    grid: tuple[int, int, int]
    tiles: int
    blocks_per_sm: int
    limited_by: str
    slots: int
    waves: float | None
    cost: str
    used_by: str = ""

    @property
    def last_wave(self) -> int:
        """Blocks of the last wave; as many as there are slots when it is full."""
        return self.tiles - (self.tiles - 1) // self.slots * self.slots if self.slots else 0


def kernel_rows(program: Program, machine: Machine) -> list[KernelRow]:
    """The rows of a program's kernels, in issue order."""
    return [kernel_row(kernel, machine) for kernel in program.kernels]


def kernels_used(used: Sequence[tuple[Program, str]], machine: Machine) -> tuple[KernelRow, ...]:
    """The distinct rows of all programs that policies use; each names its policies unless they are all."""
    policies: dict[KernelRow, list[str]] = {}
    for program, policy in used:
        for row in kernel_rows(program, machine):
            names = policies.setdefault(row, [])
            names += [policy] if policy not in names else []
    every = len({policy for _, policy in used})
    return tuple(
        replace(row, used_by="" if len(names) == every else " ".join(names)) for row, names in policies.items()
    )


def kernel_row(kernel: Kernel, machine: Machine) -> KernelRow:
    """The row of one kernel; ``blocks_per_sm`` is 0 and ``waves`` None where no SM can hold its block."""
    block, gemm = kernel.block, kernel.gemm
    room = occupancy(machine, block.threads, block.registers, block.smem_bytes, block.cluster)
    slots = room.blocks_per_sm * machine.limits.sms
    return KernelRow(
        name=kernel.name,
        m=gemm.m if gemm else None,
        n=gemm.n if gemm else None,
        k=gemm.k if gemm else None,
        tile=tile_text(kernel.tile) if gemm else "-",
        grid=kernel.grid,
        tiles=kernel.blocks,
        blocks_per_sm=room.blocks_per_sm,
        limited_by=room.limited_by,
        slots=slots,
        waves=round(kernel.blocks / slots, 4) if slots else None,
        cost=_cost(kernel, machine),
    )


def _cost(kernel: Kernel, machine: Machine) -> str:
    if not isinstance(kernel.cost, Measured):
        return "model"
    here = kernel.cost.measured_on == machine.name and not machine.overrides
    return "measured" if here else f"rescaled from {kernel.cost.measured_on}"
