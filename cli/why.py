"""The work of ``cusim predict --why``: the best policy's gain at larger sizes, and the explanation of one report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from cli.asked import Asked
from cli.plans import contenders_of
from cli.subject import Sizes, is_file, read_subject
from cusim.engine.predict import predict
from cusim.engine.result import Prediction
from cusim.errors import InputError, refuse
from cusim.report.choice import best_row
from cusim.report.result import Report
from cusim.report.why import explain
from cusim.workloads.mlp import MLPS

#: Sizes are looked at up to this many times the present M, this many at most, with this many blocks in all: seconds.
MOST_TIMES, MOST_SIZES, MOST_BLOCKS = 8, 24, 600_000


def with_why(report: Report, workload: str, asked: Asked) -> Report:
    """The report with its explanation; the gain by size only for workloads that come in every size."""
    best = best_row(report)
    sizes: list[int] = []
    if best is not None and best.m is not None and not is_file(workload) and workload in MLPS:
        rows = max(kernel.tile[0] for kernel in report.program.kernels)
        sizes = sizes_from(best.m, rows, sum(kernel.blocks for kernel in report.program.kernels))
    gain = None if best is None or not sizes else _gain(workload, asked, best.policy)
    return replace(report, why=explain(report, sizes, gain))


def check_one_case(asked: Asked) -> None:
    """Raises InputError unless one case is asked for, with blocks in the order of arrival."""
    axes = asked.axes
    counts = {
        "--machine, --set": len(axes.machines),
        "--m": len(axes.ms),
        "--dispatch": len(axes.dispatches),
        "--seed": len(axes.seeds),
    }
    several = [f"{option} has {count} values" for option, count in counts.items() if count > 1]
    if several:
        raise refuse("the command line", "--why", None, f"explains one case at a time; {', '.join(several)}")
    if axes.dispatches[0] != "arrival":
        why = f"explains --dispatch arrival, not {axes.dispatches[0]}: another order of blocks is a cause of its own"
        raise refuse("the command line", "--why", None, why)


def sizes_from(m: int, rows: int, blocks: int) -> list[int]:
    """*m*, then multiples of *rows* up to 8 m, evenly spaced; so few that runs of *blocks* at m stay affordable."""
    first, last = m // rows + 1, MOST_TIMES * m // rows
    for count in range(MOST_SIZES - 1, 0, -1):
        step = max(1, -(-(last - first + 1) // count))
        sizes = [m, *(rows * place for place in range(first - 1 + step, last + 1, step))]
        if sum(2 * blocks * size // m for size in sizes) <= MOST_BLOCKS:
            return sizes
    return [m]


def _gain(workload: str, asked: Asked, policy: str) -> Callable[[int], float]:
    """The policy's gain over stream order in percent, by M, with the words that were typed, else the defaults."""
    axes = asked.axes
    setting = axes.machines[0]
    typed = replace(asked.typed, policy=(policy,))

    def gain_pct(m: int) -> float:
        totals: dict[bool, list[int]] = {False: [], True: []}
        for tile in axes.tiles:
            for split in axes.splits:
                try:
                    subject = read_subject(workload, setting.machine, Sizes(m, tile, split))
                    found = contenders_of(subject, typed).contenders
                except InputError:
                    continue
                machine = setting.apply(subject.overrides)
                for _, program, plan in found:
                    result = predict(program, machine, plan)
                    if isinstance(result, Prediction):
                        totals[plan.overlapped].append(result.total_ps)
        return _saved_pct(totals[False], totals[True])

    return gain_pct


def _saved_pct(streams: Sequence[int], others: Sequence[int]) -> float:
    return 100.0 * (1.0 - min(others) / min(streams)) if streams and others else 0.0
