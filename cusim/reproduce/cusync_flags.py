"""cuSync Table V and §V-D: what the flags W, R and T save, and what synchronisation costs where it cannot gain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from cusim.machine.machine import Machine
from cusim.policies.plan import Plan
from cusim.policies.registry import build_plan
from cusim.program.build import tile_kernel
from cusim.program.kernel import BlockResources, Stream
from cusim.program.needs import parse_need
from cusim.program.program import Program
from cusim.reproduce.claim import Answer, Question
from cusim.reproduce.cusync_table4 import fitted
from cusim.reproduce.cusync_waves import GPU, MLP
from cusim.reproduce.judge import numbers, words
from cusim.reproduce.lab import Lab, plan_of, waves_of

#: Points within which a relative change counts as the printed one.
NEAR_POINTS = 1.0
_VANILLA = "vanilla"
#: Registers of a copy kernel: few enough that threads alone bound its blocks on an SM.
_COPY_REGISTERS = 32


def flag_questions(paper: Mapping[str, Any]) -> Iterator[Question]:
    """The times of Table V, what each step saves, their order, and the overhead of §V-D."""
    table, overhead = paper["table5"], paper["overhead"]
    where, times = table["where"], table["us"]
    for flags, printed in times.items():
        text = f"B = 1-64, TileSync {_plus(flags)}: time"
        yield Question(f"table5.{flags}.time", text, where, printed, "us", partial(_time, table, flags))
    for flags, printed in times.items():
        if flags != _VANILLA:
            saved = f"{100 * (1 - float(printed) / float(times[_VANILLA])):.1f}"
            text = f"B = 1-64, TileSync {_plus(flags)}: time saved against vanilla"
            yield Question(f"table5.{flags}.saved", text, where, saved, "%", partial(_saved, table, flags, saved))
    text = "B = 1-64, TileSync: slowest to fastest"
    yield Question("table5.order", text, where, table["order"], "", partial(_order, table))
    rows, cols = overhead["grid"]
    text = f"two dependent copies of {rows} x {cols} blocks, a full wave: TileSync over StreamSync"
    answer = partial(_overhead, overhead)
    yield Question("overhead", text, overhead["where"], overhead["percent"], "%", answer)


def _plus(flags: str) -> str:
    return flags if flags == _VANILLA else f"+{flags}"


def _times_us(table: Mapping[str, Any], lab: Lab) -> dict[str, float]:
    """Ours by flags, at the size that has Table IV's grids for B = 1-64."""
    choice = lab.workload(MLP, GPU, table["m"]).choice("tile")
    plans = {flags: plan_of(choice, "tile", flags="" if flags == _VANILLA else flags) for flags in table["us"]}
    return {flags: lab.total_us(choice.program, lab.machine(GPU), plan) for flags, plan in plans.items()}


def _time(table: Mapping[str, Any], flags: str, lab: Lab) -> Answer:
    times, band = _times_us(table, lab), lab.machine(GPU).band_pct / 100
    ours = times[flags]
    note = f"ours is B = {table['m']}, whose grids Table IV prints for 1-64; the rival: flags change nothing"
    return numbers(
        table["us"][flags], ours, baseline=times[_VANILLA], low=ours * (1 - band), high=ours * (1 + band),
        note="; ".join([note, *fitted(lab.machine(GPU))]),
    )  # fmt: skip


def _saved(table: Mapping[str, Any], flags: str, printed: str, lab: Lab) -> Answer:
    times = _times_us(table, lab)
    saved = 100 * (1 - times[flags] / times[_VANILLA])
    why = "in ours a wait-kernel and tickets cost their time beside the producer's tiles, which hide nearly all of it"
    return numbers(
        printed, saved, baseline=0.0, low=saved - NEAR_POINTS, high=saved + NEAR_POINTS, points=True,
        why=why if 0 <= saved < float(printed) else "", note="from the printed times; the rival: flags change nothing",
    )  # fmt: skip


def _order(table: Mapping[str, Any], lab: Lab) -> Answer:
    """Slowest first; equal to the ns is a tie, and ties stand in the order of the table."""
    times = {flags: round(us * 1000) for flags, us in _times_us(table, lab).items()}
    ranked = sorted(times, key=lambda flags: -times[flags])
    signs = [" = " if times[one] == times[other] else " > " for one, other in pairwise(ranked)]
    ours = ranked[0] + "".join(sign + flags for sign, flags in zip(signs, ranked[1:], strict=True))
    tied = [f"{one} and {other}" for one, other in pairwise(ranked) if times[one] == times[other]]
    why = f"ours cannot tell {', '.join(tied)} apart" if tied else "another order"
    return words(table["order"], ours, baseline=" = ".join(table["us"]), why=why)


def _overhead(constants: Mapping[str, Any], lab: Lab) -> Answer:
    """Smallest and largest over the sizes of a tile; ours is that of the repository's example, the first of them."""
    machine = lab.machine(GPU)
    programs = [_copies(constants, size) for size in constants["tile_bytes"]]
    found = [_slower_pct(program, machine, lab) for program in programs]
    waves = waves_of(programs[0], machine)[0]
    sizes = constants["tile_bytes"]
    why = "" if found[0] <= float(constants["percent"].partition("-")[2]) else _overhead_why(programs, machine, lab)
    return numbers(
        constants["percent"], found[0], baseline=0.0, low=min(found), high=max(found), points=True, why=why,
        note=f"waves of a kernel: {waves:g}; band: {sizes[0]} to {sizes[-1]} B a tile, which is not printed; "
        "StreamSync on one stream; the rival: semaphores cost nothing",
    )  # fmt: skip


def _overhead_why(programs: Sequence[Program], machine: Machine, lab: Lab) -> str:
    """How long the model's two copies take in stream order, beside what their bytes need."""
    first = programs[0]
    taken = lab.total_us(first, machine, Plan())
    cost = first.kernels[0].cost
    assert isinstance(cost, Stream)
    need = sum(kernel.blocks for kernel in first.kernels) * cost.tile_bytes / machine.rates.hbm_bytes_per_s * 1e6
    return (
        f"the model is wrong for many small copies: where memory is oversubscribed it slows a block's fixed times too, "
        f"so stream order takes {taken:.0f} us for bytes that need {need:.1f} us"
        if taken > 10 * (need + machine.launch.gap_ps * len(first.kernels) / 1e6)
        else "waits, posts and tickets are not hidden by a copy this short"
    )


def _slower_pct(program: Program, machine: Machine, lab: Lab) -> float:
    stream = lab.total_us(program, machine, Plan())
    return 100 * (lab.total_us(program, machine, build_plan(program, policy="tile")) / stream - 1)


def _copies(constants: Mapping[str, Any], tile_bytes: int) -> Program:
    """A copy kernel and one that copies what it wrote, tile by tile."""
    rows, cols = constants["grid"]
    block, grid = BlockResources(constants["threads"], _COPY_REGISTERS, 0), (rows, cols, 1)
    first, buffers = tile_kernel("first", grid, block, Stream(tile_bytes))
    needs = (parse_need("first[r, c]").access(first, rows, cols),)
    second, more = tile_kernel("second", grid, block, Stream(tile_bytes), needs=needs)
    return Program((first, second), buffers + more, name=f"copies of {tile_bytes} B")
