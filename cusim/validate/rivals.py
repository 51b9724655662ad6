"""What a prediction must beat: rules that need no simulator, scored by the same code on the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from cusim.engine.setup import slots_of
from cusim.machine.machine import Machine
from cusim.program.kernel import DTYPE_BYTES
from cusim.program.program import Program
from cusim.validate.bound import work_conserving_ps
from cusim.validate.ranking import by_shape
from cusim.validate.regret import Choice, always, regret_of
from cusim.validate.scores import Scored
from cusim.validate.summary import Summary, summarise


@dataclass(frozen=True)
class Rated:
    """A row with what rivals may know of it: its program, and its kernels' times alone, in ps, by name (published
    where they are given, the model's elsewhere) with the total of stream order that goes with them.
    """

    scored: Scored
    program: Program
    alone_ps: dict[str, int]
    stream_ps: int


class Rule(NamedTuple):
    """What can be chosen without looking at a shape."""

    policy: str
    order: str = ""


Times = Callable[[Rated], int]


def rivals(rows: Sequence[Rated], machine: Machine, baseline: str) -> dict[str, Summary]:
    """The summary of each rival, by its name, in a fixed order."""
    scored = [row.scored for row in rows]
    found = {
        "no-gain": _timed(rows, lambda row: row.stream_ps, baseline),
        "always-row": _picking(scored, always("row"), baseline),
    }
    found["best-fixed"] = _picking(scored, always(best_fixed(scored).policy), baseline)
    found["sum-of-kernels"] = _timed(rows, lambda row: kernel_sum_ps(row, machine), baseline)
    found["ceil-wave"] = _timed(rows, lambda row: ceil_wave_ps(row, machine, row.scored.policy != baseline), baseline)
    found["roofline"] = _timed(rows, lambda row: roofline_ps(row.program, machine), baseline, told=False)
    return found


def best_fixed(rows: Iterable[Scored], policies: Iterable[str] = ()) -> Rule:
    """The policy and order, of *policies* or of all, with the least mean regret when it is always chosen: known only
    after measuring.
    """
    everything = list(rows)
    shapes = [members for members in by_shape(everything).values() if len(members) > 1]
    allowed = set(policies) or {row.policy for row in everything}
    rules = dict.fromkeys(Rule(row.policy, row.order) for row in everything if row.policy in allowed)
    return min(rules, key=lambda rule: sum(_cost(members, rule) for members in shapes))


def _cost(members: Sequence[Scored], rule: Rule) -> float:
    found = regret_of(members, always(rule.policy, rule.order))
    return 0.0 if found is None else found.pct


def kernel_sum_ps(row: Rated, machine: Machine) -> int:
    """Each kernel alone, one after the other, with the launch gap before it."""
    return sum(row.alone_ps.values()) + len(row.alone_ps) * machine.launch.gap_ps


def ceil_wave_ps(row: Rated, machine: Machine, overlapped: bool) -> int:
    """Whole waves in stream order; with any semaphores (*overlapped*) one launch gap, and each kernel's time times
    waves over ceil(waves), as in cuSync's Table IV.
    """
    if not overlapped:
        return kernel_sum_ps(row, machine)
    return work_conserving_ps(row.alone_ps, row.program, slots_of(row.program, machine)) + machine.launch.gap_ps


def roofline_ps(program: Program, machine: Machine) -> int:
    """Each kernel's operations over the peak or its operands and result over HBM, whichever is longer, summed."""
    rates = machine.rates
    peak = rates.tensor_flops_per_clock_sm * rates.clock_hz * machine.limits.sms
    total = 0.0
    for kernel in program.kernels:
        gemm = kernel.gemm
        assert gemm is not None
        moved = (gemm.m * gemm.k + gemm.k * gemm.n + gemm.m * gemm.n) * DTYPE_BYTES[gemm.dtype]
        total += max(2 * gemm.m * gemm.n * gemm.k / peak, moved / rates.hbm_bytes_per_s)
    return round(total * 1e12)


def _timed(rows: Sequence[Rated], times: Times, baseline: str, *, told: bool = True) -> Summary:
    """What the prediction was told is *told* to a rival too, unless it has its own word for every row."""
    timed = [row.scored if told and row.scored.given else replace(row.scored, predicted_ps=times(row)) for row in rows]
    return summarise(timed, baseline)


def _picking(rows: Sequence[Scored], choose: Choice, baseline: str) -> Summary:
    return summarise([replace(row, predicted_ps=None) for row in rows], baseline, choose)
