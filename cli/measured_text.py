"""A measured run as people read it; it stands apart from predictions and says what it was measured on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cusim.report.line import Line, facts
from cusim.report.shape import dtype_of, m_of, uniform
from cusim.report.trace import shape_in
from cusim.report.trace_text import trace_table

if TYPE_CHECKING:
    from backend_gpu.device import Facts
    from backend_gpu.runner import Deadlock, Measurement, Spread
    from cusim.policies.plan import Plan
    from cusim.program.program import Program

_PS_PER_US = 1_000_000


def measured_lines(program: Program, plan: Plan, device: Facts, outcome: Measurement) -> list[Line]:
    """The summary of one measured run."""
    said = [
        ("plan", _plan(program, plan)),
        (
            "total",
            f"{_us(outcome.total)}, median of {len(outcome.total.samples)}, quartiles {_quartiles(outcome.total)}",
        ),
    ]
    if outcome.stamped is not None and outcome.perturbation_pct is not None:
        said.append(("stamped", f"{_us(outcome.stamped)} ({outcome.perturbation_pct:+.2f} %), as the trace below"))
    said += [(f"check {number}", each.text()) for number, each in enumerate(outcome.checks, 1)]
    lines = [_head(program, device), Line(""), *facts(said)]
    if outcome.trace is not None:
        shape, _ = shape_in(outcome.trace, "trace")
        lines += [Line(""), *trace_table(outcome.trace, shape)]
    return lines


def deadlock_lines(program: Program, plan: Plan, device: Facts, outcome: Deadlock) -> list[Line]:
    """That the run was given up, and what was waited for."""
    said = [("plan", _plan(program, plan)), ("total", f"never ends: given up after {outcome.budget_ns / 1e6:.0f} ms")]
    return [_head(program, device), Line(""), *facts(said), Line(""), Line(f"Deadlocked: {outcome.text}", "bad", 4)]


def _head(program: Program, device: Facts) -> Line:
    sizes = [f"m={m_of(program)}"] if m_of(program) is not None else []
    words = [program.name, *sizes, *filter(None, [dtype_of(program)])]
    return Line(f"{'  '.join(words)}   measured on {device.name}, {device.sms} SMs", "head", 4)


def _plan(program: Program, plan: Plan) -> str:
    order = uniform({k.name: plan.order_of(k.name).name for k in program.kernels})
    flags = uniform({k.name: str(plan.flags_of(k.name)) for k in program.kernels})
    return f"{plan.label or plan.launch}, order {order}, flags {flags}, launch {plan.launch}"


def _us(spread: Spread) -> str:
    return f"{spread.median / _PS_PER_US:.1f} us"


def _quartiles(spread: Spread) -> str:
    low, high = spread.quartiles
    return f"{low / _PS_PER_US:.1f} to {high / _PS_PER_US:.1f}"
