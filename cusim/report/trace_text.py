"""One run as people read it: what it took, and when each kernel began, waited and ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cusim.machine.machine import Machine
from cusim.program.program import Program
from cusim.report.line import Line, facts, prose, table
from cusim.report.result import DEADLOCKS, Row
from cusim.report.shape import dtype_of, m_of
from cusim.report.text import machine_text
from cusim.trace.metrics import KernelMetrics, MachineShape, metrics
from cusim.trace.trace import Trace

_PS_PER_US = 1_000_000


def run_lines(program: Program, machine: Machine, row: Row, trace: Trace) -> list[Line]:
    """The summary of one simulated run."""
    from cusim.report.rows import shape_of

    words = [program.name, *_known("m=", m_of(program)), *_known("", dtype_of(program))]
    head = Line(f"{'  '.join(words)}   on {machine_text(machine)}", "head", 4)
    said = [
        ("plan", f"{row.policy}, order {row.order}, flags {row.flags}, launch {row.launch}"),
        ("total", "never ends" if row.total_ns is None else f"{row.total_ns / 1e3:.1f} us"),
        ("deadlock", row.deadlock),
        ("because", row.reason),
    ]
    if row.deadlock != DEADLOCKS:
        said[2:2] = [("rounds", str(row.rounds)), ("waits", str(row.waits))]
    dispatch, seed = trace.meta.get("dispatch", "arrival"), trace.meta.get("seed", 0)
    if dispatch != "arrival" or seed:
        said.insert(1, ("dispatch", f"{dispatch}, seed {seed}"))
    return [head, Line(""), *facts(said), Line(""), *trace_table(trace, shape_of(program, machine))]


def trace_lines(trace: Trace, shape: MachineShape) -> list[Line]:
    """A trace from a file: where it comes from, whether it stood still, and where its time went."""
    said = [
        (name, " ".join(map(str, value)) if isinstance(value, list) else str(value))
        for name, value in trace.meta.items()
        if not isinstance(value, Mapping) and value not in (None, [], "") and name not in ("deadlock", "cycle")
    ]
    return [*facts(said), Line(""), *trace_table(trace, shape), *_stood_still(trace.meta)]


def _stood_still(meta: Mapping[str, Any]) -> list[Line]:
    """That the run deadlocked, and the tiles that wait for each other."""
    if meta.get("deadlock") is not True:
        return []
    cycle = meta.get("cycle")
    links = [str(link) for link in cycle] if isinstance(cycle, list) else []
    head = f"Deadlocked: from then on nothing moves{':' if links else '.'}"
    return [Line(""), Line(head, "bad"), *(Line(f"  {link}", "", 4) for link in links)]


def trace_table(trace: Trace, shape: MachineShape) -> list[Line]:
    """A table of kernels with their times, then where the SMs' time went."""
    summary = metrics(trace, shape)
    titles = ["kernel", "blocks", "waves", "first start us", "last end us", "waiting us a block"]
    rows = [[*_kernel_cells(kernel), _waiting(trace, number)] for number, kernel in enumerate(summary.kernels)]
    until = "stood still after" if trace.meta.get("deadlock") is True else "span"
    shares = (
        f"{until} {summary.span_ps / _PS_PER_US:.1f} us: working {summary.working_pct:.1f} %, "
        f"waiting {summary.waiting_pct:.1f} %, empty {summary.empty_pct:.1f} % of the SMs' time; "
        f"achieved occupancy {100 * summary.achieved_occupancy:.1f} %"
    )
    return [*table(titles, rows, [False, True, True, True, True, True]), Line(""), prose(shares, "verdict")]


def _kernel_cells(kernel: KernelMetrics) -> list[str]:
    return [
        kernel.name,
        str(kernel.tiles),
        f"{kernel.waves:.2f}",
        "-" if kernel.start_ps is None else f"{kernel.start_ps / _PS_PER_US:.1f}",
        "-" if kernel.end_ps is None else f"{kernel.end_ps / _PS_PER_US:.1f}",
    ]


def _waiting(trace: Trace, kernel: int) -> str:
    """Mean time that a block of the kernel stood still."""
    waits = trace.tiles["wait_total"][trace.tiles["kernel"] == kernel]
    return f"{float(np.mean(waits)) / _PS_PER_US:.1f}" if len(waits) else "-"


def _known(prefix: str, value: object) -> list[str]:
    return [] if value is None else [f"{prefix}{value}"]
