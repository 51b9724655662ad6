"""cuSync Fig. 1, §I and Table I: rounds, waits, waves and utilisation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from math import ceil
from statistics import mean
from typing import Any

from cusim.engine.setup import kernel_occupancy
from cusim.machine.machine import Machine
from cusim.machine.override import with_overrides
from cusim.policies.plan import Plan
from cusim.program.program import Program
from cusim.reproduce.claim import Answer, Question
from cusim.reproduce.judge import numbers, words
from cusim.reproduce.lab import Lab, grid_text, plan_of, rounds_in_order, waves_of
from cusim.trace.metrics import resident

FIG1 = "cusync-fig1"
MLP, GPU = "gpt3-mlp", "v100"
#: Points within which a simulated utilisation counts as the printed closed form: fixed costs of tiles, ends of rounds.
NEAR_POINTS = 2.0


def wave_questions(paper: Mapping[str, Any]) -> Iterator[Question]:
    """The questions of Fig. 1, §III-E, §I and Table I."""
    fig1, waits = paper["fig1"], paper["waits"]
    for policy, key, text in (
        ("stream", "rounds_stream", "rounds in stream order"),
        ("tile", "rounds_tile", "rounds under TileSync"),
    ):
        answer = partial(_fig1_rounds, fig1[key], policy)
        yield Question(f"fig1.rounds.{policy}", text, fig1["where"], fig1[key], "", answer)
    answer = partial(_fig1_idle, fig1["idle_tile"])
    yield Question("fig1.idle", "idle slots under TileSync", fig1["where"], fig1["idle_tile"], "slots", answer)
    for policy, name in (("tile", "TileSync"), ("row", "RowSync")):
        answer = partial(_fig1_waits, waits[policy], policy)
        yield Question(f"fig1.waits.{policy}", f"waits of {name} in Fig. 1", waits["where"], waits[policy], "", answer)
    for row in paper["utilisation"]:
        text = f"a kernel of {row['waves']} waves keeps the GPU busy"
        answer = partial(_utilisation, row)
        yield Question(f"intro.{row['waves']}", text, row["where"], row["percent"], "%", answer)
    for row in paper["table1"]:
        yield from _table1(row)


def _table1(row: Mapping[str, Any]) -> Iterator[Question]:
    name, lead = f"table1.{row['m']}", f"B = {row['m']}"
    for key, text, unit, answer in (
        ("grids", "grids of both GEMMs", "", _grids),
        ("blocks_per_sm", "blocks an SM", "", _blocks_per_sm),
        ("waves", "waves of each GEMM", "", _waves),
        ("utilisation", "utilisation of each GEMM", "%", _table1_utilisation),
    ):
        yield Question(f"{name}.{key}", f"{lead}: {text}", "Table I", row[key], unit, partial(answer, row))


def _fig1(lab: Lab, policy: str) -> tuple[Program, Machine, Plan]:
    workload = lab.workload(FIG1, GPU)
    choice = workload.choice(policy)
    return choice.program, with_overrides(lab.machine(GPU), workload.machine_overrides), plan_of(choice, policy)


def _fig1_rounds(printed: str, policy: str, lab: Lab) -> Answer:
    """How many blocks' time the run takes; each block outlasts the latencies around it."""
    program, machine, plan = _fig1(lab, policy)
    found = lab.finished(program, machine, plan)
    spans = resident(found.trace)
    waves = waves_of(program, machine)
    closed = rounds_in_order(waves) if policy == "stream" else ceil(round(sum(waves), 9))
    seen = found.trace.span_ps / float((spans[:, 1] - spans[:, 0]).mean())
    note = "simulated time over that of a block; the rival: sums of waves, rounded up"
    return numbers(printed, seen, baseline=closed, note=note, digits=2)


def _fig1_idle(printed: str, lab: Lab) -> Answer:
    """SM time that nobody held, in tiles; the semaphores' latencies are a small part of one."""
    program, machine, plan = _fig1(lab, "tile")
    spans = resident(lab.finished(program, machine, plan).trace)
    held = spans[:, 1] - spans[:, 0]
    room = machine.limits.sms * int(spans[:, 1].max() - spans[:, 0].min())
    idle = (room - int(held.sum())) / float(held.mean())
    slots = ceil(sum(waves_of(program, machine))) * machine.limits.sms
    tiles = sum(kernel.blocks for kernel in program.kernels)
    return numbers(printed, idle, baseline=slots - tiles, note="SM time held by no block, in tiles", digits=2)


def _fig1_waits(printed: str, policy: str, lab: Lab) -> Answer:
    program, machine, plan = _fig1(lab, policy)
    first, second = program.kernels
    each = first.grid[1] if policy == "tile" else 1
    made = lab.finished(program, machine, plan).waits
    return numbers(printed, made, baseline=second.blocks * each, note="the rival: consumer tiles x waits of each")


def _utilisation(row: Mapping[str, Any], lab: Lab) -> Answer:
    program = lab.workload(MLP, GPU, row["m"]).program
    return _working(row["percent"], (_alone(program, 1),), lab)


def _table1_utilisation(row: Mapping[str, Any], lab: Lab) -> Answer:
    program = lab.workload(MLP, GPU, row["m"]).program
    return _working(row["utilisation"], tuple(_alone(program, place) for place in range(2)), lab)


def _working(printed: str, programs: tuple[Program, ...], lab: Lab) -> Answer:
    """Working SM time of kernels that run alone, against waves / ceil(waves)."""
    machine = lab.machine(GPU)
    shares = [lab.shares(program, machine, Plan()).working_pct for program in programs]
    waves = [wave for program in programs for wave in waves_of(program, machine)]
    closed = 100 * mean(wave / ceil(round(wave, 9)) for wave in waves)
    why = "blocks of the last wave share an SM with fewer others and end sooner, which waves / ceil(waves) leaves out"
    return numbers(
        printed, mean(shares), baseline=closed, low=min(shares) - NEAR_POINTS, high=max(shares) + NEAR_POINTS,
        points=True, why=why if mean(shares) > closed else "", note="working SM time of the kernel simulated alone",
    )  # fmt: skip


def _alone(program: Program, place: int) -> Program:
    """One kernel of a program, its operands taken as given."""
    kernel = program.kernels[place]
    return Program((kernel,), program.buffers, name=f"{program.name} {kernel.name}")


def _grids(row: Mapping[str, Any], lab: Lab) -> Answer:
    return words(row["grids"], grid_text(lab.workload(MLP, GPU, row["m"]).program))


def _blocks_per_sm(row: Mapping[str, Any], lab: Lab) -> Answer:
    kernels = lab.workload(MLP, GPU, row["m"]).program.kernels
    found = [kernel_occupancy(kernel, lab.machine(GPU)).blocks_per_sm for kernel in kernels]
    note = "registers of a block are assumed so that Table I holds; no occupancy is published otherwise"
    return numbers(row["blocks_per_sm"], mean(found), low=min(found), high=max(found), note=note)


def _waves(row: Mapping[str, Any], lab: Lab) -> Answer:
    waves = waves_of(lab.workload(MLP, GPU, row["m"]).program, lab.machine(GPU))
    return numbers(row["waves"], mean(waves), low=min(waves), high=max(waves), digits=2)
