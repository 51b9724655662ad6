"""cuSync Table IV: waves, times and gains of the GPT-3 MLP on a V100, each row with its printed grids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from math import ceil
from typing import Any

from cusim.machine.machine import Machine
from cusim.program.kernel import DTYPE_BYTES, Kernel
from cusim.program.program import Program
from cusim.reproduce.claim import Answer, Question
from cusim.reproduce.cusync_waves import GPU, MLP
from cusim.reproduce.judge import judged, numbers, printed_range, words
from cusim.reproduce.lab import Lab, grid_text, plan_of, rounds_in_order, waves_of
from cusim.workloads import Choice

WHERE = "Table IV"
#: Points within which two gains count as the same: what is printed is whole percents of times that scatter.
NEAR_POINTS = 2.0
_CONTRADICTS = "the printed waves contradict the grids beside them"
_TIMES = ("stream_us", "policy_us")
_HOST = "the artifact's StreamSync waits for the host between its kernels, ours is queued back to back"


def table4_questions(paper: Mapping[str, Any]) -> Iterator[Question]:
    """Seven questions for each row."""
    for row in paper["table4"]:
        lead, name = f"B = {row['batch']}", f"table4.{row['batch']}"
        policy = {"tile": "TileSync", "row": "RowSync"}[row["policy"]]
        for key, text, printed, unit, answer in (
            ("grids", "grids of both GEMMs", row["grids"], "", _grids),
            ("waves", "waves of each GEMM", ", ".join(row["waves"]), "", _waves),
            ("stream-rounds", "StreamSync, whole waves", row["stream_rounds"], "", _stream_rounds),
            ("total-waves", f"{policy}, waves in all", row["total_waves"], "", _total_waves),
            ("stream-time", "StreamSync, time", row["stream_us"], "us", partial(_time, "stream")),
            ("policy-time", f"{policy}, time", row["policy_us"], "us", partial(_time, row["policy"])),
            ("gain", f"{policy}, time saved", row["gain"], "%", _gain),
        ):
            yield Question(f"{name}.{key}", f"{lead}: {text}", WHERE, printed, unit, partial(answer, row))


def _choice(row: Mapping[str, Any], policy: str, lab: Lab) -> Choice:
    """One tiling a row, as printed: that of the policy, in stream order too."""
    return lab.workload(MLP, GPU, row["m"], row["policy"]).choice(policy)


def _program(row: Mapping[str, Any], lab: Lab) -> Program:
    return _choice(row, row["policy"], lab).program


def _grids(row: Mapping[str, Any], lab: Lab) -> Answer:
    return words(row["grids"], grid_text(_program(row, lab)))


def _waves(row: Mapping[str, Any], lab: Lab) -> Answer:
    """Same where each wave rounds, up or down, to the one printed."""
    waves = waves_of(_program(row, lab), lab.machine(GPU))
    ranges = [printed_range(text) for text in row["waves"]]
    fits = all(low <= wave <= high for wave, (low, high) in zip(waves, ranges, strict=True))
    return judged(fits, ", ".join(f"{wave:.3g}" for wave in waves))


def _stream_rounds(row: Mapping[str, Any], lab: Lab) -> Answer:
    choice = _choice(row, "stream", lab)
    made = lab.finished(choice.program, lab.machine(GPU), plan_of(choice, "stream")).rounds
    closed = rounds_in_order(tuple(float(text) for text in row["waves"]))
    return numbers(row["stream_rounds"], made, baseline=closed, why=_contradiction(row["stream_rounds"], closed))


def _total_waves(row: Mapping[str, Any], lab: Lab) -> Answer:
    waves = waves_of(_program(row, lab), lab.machine(GPU))
    closed = sum(float(text) for text in row["waves"])
    why = _contradiction(row["total_waves"], closed, 0.05 * len(waves))
    return numbers(row["total_waves"], sum(waves), baseline=closed, why=why, digits=2)


def _contradiction(printed: str, closed: float, slack: float = 0.0) -> str:
    """Why a printed number of waves is wrong by the paper's own row: *closed* is computed from the waves beside it."""
    low, high = printed_range(printed)
    return "" if low - slack <= closed <= high + slack else _CONTRADICTS


def _time(policy: str, row: Mapping[str, Any], lab: Lab) -> Answer:
    """Predicted time with the machine's band; the rival is the roofline."""
    machine, choice = lab.machine(GPU), _choice(row, policy, lab)
    printed = row["stream_us" if policy == "stream" else "policy_us"]
    ours = lab.total_us(choice.program, machine, plan_of(choice, policy))
    band = machine.band_pct / 100
    notes = [row["note"]] if "note" in row and (policy != "stream" or row["batch"] == "1-64") else []
    share = _peak_share(float(printed), choice.program, machine, in_order=policy == "stream")
    why = _time_why(share, machine, in_order=policy == "stream") if ours > float(printed) else ""
    return numbers(
        printed, ours, baseline=_roofline_us(choice.program, machine), low=ours * (1 - band), high=ours * (1 + band),
        why=why, note="; ".join([*notes, *fitted(machine)]),
    )  # fmt: skip


def fitted(machine: Machine) -> list[str]:
    """Which rates of the machine stem from the paper's own runs, so that agreeing with them proves less."""
    names = [
        path.removeprefix("rates.")
        for path, leaf in machine.provenance.items()
        if path.startswith("rates.") and leaf.source.strip().startswith("cuSync repository")
    ]
    return [f"not independent: {', '.join(names)} of {machine.name} stem from the artifact's log"] if names else []


def _peak_share(time_us: float, program: Program, machine: Machine, *, in_order: bool) -> float:
    """The part of an SM's tensor peak that a time implies: of the busiest SM in stream order, else of the average."""
    sms = machine.limits.sms
    blocks = [ceil(kernel.blocks / sms) if in_order else kernel.blocks / sms for kernel in program.kernels]
    work = sum(count * _block_flops(kernel) for count, kernel in zip(blocks, program.kernels, strict=True))
    return work / (time_us * 1e-6) / (machine.rates.tensor_flops_per_clock_sm * machine.rates.clock_hz)


def _time_why(share: float, machine: Machine, *, in_order: bool) -> str:
    which = "the busiest SM" if in_order else "the average SM"
    percent = f"{100 * share:.0f} % of its tensor peak"
    if share > 1:
        return f"the printed time implies that {which} runs at {percent}"
    alone = 100 * machine.rates.tensor_efficiency * machine.rates.lone_block_share
    return f"the printed time keeps {which} at {percent}, ours runs a block that is alone there at {alone:.0f} %"


def _block_flops(kernel: Kernel) -> int:
    rows, cols, depth = kernel.tile
    return 2 * rows * cols * depth * kernel.slice_steps


def _roofline_us(program: Program, machine: Machine) -> float:
    """Each kernel at the tensor peak or the memory's rate, whichever takes longer."""
    rates = machine.rates
    peak = rates.tensor_flops_per_clock_sm * rates.clock_hz * machine.limits.sms
    total = 0.0
    for kernel in program.kernels:
        gemm = kernel.gemm
        assert gemm is not None
        moved = DTYPE_BYTES[gemm.dtype] * (gemm.m * gemm.k + gemm.k * gemm.n + gemm.m * gemm.n)
        total += max(2 * gemm.m * gemm.n * gemm.k / peak, moved / rates.hbm_bytes_per_s)
    return total * 1e6


def _gain(row: Mapping[str, Any], lab: Lab) -> Answer:
    """Time saved against stream order with the same tiles; the rival counts whole waves."""
    machine = lab.machine(GPU)
    times = {}
    for policy in ("stream", row["policy"]):
        choice = _choice(row, policy, lab)
        times[policy] = lab.total_us(choice.program, machine, plan_of(choice, policy))
    gain = 100 * (1 - times[row["policy"]] / times["stream"])
    waves = waves_of(_program(row, lab), machine)
    counted = 100 * (1 - ceil(round(sum(waves), 9)) / rounds_in_order(waves))
    return numbers(
        row["gain"], gain, baseline=counted, low=gain - NEAR_POINTS, high=gain + NEAR_POINTS, points=True,
        why=_gain_why(row, gain, _program(row, lab), machine),
        note=f"the repository's event-timed runs gain {row['rerun']} %{row.get('rerun_note', '')}",
    )  # fmt: skip


def _gain_why(row: Mapping[str, Any], gain: float, program: Program, machine: Machine) -> str:
    """The host's share is at most what the repository's own runs without it gain less."""
    if gain < printed_range(row["gain"])[0]:
        return _HOST if gain >= printed_range(row["rerun"])[0] - NEAR_POINTS else ""
    shares = [_peak_share(float(row[key]), program, machine, in_order=key == "stream_us") for key in _TIMES]
    above = min(shares) > 1
    return (
        "both printed times are shorter than the tensor peak allows, so what they are ratios of is unknown"
        if above
        else ""
    )
