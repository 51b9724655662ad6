"""The sealed set: predicted and committed before it was recorded, and in nothing that the model learnt from."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import tomllib
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import cusim
from cusim.machine import Machine, file_digest
from cusim.recording.cells import Cell, cells_of, program_of
from cusim.recording.rows import Row, read_recording

H200 = Path(__file__).resolve().parents[2] / "traces" / "h200"
PREDICTIONS = H200 / "predictions" / "sealed.csv"
SEALED = ("sealed-1.csv", "sealed-2.csv")
OPEN = ("occasion-1.csv", "occasion-2.csv", "occasion-3.csv")
SIZES = {320, 704, 960, 1408, 1664, 2304, 3584}
#: Stream order at sizes of the dev set, measured anew beside PDL with semaphores to be what its gains are against.
BASELINES = "sealed-pdl-base"

Key = tuple[str, int, str, str, str, str, str, str]


def key_of(cell: Cell | Row) -> Key:
    """What tells one cell from another, whatever its group, set and occasion."""
    split, flags = cell.split_k, cell.flags or "default"
    return cell.workload, cell.m, cell.tile, split, cell.policy, cell.order, flags, cell.launch


def design(name: str) -> list[Cell]:
    return cells_of(tomllib.loads((H200 / name).read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def cells() -> list[Cell]:
    return design("design-sealed.toml")


@pytest.fixture(scope="module")
def machine() -> Machine:
    return cusim.load_machine("h200")


@pytest.fixture(scope="module")
def head() -> dict[str, Any]:
    """What the predictions' first line says of them."""
    mark, _, text = PREDICTIONS.read_text(encoding="utf-8").partition("\n")[0].partition("{")
    assert mark == "# cusim.predictions/1 "
    found: dict[str, Any] = json.loads("{" + text)
    return found


@pytest.fixture(scope="module")
def predicted(head: dict[str, Any]) -> dict[Key, int]:
    """The written predictions, ns; each cell once."""
    rows = list(csv.DictReader(PREDICTIONS.read_text(encoding="utf-8").splitlines()[1:]))
    found: dict[Key, int] = {}
    for row in rows:
        names = ("tile", "split_k", "policy", "order", "flags", "launch")
        tile, split, policy, order, flags, launch = (row[name] for name in names)
        found[row["workload"], int(row["m"]), tile, split, policy, order, flags, launch] = int(row["predicted_ns"])
    assert len(found) == len(rows) == head["rows"]
    return found


def test_every_sealed_cell_was_predicted_once_and_nothing_else(cells: list[Cell], predicted: dict[Key, int]) -> None:
    assert Counter(map(key_of, cells)) == Counter(predicted.keys())
    assert min(predicted.values()) > 0


def test_the_sealed_set_is_as_wide_as_it_was_promised(cells: list[Cell]) -> None:
    assert {cell.m for cell in cells if cell.group == "sealed-m"} == SIZES
    assert {cell.tile for cell in cells if cell.group.endswith("-tile")} == {"64x256x64"}
    assert {(cell.launch, cell.policy) for cell in cells if cell.group == "sealed-pdl"} == {
        ("pdl", "row"),
        ("pdl", "tile"),
    }
    assert len({cell.workload for cell in cells if cell.workload.startswith("chain-")}) == 2
    assert {cell.label for cell in cells} == {"sealed"}


@pytest.mark.parametrize("name", SEALED)
def test_every_recorded_row_is_a_sealed_cell_that_was_predicted(name: str, predicted: dict[Key, int]) -> None:
    rows, _ = read_recording(H200 / name)
    assert {row.label for row in rows} == {"sealed"}
    assert Counter(map(key_of, rows)) == Counter(predicted.keys())


def test_predictions_were_made_before_anything_was_recorded(head: dict[str, Any]) -> None:
    made = datetime.fromisoformat(head["date"])
    for name in SEALED:
        assert made < datetime.fromisoformat(read_recording(H200 / name)[1]["date"])


def test_model_predictions_and_recordings_were_committed_in_this_order(head: dict[str, Any], root: Path) -> None:
    def git(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)

    def added(path: Path) -> str:
        """The commit that brought the file, under whatever name."""
        found = git("log", "--follow", "--diff-filter=A", "--format=%H", "--", str(path.relative_to(root)))
        return found.stdout.split()[-1]

    def before(earlier: str, later: str) -> bool:
        return earlier != later and git("merge-base", "--is-ancestor", earlier, later).returncode == 0

    if shutil.which("git") is None or git("cat-file", "-e", head["commit"]).returncode:
        pytest.skip("the history is not here")
    design_at, predictions_at = added(H200 / head["design"]), added(PREDICTIONS)
    assert before(design_at, predictions_at)
    assert before(head["commit"], predictions_at)
    for name in SEALED:
        assert before(predictions_at, added(H200 / name))


def test_the_model_still_says_what_it_said_then(
    cells: list[Cell], predicted: dict[Key, int], head: dict[str, Any], machine: Machine
) -> None:
    """A model that changed has seen these cells: they are dev cells then, and others are to be sealed."""
    assert machine.digest == head["machine_digest"]
    groups = {cell.group: cell for cell in cells if cell.m <= 1664}  # the last of each
    assert set(groups) == {cell.group for cell in cells}
    for cell in groups.values():
        program, plan = program_of(cell, "h200")
        result = cusim.predict(program, machine, plan)
        assert isinstance(result, cusim.Prediction)
        assert abs(result.total_ps / 1000 - predicted[key_of(cell)]) <= 1, cell


@pytest.mark.parametrize("name", ["design.toml", "design-2.toml"])
def test_no_open_design_holds_a_sealed_cell(name: str, cells: list[Cell]) -> None:
    held_apart(design(name), cells)


@pytest.mark.parametrize("name", OPEN)
def test_no_open_recording_holds_a_sealed_cell(name: str, cells: list[Cell]) -> None:
    rows, _ = read_recording(H200 / name)
    assert {row.label for row in rows} <= {"calibrate", "dev"}
    held_apart(rows, cells)


def held_apart(seen: list[Cell] | list[Row], cells: list[Cell]) -> None:
    """No size, tile or family that is sealed was seen, nor any sealed cell but the baselines of one family."""
    sealed = {key_of(cell): cell.group for cell in cells}
    for cell in seen:
        assert cell.m not in SIZES
        assert cell.tile != "64x256x64"
        assert not (cell.launch == "pdl" and cell.policy != "stream")
        assert sealed.get(key_of(cell), BASELINES) == BASELINES
    assert not {key_of(cell) for cell in seen if cell.label == "calibrate"} & set(sealed)


def test_the_shipped_machine_was_fitted_on_calibrate_rows_of_these_files_and_nothing_else(machine: Machine) -> None:
    assert machine.state == "calibrated"
    assert machine.calibration is not None
    for used in machine.calibration.recordings:
        assert used.digest == file_digest((H200 / used.file).read_bytes())
        assert used.labels == (("calibrate",) if used.file in OPEN else ("micro-benchmarks",))
        assert "64x256x64" not in used.tiles
