"""Arithmetic on waves: what overlapping kernels could save at most, and how much of it ceilings leave."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil

from cusim.program.program import Program


def work_conserving_ps(times: Mapping[str, int], program: Program, slots: Mapping[str, int]) -> int:
    """The total if no slot were ever idle: each kernel's time alone times waves / ceil(waves), summed, in ps.

    *times* are measured with *program*'s own grids; *slots* are the blocks that the GPU holds at once, by kernel. A
    measured total below this cannot come from scheduling: the blocks themselves must have run faster. Partial waves
    that run faster than full ones only raise the true bound.
    """
    return sum(round(times[kernel.name] * filled(kernel.blocks, slots[kernel.name])) for kernel in program.kernels)


def filled(blocks: int, slots: int) -> Fraction:
    """The share of its waves' slots that a kernel alone fills: waves / ceil(waves)."""
    waves = Fraction(blocks, slots)
    return waves / ceil(waves)
