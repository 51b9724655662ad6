"""The shipped h200 preset held against the recordings in traces/h200: errors by kind of cell, gains, and the choice."""

import statistics
from collections import defaultdict
from pathlib import Path

from matplotlib.figure import Figure

import cusim
from cusim.plot.save import save_figure
from cusim.recording.cells import Cell, program_of
from cusim.recording.rows import Row, read_recording

HERE = Path(__file__).parent
RECORDING = HERE.parent / "traces" / "h200" / "occasion-1.csv"
NOT_SIMULATED = ("graph", "pdl")


def predicted_us(row: Row, machine: cusim.Machine) -> float:
    """The prediction for a recorded cell, under the very program and plan that were measured."""
    gemm = tuple(map(int, row.workload[5:].split("x"))) if row.workload.startswith("gemm-") else None
    cell = Cell(
        row.group, row.label, row.workload, row.m, row.tile, row.split_k, row.launch, row.policy, row.order,
        None if row.flags == "default" else row.flags, gemm,
    )  # fmt: skip
    program, plan = program_of(cell, "h200")
    result = cusim.predict(program, machine, plan)
    assert isinstance(result, cusim.Prediction)
    return result.total_ps / 1e6


def main() -> None:
    """Prints the figures that the README quotes and draws ``h200_errors.png``."""
    machine = cusim.load_machine("h200")
    rows, _ = read_recording(RECORDING)
    rows = [row for row in rows if row.total_ns and not row.occasion and row.launch not in NOT_SIMULATED]
    pairs = [(row, predicted_us(row, machine), row.total_ns / 1e3) for row in rows if row.total_ns]
    errors: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for row, ours, measured in pairs:
        kind = "gemm" if row.workload.startswith("gemm-") else row.workload
        errors[row.group, kind, row.policy].append(100 * (ours / measured - 1))
    lines = [f"{' '.join(key):32} {len(found):4} cells  MAPE {_mape(found):5.1f} %" for key, found in errors.items()]
    every = [error for found in errors.values() for error in found]
    lines.append(f"{'all':32} {len(every):4} cells  MAPE {_mape(every):5.1f} %")
    inside = sum(abs(error) <= machine.band_pct for error in every)
    lines.append(f"{inside} of {len(every)} cells within the preset's {machine.band_pct:g} %")
    print("\n".join([*lines, *_choices(pairs)]))
    save_figure(_scatter(pairs), HERE / "h200_errors.png")


def _choices(pairs: list[tuple[Row, float, float]]) -> list[str]:
    """Gains of row and tile over stream order, each side at its own best order, and what choosing costs."""
    shapes: dict[tuple[str, int], dict[tuple[str, str], tuple[float, float]]] = defaultdict(dict)
    for row, ours, measured in pairs:
        if row.group == "chain":
            shapes[row.workload, row.m][row.policy, row.order] = (ours, measured)
    misses, nothing, right, decided, regret, always = [], [], 0, 0, [], []
    for plans in shapes.values():
        for policy in ("row", "tile"):
            ours, measured = (1 - _best(plans, policy, side) / _best(plans, "stream", side) for side in (0, 1))
            misses.append(100 * abs(ours - measured))
            nothing.append(100 * abs(measured))
            if abs(measured) > 0.02:
                decided += 1
                right += (ours > 0) == (measured > 0)
        best = min(measured for _, measured in plans.values())
        least = min(ours for ours, _ in plans.values())
        tied = [measured for ours, measured in plans.values() if ours <= least * 1.0001]  # orders the model tells alike
        regret.append(100 * (statistics.mean(tied) / best - 1))
        always.append(100 * (plans["row", "group:8"][1] / best - 1))
    return [
        f"gain off by {statistics.median(misses):.1f} points in the median, {statistics.mean(misses):.1f} in the mean "
        f"(no-gain: {statistics.median(nothing):.1f} and {statistics.mean(nothing):.1f})",
        f"sign of gain right in {right} of {decided} cases beyond 2 % (no-gain: 0)",
        f"regret {statistics.mean(regret):.1f} % (always row, bands of 8: {statistics.mean(always):.1f} %)",
    ]


def _best(plans: dict[tuple[str, str], tuple[float, float]], policy: str, side: int) -> float:
    return min(times[side] for (name, _), times in plans.items() if name == policy)


def _mape(errors: list[float]) -> float:
    return statistics.mean(map(abs, errors))


def _scatter(pairs: list[tuple[Row, float, float]]) -> Figure:
    """Prediction over measurement against the measured time, by group of cells."""
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    axes = figure.subplots()
    for group in dict.fromkeys(row.group for row, _, _ in pairs):
        found = [(measured, ours / measured) for row, ours, measured in pairs if row.group == group]
        axes.scatter(*zip(*found, strict=True), s=9, alpha=0.6, label=f"{group} ({len(found)})")
    axes.axhline(1.0, color="black", linewidth=0.8)
    axes.axhspan(0.85, 1.15, color="0.92", zorder=0)
    axes.set(xscale="log", xlabel="measured, us", ylabel="predicted / measured")
    axes.set_title("h200 preset, not calibrated, against 958 recorded cells (grey: its band of 15 %)", loc="left")
    axes.legend(title="cells", loc="upper right", fontsize=8)
    return figure


if __name__ == "__main__":
    main()
