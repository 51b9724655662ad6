"""Recordings and the design they follow."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path

import pytest

from cusim.errors import InputError
from cusim.recording.cells import Cell, cells_of, program_of
from cusim.recording.rows import Row, read_recording, write_recording

ROOT = Path(__file__).resolve().parents[2]
H200 = ROOT / "traces" / "h200"
SEALED = {320, 704, 960, 1408, 1664, 2304, 3584}
ROW = Row(
    "chain", "dev", "gpt3-mlp", 768, "128x256x64", "1", "row", "group:2", "default", "wait-first", 0,
    350, 340, 360, (340, 350, 360), 1,
)  # fmt: skip


@pytest.fixture(scope="module")
def cells() -> list[Cell]:
    return cells_of(tomllib.loads((H200 / "design.toml").read_text(encoding="utf-8")))


def test_a_recording_comes_back_as_it_was(tmp_path: Path) -> None:
    refused = Row(*ROW.__getstate__()[:11], None, None, None, refused="no kernel")  # type: ignore[index]
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


def test_no_sealed_cell_is_designed_or_recorded(cells: list[Cell]) -> None:
    recorded = [row for name in ("occasion-1.csv", "occasion-2.csv") for row in read_recording(H200 / name)[0]]
    for cell in (*cells, *recorded):
        assert cell.m not in SEALED
        assert cell.tile != "64x256x64"
        assert not (cell.launch == "pdl" and cell.policy != "stream")


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
