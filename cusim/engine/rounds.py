"""Rounds: the sum of ceil(tiles / slots) over stretches with no barrier between them (cuSync §I, Fig. 1)."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil

from cusim.policies.plan import Plan
from cusim.program.program import Program


def rounds(program: Program, plan: Plan, slots: Mapping[str, int]) -> int:
    """Whole rounds of the plan. In stream order each kernel is a stretch; side by side all of them are one, in which
    a kernel counts by the share of its slots that its blocks fill.
    """
    shares = [Fraction(kernel.blocks, slots[kernel.name]) for kernel in program.kernels]
    return ceil(sum(shares)) if plan.overlapped else sum(ceil(share) for share in shares)
