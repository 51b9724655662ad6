"""The kernels' own sources on the emulated machine: right on every schedule tried, wrong when a fault is planted."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backend_gpu.abi import PARAMS, STAMPS, FaultKind, KernelFlag
from cusim.policies.plan import Plan
from cusim.policies.registry import build_plan
from cusim.program.build import gemm_kernel
from cusim.program.kernel import BlockResources, Gemm
from cusim.program.program import Program
from tests.emu.emulator import Case, Launch, Library, Machine, fault_of, from_words, semaphores, shape, to_words, totals

BLOCK = BlockResources(384, 168, 1024)
TICKETED, REORDER, NO_WAIT = int(KernelFlag.TICKETED), int(KernelFlag.REORDER), int(KernelFlag.NO_WAIT)
WGMMA, MMA = "wgmma", "mma"


def single(gemm: Gemm, rows: int, cols: int, split: int = 1) -> tuple[Program, Plan]:
    kernel, buffers = gemm_kernel("up", gemm, (rows, cols, 64), BLOCK, split_k=split)
    program = Program((kernel,), buffers, name="single")
    return program, build_plan(program, order="group:2")


def chain(policy: str, tile: Any = (64, 64, 64), swiglu: bool = False, split: int = 1) -> tuple[Program, Plan]:
    first, second = Gemm(200, 256, 128), Gemm(200, 96, 128 if swiglu else 256, prologue="swiglu" if swiglu else "none")
    up, buffers = gemm_kernel("up", first, tile, BLOCK, split_k=split)
    down, more = gemm_kernel("down", second, tile, BLOCK, a="up")
    program = Program((up, down), buffers + more, name="chain")
    return program, build_plan(program, policy=policy, order="group:2")


def singles() -> list[Case]:
    """One kernel each: edges in m, n and k, both types, both families, splits, two row blocks a warpgroup."""
    edge, odd = Gemm(130, 100, 200), Gemm(70, 136, 328, "bf16", epilogue="gelu")
    halves = Gemm(130, 72, 200, prologue="swiglu")
    return [
        Case(*single(edge, 64, 64), "up", shape(WGMMA, 64, 64, 3, (1,))),
        Case(*single(edge, 128, 64, 2), "up", shape(WGMMA, 128, 64, 2, (2,))),
        Case(*single(odd, 64, 128, 3), "up", shape(WGMMA, 64, 128, 2, (1,), bf16=True, gelu=True, persistent=True)),
        Case(*single(halves, 128, 64), "up", shape(WGMMA, 128, 64, 2, (1,), swiglu=True)),
        Case(*single(edge, 64, 64), "up", shape(MMA, 64, 64, 3, (32, 32))),
        Case(*single(odd, 64, 128, 3), "up", shape(MMA, 64, 128, 3, (32, 64), bf16=True, gelu=True, persistent=True)),
        Case(*single(halves, 128, 64), "up", shape(MMA, 128, 64, 2, (64, 32), swiglu=True)),
    ]


def chains() -> list[Case]:
    """Producer and consumer of four chains, one after the other."""
    found = []
    for policy, family, persistent, swiglu, split in (
        ("tile", WGMMA, False, False, 1),
        ("row", WGMMA, True, True, 2),
        ("batched:3", WGMMA, False, False, 1),
        ("tile", MMA, False, True, 1),
        ("row", MMA, True, False, 2),
    ):
        program, plan = chain(policy, swiglu=swiglu, split=split)
        part = (1,) if family == WGMMA else (32, 32)
        up = shape(family, 64, 64, 2, part, persistent=persistent)
        down = shape(family, 64, 64, 2, part, persistent=persistent, swiglu=swiglu)
        found += [Case(program, plan, "up", up), Case(program, plan, "down", down)]
    return found


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return Library(tmp_path_factory.mktemp("emulated"), singles() + chains())


def operand(machine: Machine, rows: int, cols: int, dtype: str, seed: int) -> Any:
    """Random numbers in rows of a multiple of 8 elements; what pads a row is NaN."""
    held = machine.guarded((rows, -(-cols // 8) * 8), np.uint16, 0x7FFF)
    held[:, :cols] = to_words(np.random.default_rng(seed).normal(size=(rows, cols)) * 0.4, dtype)
    return held


def wanted(a: Any, b: Any, gemm: Gemm) -> Any:
    left, right = from_words(a, gemm.dtype), from_words(b, gemm.dtype)[:, : gemm.n]
    if gemm.prologue == "swiglu":
        gate, up = left[:, : gemm.k], left[:, gemm.k : 2 * gemm.k]
        left = from_words(to_words(gate / (1 + np.exp(-gate)) * up, gemm.dtype), gemm.dtype)
    found = left[:, : gemm.k].astype(np.float64) @ right
    if gemm.epilogue == "gelu":
        found = 0.5 * found * (1 + np.tanh(0.7978845608 * (found + 0.044715 * found**3)))
    return found


def error_of(launch: Launch, goal: Any) -> float:
    """Relative error; 1 where a number is missing or was stored outside the matrix."""
    found = from_words(launch.c, launch.gemm.dtype)
    if not np.isnan(found[:, launch.gemm.n :]).all():
        return 1.0
    error = float(np.linalg.norm(found[:, : launch.gemm.n] - goal) / np.linalg.norm(goal))
    return 1.0 if np.isnan(error) else error


def run_single(library: Library, number: int, flags: int, *, runs: int = 2, seed: int = 1, late: bool = True) -> float:
    """The worst error over runs of one kernel; 1 for a run that failed."""
    case = library.cases[number]
    machine = Machine(library)
    gemm = case.program.kernels[0].gemm
    assert gemm is not None
    a = operand(machine, gemm.m, gemm.k * (2 if gemm.prologue == "swiglu" else 1), gemm.dtype, 1)
    b = operand(machine, gemm.k, gemm.n, gemm.dtype, 2)
    c = machine.guarded((gemm.m, -(-gemm.n // 8) * 8), np.uint16, 0x7FFF)
    persistent = case.shape.endswith("true>")
    launch = machine.launch(number, a, b, c, flags=flags, grid=2 if persistent else 0)
    worst = 0.0
    for run in range(runs):
        c[...] = 0x7FFF
        launch.partials[...] = np.nan
        failed = machine.run([launch], seed=seed + run, late=late)
        if failed or machine.fault["abort"][0] or not machine.untouched():
            return 1.0
        worst = max(worst, error_of(launch, wanted(a, b, gemm)))
    return worst


def run_chain(
    library: Library, number: int, flags: int = TICKETED, *, runs: int = 2, seed: int = 1, delay: int = 0
) -> float:
    """The worst error over runs of a producer and its consumer side by side, the consumer placed first."""
    up_case, down_case = library.cases[number : number + 2]
    machine = Machine(library)
    up, down = (case.program.kernels[i].gemm for i, case in enumerate((up_case, down_case)))
    assert up is not None
    assert down is not None
    a, b = operand(machine, up.m, up.k, "fp16", 3), operand(machine, up.k, up.n, "fp16", 4)
    d = operand(machine, down.k, down.n, "fp16", 5)
    middle = machine.guarded((up.m, up.n), np.uint16, 0x7FFF)
    c = machine.guarded((down.m, down.n), np.uint16, 0x7FFF)
    held = semaphores(machine, up_case.program, up_case.plan)
    persistent = 2 if up_case.shape.endswith("true>") else 0
    first = machine.launch(number, a, b, middle, flags=flags & ~NO_WAIT, sem_out=held, grid=persistent)
    second = machine.launch(number + 1, middle, d, c, flags=flags, sem_in=held, grid=persistent)
    first.params["delay_max_ns"] = delay
    worst = 0.0
    for run in range(runs):
        middle[...] = c[...] = 0x7FFF
        for launch in (first, second):
            launch.partials[...] = np.nan
        failed = machine.run([second, first], seed=seed + run)
        if failed or machine.fault["abort"][0] or not machine.untouched():
            return 1.0
        middle_goal = wanted(a, b, up)
        worst = max(
            worst, error_of(first, middle_goal), error_of(second, wanted(to_words(middle_goal, "fp16"), d, down))
        )
        posts = zip(held, totals(up_case.program, up_case.plan), strict=True)
        if not all((array == total * int(machine.epoch[0])).all() for array, total in posts):
            return 1.0
    return worst


def test_both_sides_agree_on_the_parameters(library: Library) -> None:
    assert library.calls.emu_params_bytes() == PARAMS.itemsize
    fields = PARAMS.fields
    assert fields is not None
    names = ("sem_in", "arrivals", "stamps", "m", "flags")
    assert [library.calls.emu_offset(i) for i in range(5)] == [fields[name][1] for name in names]


def test_the_sources_build_without_a_warning(library: Library) -> None:
    assert library.warnings == ""


@pytest.mark.parametrize("number", range(7))
@pytest.mark.parametrize("late", [True, False])
def test_products_are_right(library: Library, number: int, late: bool) -> None:
    limit = 6e-3 if "bf16" in str(library.cases[number].program.kernels[0].cost) else 1e-3
    for flags in (TICKETED, REORDER):
        assert run_single(library, number, flags, late=late, seed=7 * flags + 1) < limit


@pytest.mark.parametrize("number", range(7, 17, 2))
@pytest.mark.parametrize("delay", [0, 3000])
def test_chains_wait_for_what_they_read(library: Library, number: int, delay: int) -> None:
    for flags in (TICKETED, REORDER | TICKETED):
        assert run_chain(library, number, flags, delay=delay, seed=11 + flags) < 2e-3


@pytest.mark.parametrize("number", range(7, 17, 2))
def test_a_missing_wait_is_seen(library: Library, number: int) -> None:
    assert run_chain(library, number, TICKETED | NO_WAIT, delay=3000) > 0.1


@pytest.mark.parametrize("number", [8, 14])
def test_a_consumer_without_producer_gives_up_and_says_where(library: Library, number: int) -> None:
    machine = Machine(library)
    case = library.cases[number]
    gemm = case.program.kernels[1].gemm
    assert gemm is not None
    middle = machine.guarded((gemm.m, 256), np.uint16, 0x7FFF)
    c = machine.guarded((gemm.m, gemm.n), np.uint16, 0x7FFF)
    held = semaphores(machine, case.program, case.plan)
    launch = machine.launch(number, middle, operand(machine, gemm.k, gemm.n, "fp16", 1), c, flags=TICKETED, sem_in=held)
    launch.params["spin_budget_ns"] = 20_000
    launch.params["kernel_id"] = 5
    assert machine.run([launch]) is None
    fault = fault_of(machine)
    assert (fault["abort"], fault["kind"], fault["kernel"], fault["slot"]) == (1, FaultKind.SEMAPHORE, 5, 0)
    assert (fault["value"], fault["target"]) == (0, 1)


@pytest.mark.parametrize("number", [7, 13])
def test_stamps_are_in_order(library: Library, number: int) -> None:
    machine = Machine(library)
    gemm = library.cases[number].program.kernels[0].gemm
    assert gemm is not None
    a, b = operand(machine, gemm.m, gemm.k, "fp16", 3), operand(machine, gemm.k, gemm.n, "fp16", 4)
    c = machine.guarded((gemm.m, gemm.n), np.uint16, 0)
    held = semaphores(machine, library.cases[number].program, library.cases[number].plan)
    launch = machine.launch(number, a, b, c, flags=TICKETED, sem_out=held)
    assert machine.run([launch]) is None
    names = ("placed", "ready", "first_load", "end", "posted")
    for before, after in pairwise(names):
        assert (launch.stamps[before] <= launch.stamps[after]).all(), after
    assert sorted(launch.stamps["where"] >> 32) == list(range(launch.grid))
    assert STAMPS.itemsize == 64


WG, MM, SY, SK = "gemm_wgmma.cuh", "gemm_mma.cuh", "sync.cuh", "split_k.cuh"
STORE = "        if (whole) me.store(read_work(room.work + (i & 1) * 32));\n"
STORED = "        barrier_arrive(room.stored);\n"
EMPTY = "barrier_wait(p, room.empty + ahead.at * 8, ahead.parity ^ 1);"
LOAD_B, LOAD_B_TURNED = (
    "w.c * Shape::BN + j * 64, (w.first + step) * Shape::BK)",
    "(w.first + step) * Shape::BK, w.c * Shape::BN + j * 64)",
)
#: name: (case, edits of the sources).
FAULTS: dict[str, tuple[int, list[tuple[str, str, str]]]] = {
    "loads do not wait for the gate": (7, [(WG, "if ((int)(opened - wanted) > 0) break;", "break;")]),
    "loads do not wait for an empty stage": (0, [(WG, EMPTY, "")]),
    "a stage is let go one step early": (0, [(WG, "wgmma_wait<1>();", "wgmma_wait<2>();")]),
    "consumers look at the wrong parity": (0, [(WG, "turn.at * 8, turn.parity)", "turn.at * 8, turn.parity ^ 1)")]),
    "a tile is handed over before it is stored": (7, [(WG, STORED, ""), (WG, STORE, STORED + STORE)]),
    "rows and columns of B are swapped": (0, [(WG, LOAD_B, LOAD_B_TURNED)]),
    "a descriptor's distances are swapped": (
        2,
        [(WG, "Shape::CHUNK, 8 * Shape::LINE)", "8 * Shape::LINE, Shape::CHUNK)")],
    ),
    "halves are joined without a barrier": (3, [(WG, "        part_barrier<128>(2 + group);\n", "")]),
    "slices meet without a barrier": (1, [(SK, "    part_barrier<THREADS>(BARRIER); // all", "    // all")]),
    "arrivals of the run before are forgotten": (1, [(SK, "epoch * (u32)Glue::slices - 1", "(u32)Glue::slices - 1")]),
    "targets are those of the run before": (
        7,
        [(SY, "base_of(epoch, total) + (u32)w.target", "base_of(epoch - 1, total) + (u32)w.target")],
    ),
    "mma: a stage is read one step early": (4, [(MM, "copy_wait<AHEAD - 1>();", "copy_wait<AHEAD>();")]),
    "mma: no barrier between steps": (4, [(MM, "block_barrier(); // the stage is full", "// the stage is full")]),
    "mma: posted before all have stored": (13, [(MM, "bulk copies\n        block_barrier();", "bulk copies\n")]),
}


@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_caught(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.emu.emulator.BUDGET_NS", 300_000)
    number, edits = FAULTS[name]
    cases = (singles() + chains())[number : number + (1 if number < 7 else 2)]
    library = Library(tmp_path, cases, edits)
    run = run_single if number < 7 else run_chain
    errors = [0.0]
    for seed in range(1, 9):
        if errors[-1] > 0.01:
            return
        errors.append(run(library, 0, TICKETED, seed=10 * seed))
    assert errors[-1] > 0.01, f"not noticed: {errors}"
