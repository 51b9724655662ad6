"""Recordings are read whole, of the machine's own GPU, and never judged by what was fitted on them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cusim.errors import InputError
from cusim.machine import Calibration, Machine, Used, file_digest
from cusim.recording.rows import Row
from cusim.validate.recorded_validation import predictions_of, validate_recordings
from cusim.validate.recordings import is_recording, load_recordings, same_gpu, seen_tiles, split
from tests.machines import uncalibrated
from tests.recordings import CHAIN, SINGLE, chain_rows, timed, written

MACHINE = uncalibrated()


def fitted_on(path: str, *labels: str, tiles: tuple[str, ...] = ()) -> Machine:
    digest = file_digest(Path(path).read_bytes())
    calibration = Calibration("2026-12-02", (Used(Path(path).name, digest, labels, 1, tiles),))
    return replace(MACHINE, state="calibrated", calibration=calibration)


def test_a_folder_stands_for_its_files(tmp_path: Path) -> None:
    written(tmp_path / "b.csv", [CHAIN])
    written(tmp_path / "a.csv", [SINGLE])
    (tmp_path / "notes.txt").write_text("not a recording", encoding="utf-8")
    assert [r.name for r in load_recordings([str(tmp_path)], MACHINE)] == ["a.csv", "b.csv"]
    assert is_recording(str(tmp_path / "a.csv"))
    assert not is_recording(str(tmp_path / "notes.txt"))
    assert not is_recording("published/gpt3-mlp")


@pytest.mark.parametrize(
    ("recorded", "gpu", "same"),
    [
        ("NVIDIA H200", "H200", True),
        ("Tesla V100-SXM2-16GB", "V100", True),
        ("NVIDIA H100 80GB HBM3", "H100", True),
        ("NVIDIA H200", "H100", False),
        ("NVIDIA GH200 480GB", "H200", False),
    ],
)
def test_gpus_are_told_by_word(recorded: str, gpu: str, same: bool) -> None:
    assert same_gpu(recorded, gpu) is same


def test_everything_wrong_is_told_at_once(tmp_path: Path) -> None:
    good = written(tmp_path / "good.csv", [SINGLE])
    again = written(tmp_path / "again.csv", [SINGLE])
    other = written(tmp_path / "other.csv", [CHAIN], gpu="NVIDIA A100-SXM4-80GB")
    old = tmp_path / "old.csv"
    old.write_text(Path(good).read_text(encoding="utf-8").replace("recording/1", "recording/0"), encoding="utf-8")
    nan = tmp_path / "nan.csv"
    nan.write_text(Path(good).read_text(encoding="utf-8").replace(",9000,", ",nan,"), encoding="utf-8")
    empty = written(tmp_path / "empty.csv", [])
    (tmp_path / "none").mkdir()
    places = [good, again, other, str(old), str(nan), empty, str(tmp_path / "lost.csv"), str(tmp_path / "none")]
    with pytest.raises(InputError) as caught:
        load_recordings(places, MACHINE)
    text = caught.value.text()
    for says in (
        "holds the same bytes as", "NVIDIA A100-SXM4-80GB", "machine h200 is H200", "cusim.recording/1",
        "must be a whole number", "no row of it was measured", "lost.csv", "cannot be read", "has no .csv file",
    ):  # fmt: skip
        assert says in text, says
    assert "good.csv: " not in text


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (replace(SINGLE, total_ns=0), "must be above 0"),
        (replace(SINGLE, samples_ns=(1, 0, 2)), "must be above 0"),
        (replace(SINGLE, total_ns=None), "where there are samples"),
        (replace(SINGLE, samples_ns=()), "where there are samples"),
        (replace(SINGLE, workload="gemm-256x512"), "gemm-MxNxK"),
    ],
)
def test_a_row_that_cannot_be_judged_is_named(tmp_path: Path, row: object, says: str) -> None:
    path = written(tmp_path / "r.csv", [SINGLE, row])  # type: ignore[list-item]
    with pytest.raises(InputError, match=says) as caught:
        load_recordings([path], MACHINE)
    assert "row[1]" in caught.value.text()


def test_the_same_cell_twice_on_one_occasion_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "r.csv", [SINGLE, CHAIN, replace(SINGLE, group="other")])
    with pytest.raises(InputError, match=r"same cell, set and occasion as row\[0\]"):
        load_recordings([path], MACHINE)
    apart = written(tmp_path / "s.csv", [SINGLE, replace(SINGLE, occasion=1)])
    assert len(load_recordings([apart], MACHINE)[0].rows) == 2


@pytest.mark.parametrize(
    "first", ["# cusim.recording/1 {", "# cusim.recording/1 [1]", "# cusim.recording/1 nothing", "group,label"]
)
def test_a_first_line_that_says_nothing_is_refused(tmp_path: Path, first: str) -> None:
    path = Path(written(tmp_path / "r.csv", [SINGLE]))
    path.write_text("\n".join([first, *path.read_text(encoding="utf-8").splitlines()[1:]]), encoding="utf-8")
    with pytest.raises(InputError):
        load_recordings([str(path)], MACHINE)


def test_a_row_with_too_many_cells_is_refused(tmp_path: Path) -> None:
    path = Path(written(tmp_path / "r.csv", [SINGLE]))
    path.write_text(path.read_text(encoding="utf-8").rstrip("\n") + ",more\n", encoding="utf-8")
    with pytest.raises(InputError, match="must have 17 cells"):
        load_recordings([str(path)], MACHINE)


def test_a_machine_is_not_judged_on_what_it_was_fitted_on(tmp_path: Path) -> None:
    path = written(tmp_path / "mine.csv", [SINGLE, CHAIN])
    copy = tmp_path / "renamed.csv"
    copy.write_bytes(Path(path).read_bytes())
    recordings = load_recordings([str(copy)], MACHINE)
    with pytest.raises(InputError, match=r"renamed\.csv: dev rows") as caught:
        split(recordings, fitted_on(path, "calibrate", "dev"))
    assert "calibrate rows" not in caught.value.text()
    judged, fitted = split(recordings, fitted_on(path, "calibrate"))
    assert [item.row.label for item in judged] == ["dev"]
    assert [item.row.label for item in fitted] == ["calibrate"]
    assert len(split(recordings, MACHINE)[0]) == 2


def test_an_edited_copy_of_what_fixed_the_machine_is_refused(tmp_path: Path) -> None:
    first = written(tmp_path / "a.csv", [SINGLE], uuid="ed9b")
    (recording,) = load_recordings([first], MACHINE)
    used = Used("a.csv", recording.digest, ("calibrate",), 1, ("128x128x64",), recording.taken)
    machine = replace(MACHINE, calibration=Calibration("2026-12-02", (used,)))
    copy = load_recordings([written(tmp_path / "b.csv", [replace(SINGLE, label="dev")], uuid="ed9b")], machine)
    with pytest.raises(InputError, match=r"an edited copy of a\.csv"):
        split(copy, machine)
    other = load_recordings([written(tmp_path / "c.csv", [replace(SINGLE, label="dev")], uuid="1234")], machine)
    assert [item.row.label for item in split(other, machine)[0]] == ["dev"]


def test_calibrate_rows_that_fixed_the_machine_are_shown_and_in_no_table(tmp_path: Path) -> None:
    path = written(tmp_path / "mine.csv", [SINGLE, timed(SINGLE, 5000, label="dev")])
    found = validate_recordings(load_recordings([path], MACHINE), fitted_on(path, "calibrate"), workers=1)
    assert [(table.label, table.kind, table.summary.errors.n) for table in found.tables] == [("dev", "single-seen", 1)]
    assert [errors.n for errors in found.fitted.values()] == [1]
    preset = validate_recordings(load_recordings([path], MACHINE), MACHINE, workers=1)
    assert [table.label for table in preset.tables] == ["dev", "calibrate"]
    assert preset.fitted == {}


def test_which_tiles_were_seen(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", [SINGLE, timed(SINGLE, 5000, label="dev", tile="192x192x64")])
    recordings = load_recordings([path], MACHINE)
    assert seen_tiles(recordings, MACHINE)[0] == {"128x128x64"}
    assert seen_tiles(recordings, fitted_on(path, "calibrate"))[0] == {"128x128x64"}
    other = replace(
        MACHINE, calibration=Calibration("2026-12-02", (Used("b.csv", "f" * 12, ("calibrate",), 9, ("64x256x64",)),))
    )
    assert seen_tiles(recordings, other)[0] == {"64x256x64"}
    kinds = [table.kind for table in validate_recordings(recordings, MACHINE, workers=1).tables]
    assert kinds == ["single-unseen", "single-seen"]


def test_progress_is_announced_as_it_comes(tmp_path: Path) -> None:
    rows = [*chain_rows(), replace(CHAIN, policy="cublas-stream", tile="", launch="wait-first")]
    recordings = load_recordings([written(tmp_path / "a.csv", rows)], MACHINE)
    heard: list[str] = []
    found = validate_recordings(recordings, MACHINE, workers=1, watch=heard.append)
    assert len(heard) == predictions_of(recordings)
    assert len(found.by_cublas) == 1


def test_what_is_left_out_is_counted_by_reason(tmp_path: Path) -> None:
    refused = replace(CHAIN, m=384, total_ns=None, low_ns=None, high_ns=None, samples_ns=(), refused="no kernel")
    unknown = replace(CHAIN, workload="gpt5-mlp")
    path = written(tmp_path / "a.csv", [CHAIN, refused, replace(refused, m=512), unknown])
    found = validate_recordings(load_recordings([path], MACHINE), MACHINE, workers=1)
    assert found.refused == {"no kernel": 2}
    ((reason, count),) = found.unpredicted.items()
    assert count == 1
    assert "gpt5-mlp" in reason
    chain = found.tables[0]
    assert (len(chain.rows), chain.summary.errors.n) == (2, 1)


@pytest.mark.parametrize(
    ("row", "meta", "says"),
    [
        (SINGLE, {"kind": "predicted"}, "must be measured"),
        (SINGLE, {"sms": 66}, "has 132"),
        (replace(SINGLE, total_ns=9001), {}, "must be the median of its samples, 9000"),
        (replace(SINGLE, m=999), {}, "must be gemm-MxNxK, and m M"),
        (replace(SINGLE, split_k="x"), {}, "slices of k such as 2"),
        (replace(CHAIN, workload="chain-1x2"), {}, "must be chain-NxKxN"),
        (replace(CHAIN, workload="chain-axbxc"), {}, "must be chain-NxKxN"),
    ],
)
def test_what_no_gpu_measured_is_refused_by_name(tmp_path: Path, row: Row, meta: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        load_recordings([written(tmp_path / "a.csv", [row], **meta)], MACHINE)


@pytest.mark.parametrize("number", ["1" + "0" * 400, "1_8", "\u0661\u0668", "-5", "nan", "1.5"])
def test_a_time_is_a_plain_whole_number(tmp_path: Path, number: str) -> None:
    path = Path(written(tmp_path / "a.csv", [SINGLE]))
    path.write_text(path.read_text(encoding="utf-8").replace(",9000,", f",{number},"), encoding="utf-8")
    with pytest.raises(InputError, match="must be a whole number, 0 or more"):
        load_recordings([str(path)], MACHINE)


@pytest.mark.parametrize("first", ['{"gpu": "NVIDIA H200", "repeats": NaN, "rows": 1}', "[" * 100_000])
def test_a_first_line_that_json_lacks_is_refused(tmp_path: Path, first: str) -> None:
    path = Path(written(tmp_path / "a.csv", [SINGLE]))
    body = path.read_text(encoding="utf-8").partition("\n")[2]
    path.write_text(f"# cusim.recording/1 {first}\n{body}", encoding="utf-8")
    with pytest.raises(InputError, match="is not JSON"):
        load_recordings([str(path)], MACHINE)
