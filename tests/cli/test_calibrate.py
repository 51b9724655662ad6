"""`cusim calibrate`: what it prints, writes, warns of and refuses."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from cusim.calibrate.fixed import Fixed, with_fixed
from cusim.machine import Machine, load_machine
from cusim.machine.write import machine_to_toml
from cusim.recording.rows import Row, write_recording
from cusim.validate.recorded import predict_rows

Call = Callable[..., Result]

H200 = {"gpu": "NVIDIA H200", "sms": 132, "kind": "measured"}
ROW = Row(
    "single", "calibrate", "gemm-256x512x256", 256, "128x128x64", "1", "stream", "row", "default", "wait-first", 0,
    None, None, None, (), 1,
)  # fmt: skip
#: Two parameters are fitted, to keep it quick.
FIT = ("--machine", "base.toml", "--fit", "rates.tensor_efficiency,block.prologue_ps")


def base() -> Machine:
    """An H200 that nobody calibrated, its numbers those of this file."""
    known = {"rates.tensor_efficiency": 0.8, "block.prologue_ps": 2_000_000, "launch.event_ps": 1_660_000}
    fixed = [Fixed(path, value, None, "", "given", "", "extrapolated") for path, value in known.items()]
    return replace(with_fixed(load_machine("h200"), fixed), state="preset", calibration=None)


def timed(rows: list[Row], factor: float = 1.0) -> list[Row]:
    """The rows with *factor* times what the base predicts."""
    predicted = predict_rows(rows, base(), workers=1)
    times = [round((ps or 0) * factor / 1000) for ps in predicted]
    return [replace(r, total_ns=ns, low_ns=ns, high_ns=ns, samples_ns=(ns,)) for r, ns in zip(rows, times, strict=True)]


def products(label: str = "calibrate", order: str = "row") -> list[Row]:
    sizes = [(m, k) for m in (128, 256, 1024) for k in (256, 1024, 4096)]
    return [replace(ROW, workload=f"gemm-{m}x512x{k}", m=m, label=label, order=order) for m, k in sizes]


@pytest.fixture
def recording(tmp_path: Path) -> str:
    """Nine calibrate rows, 20 % slower than the base, three dev rows, and two sealed ones; the base in base.toml."""
    (tmp_path / "base.toml").write_text(machine_to_toml(base()), encoding="utf-8")
    rows = [*products(), *products("dev", "column")[:3], *products("sealed", "group:2")[:2]]
    write_recording(tmp_path / "r.csv", timed(rows, 1.2), H200)
    return "r.csv"


@pytest.fixture
def micro(tmp_path: Path) -> str:
    document = {
        "schema": "cusim.micro/1", "provenance": H200, "tables": {},
        "quantities": {"gap_event": {"unit": "ns", "how": "", "samples": [1700, 1710, 1720, 1730, 1740]}},
    }  # fmt: skip
    (tmp_path / "micro.json").write_text(json.dumps(document), encoding="utf-8")
    return "micro.json"


def test_a_machine_is_made_and_predicts(call: Call, tmp_path: Path, recording: str, micro: str) -> None:
    done = call("calibrate", recording, "--micro", micro, *FIT, "-o", "mine.toml")
    assert done.exit_code == 0
    machine = load_machine(tmp_path / "mine.toml")
    assert machine.state == "calibrated"
    assert machine.launch.event_ps == 1_720_000
    assert machine.rates.tensor_efficiency < 0.75
    lines = done.stdout.splitlines()
    assert lines[0].startswith("h200: H200, 132 SMs   (calibrated: times ±")
    event = next(line for line in lines if line.startswith("launch.event_ps")).split()
    assert event[1:] == ["1.66", "1.72", "0.01", "us", "gap_event"]
    every = next(line for line in lines if line.startswith("all ")).split()
    assert every[1] == "9"
    assert float(every[3]) < 2 < 10 < float(every[2])
    assert "wrote mine.toml" in done.stderr
    assert "r.csv: 2 sealed rows were ignored" in " ".join(done.stderr.split())
    assert "calibrated" in call("predict", "cusync-fig1", "--machine", "mine.toml").stdout.splitlines()[0]


def test_the_same_as_json(call: Call, recording: str, micro: str) -> None:
    done = call("calibrate", recording, "--micro", micro, *FIT, "--json", "-q")
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert found["schema"] == "cusim.calibrate/1"
    rows = {row["path"]: row for row in found["parameters"]}
    assert set(rows) == {"launch.event_ps", "rates.tensor_efficiency", "block.prologue_ps"}
    assert rows["launch.event_ps"]["after"] == 1.72
    assert found["calibrate"][-1]["tile"] == "all"
    assert found["dev"]["rows"] == 3
    assert found["machine"]["state"] == "calibrated"
    assert any("sealed" in warning for warning in found["warnings"])


def test_nothing_is_written_where_nothing_was_asked_for(call: Call, tmp_path: Path, recording: str) -> None:
    done = call("calibrate", recording, *FIT)
    assert "the machine was not kept" in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {recording, "base.toml"}


def damaged(path: Path, *edits: tuple[str, str]) -> str:
    text = path.read_text(encoding="utf-8")
    for before, after in edits:
        assert before in text
        text = text.replace(before, after)
    (path.parent / "bad.csv").write_text(text, encoding="utf-8")
    return "bad.csv"


@pytest.mark.parametrize(
    ("edits", "says"),
    [
        ([("NVIDIA H200", "NVIDIA A100-SXM4-80GB")], "A100"),
        ([("cusim.recording/1", "cusim.recording/2")], "cusim.recording/1"),
        ([('"measured"', '"predicted"')], "must be measured"),
        ([("wait-first,0,", "wait-first,0,-")], "0 or more"),
        ([("wait-first,0,", "wait-first,0,nan")], "whole number"),
    ],
)
def test_a_recording_that_cannot_be_used_is_refused(
    call: Call, tmp_path: Path, recording: str, edits: list[tuple[str, str]], says: str
) -> None:
    bad = damaged(tmp_path / recording, *edits)
    done = call("calibrate", recording, bad, *FIT, "-o", "mine.toml")
    assert done.exit_code == 2
    assert says in done.stderr
    assert "nothing was run" in done.stderr
    assert not (tmp_path / "mine.toml").exists()


def test_a_recording_without_calibrate_rows_is_refused(call: Call, tmp_path: Path) -> None:
    write_recording(tmp_path / "dev.csv", timed(products("dev")), H200)
    done = call("calibrate", "dev.csv")
    assert done.exit_code == 2
    assert "no row is labelled calibrate" in done.stderr


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((), "Name a recording"),
        (("absent.csv",), "absent.csv"),
        (("r.csv", "r.csv"), "same bytes"),
        (("r.csv", "--micro", "absent.json"), "absent.json: file"),
        (("r.csv", "--measure"), "--measure needs one --micro FILE"),
        (("r.csv", "--machine", "h100"), "H200"),
        (("r.csv", "--fit", "block.prolog"), "did you mean block.prologue_ps"),
        (("r.csv", "-o", "mine.csv"), "unknown suffix"),
        (("r.csv",), "9 rows are too few for"),
    ],
)
def test_bad_input_is_told(call: Call, recording: str, args: tuple[str, ...], says: str) -> None:
    done = call("calibrate", *args)
    assert done.exit_code == 2
    assert says in done.stderr


def test_measuring_without_a_gpu_is_exit_3(call: Call, recording: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.calibrating.gpu_advice", lambda instead: f"no usable GPU, nothing was run. {instead}")
    done = call("calibrate", recording, "--measure", "--micro", "taken.json", *FIT)
    assert done.exit_code == 3
    assert "Without --measure" in done.stderr


def test_micro_benchmarks_taken_first_are_kept_and_read(
    call: Call, tmp_path: Path, recording: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from backend_gpu import microbench
    from backend_gpu.micro_record import Findings

    def measure(seconds: float) -> tuple[Findings, dict[str, Any]]:
        found = Findings()
        found.add("gap_event", "ns", "how", [1800.0, 1810.0, 1820.0])
        found.dropped["timer"] = "no luck"
        return found, dict(H200)

    monkeypatch.setattr("cli.calibrating.gpu_advice", lambda instead: "")
    monkeypatch.setattr(microbench, "measure", measure)
    done = call("calibrate", recording, "--measure", "--micro", "taken.json", *FIT, "-o", "mine.toml")
    assert done.exit_code == 0
    assert load_machine(tmp_path / "mine.toml").launch.event_ps == 1_810_000
    assert json.loads((tmp_path / "taken.json").read_text())["quantities"]["gap_event"]["median"] == 1810
    assert "not measured: timer (no luck)" in done.stderr


def test_without_scipy_the_extra_is_named(call: Call, recording: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    done = call("calibrate", recording, *FIT)
    assert done.exit_code == 2
    assert "cusim-tiles[calibrate]" in done.stderr


def test_diff_tells_value_change_error_and_status(call: Call, recording: str, micro: str) -> None:
    call("calibrate", recording, "--micro", micro, *FIT, "-o", "mine.toml", "-q")
    lines = call("show", "base.toml", "--diff", "mine.toml").stdout.splitlines()
    assert lines[0].startswith("h200 preset: ")
    assert lines[1].startswith("h200 calibrated: ")
    keys = [line.split()[0] for line in lines[4:] if "." in line.split(" ")[0]]
    assert keys == ["rates.tensor_efficiency", "block.prologue_ps", "launch.event_ps"]
    event = next(line for line in lines if line.startswith("launch.event_ps")).split()
    assert event == [
        "launch.event_ps",
        "1.66",
        "us",
        "1.72",
        "us",
        "0.01",
        "+3.6",
        "%",
        "extrapolated",
        "/",
        "measured",
    ]
