"""Recordings and the design they follow."""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from cusim.errors import InputError
from cusim.program.depends import dependences
from cusim.recording.cells import Cell, cell_of, cells_of, program_of
from cusim.recording.rows import Row, read_recording, write_recording

ROOT = Path(__file__).resolve().parents[2]
H200 = ROOT / "traces" / "h200"
ROW = Row(
    "chain", "dev", "gpt3-mlp", 768, "128x256x64", "1", "row", "group:2", "default", "wait-first", 0,
    350, 340, 360, (340, 350, 360), 1,
)  # fmt: skip


CELL = Cell("g", "dev", "", 640, "128x256x64", "1", "wait-first", "row", "group:2", None)


@pytest.fixture(scope="module")
def cells() -> list[Cell]:
    return cells_of(tomllib.loads((H200 / "design.toml").read_text(encoding="utf-8")))


def measured(cell: Cell) -> Row:
    """The row that a cell is recorded as."""
    flags = "default" if cell.flags is None else cell.flags
    policy = f"cublas-{cell.cublas}" if cell.cublas else cell.policy
    return replace(
        ROW, group=cell.group, label=cell.label, workload=cell.workload, m=cell.m, tile=cell.tile,
        split_k=cell.split_k, policy=policy, order=cell.order, flags=flags, launch=cell.launch, occasion=cell.occasion,
    )  # fmt: skip


def test_a_recording_comes_back_as_it_was(tmp_path: Path) -> None:
    refused = replace(ROW, total_ns=None, low_ns=None, high_ns=None, samples_ns=(), empty_ns=None, refused="no kernel")
    write_recording(tmp_path / "r.csv", [ROW, refused], {"gpu": "H200"})
    rows, meta = read_recording(tmp_path / "r.csv")
    assert rows == [ROW, refused]
    assert meta == {"gpu": "H200", "rows": 2}


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (lambda text: text.replace("cusim.recording/1", "cusim.trace/1"), "schema"),
        (lambda text: text[: text.rindex("chain")], "the file is cut"),
        (lambda text: text.replace(",350,", ",-350,"), "0 or more"),
        (lambda text: text.replace(",350,", ",nan,"), "whole number"),
        (lambda text: text.replace("chain,dev", "chain,mine"), "calibrate dev sealed"),
        (lambda text: text.replace("total_ns", "time"), "columns"),
    ],
)
def test_a_damaged_recording_is_refused(tmp_path: Path, edit, says: str) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "r.csv"
    write_recording(path, [ROW], {})
    path.write_text(edit(path.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(InputError, match=says):
        read_recording(path)


def test_the_design_crosses_its_axes(cells: list[Cell]) -> None:
    chain = [cell for cell in cells if cell.group == "chain" and not cell.occasion]
    crossed = Counter((cell.workload, cell.m) for cell in chain)
    assert set(crossed.values()) == {9}  # three policies by three orders at every size
    assert len({cell.m for cell in chain}) >= 16
    assert sum(cell.occasion for cell in cells) == len(chain) // 3


def test_every_cell_has_a_program_and_a_plan(cells: list[Cell]) -> None:
    for cell in cells[::7]:
        program, plan = program_of(cell, "h200")
        assert plan.overlapped == (cell.policy != "stream")
        assert all(kernel.reduce == "last_arriver" for kernel in program.kernels) == (cell.split_k != "1")


@pytest.mark.parametrize("design", ["design.toml", "design-2.toml", "design-sealed.toml"])
def test_every_designed_cell_comes_back_from_the_row_that_it_is_recorded_as(design: str) -> None:
    found = cells_of(tomllib.loads((H200 / design).read_text(encoding="utf-8")))
    assert [cell_of(measured(cell)) for cell in found] == found


def test_a_chain_is_two_products_of_which_the_second_reads_the_first() -> None:
    """``chain-NxKxN2``: M x N x K with GeLU behind it, then M x N2 x N."""
    program, plan = program_of(replace(CELL, workload="chain-5120x4096x1024"), "h200")
    up, down = (kernel.gemm for kernel in program.kernels)
    assert up is not None
    assert down is not None
    assert (up.m, up.n, up.k, up.epilogue) == (640, 5120, 4096, "gelu")
    assert (down.m, down.n, down.k, down.epilogue) == (640, 1024, 5120, "none")
    assert [dep.name for dep in dependences(program)] == ["up>down"]
    assert plan.overlapped


def test_a_product_of_two_halves_reads_an_operand_twice_as_wide() -> None:
    cell = replace(CELL, workload="swiglu-640x4096x2816", gemm=(640, 4096, 2816), prologue="swiglu", policy="stream")
    program, _ = program_of(cell, "h200")
    plain, _ = program_of(replace(cell, workload="gemm-640x4096x2816", prologue="none"), "h200")
    assert program.kernels[0].gemm is not None
    assert program.kernels[0].gemm.prologue == "swiglu"
    assert (program.buffer("only.a").cols, plain.buffer("only.a").cols) == (2 * 2816, 2816)


def test_a_tile_that_no_block_holds_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="256x256x64"):
        program_of(replace(CELL, workload="chain-5120x4096x1024", tile="256x256x64"), "h200")
