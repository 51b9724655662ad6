"""``cusim validate --machine M RECORDING``: forms, gates and their exit code, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click.testing
import pytest

from cusim.machine import Calibration, Used, file_digest, load_machine
from cusim.machine.write import machine_to_toml
from tests.recordings import CHAIN, SINGLE, chain_rows, written

Call = Callable[..., click.testing.Result]
GATE = 'schema = "cusim.gate/1"\n[[gate]]\nset = "dev"\nkind = "chain"\nmetric = "mape_pct"\nat_most = {}\n'


@pytest.fixture
def recorded(tmp_path: Path) -> str:
    rows = [*chain_rows(1.05), SINGLE, replace(CHAIN, policy="cublas-graph", tile="", order="row")]
    written(tmp_path / "a.csv", rows)
    return "a.csv"


def test_the_report(call: Call, recorded: str) -> None:
    done = call("validate", "--machine", "h200", recorded)
    assert done.exit_code == 0, done.output
    for words in (
        f"h200 (H200; {load_machine('h200').state}", "14 rows", "what another occasion would add is not known",
        "1 cells run by cuBLAS", "dev: times", "dev: choices", "by policy", "most wrong", "calibrate: times",
        "no-gain", "best-fixed (", "constant", "0 of 2 choices read on another occasion",
    ):  # fmt: skip
        assert words in done.stdout, words
    assert "dev chain: rows" not in done.stdout
    assert "dev chain: rows" in call("validate", "--machine", "h200", recorded, "--rows").stdout


def test_the_document(call: Call, recorded: str, tmp_path: Path) -> None:
    done = call("validate", "--machine", "h200", ".", "--json", "-q")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["schema"] == "cusim.validate/1"
    assert {label: list(kinds) for label, kinds in found["tables"].items()} == {
        "dev": ["chain", "chain-any-tile"],
        "calibrate": ["single-seen"],
    }
    chain = found["tables"]["dev"]["chain"]
    assert {"rows", "summary", "rivals", "by_policy", "worst"} <= set(chain)
    assert chain["summary"]["bias_pct"] == pytest.approx(100 * (1 / 1.05 - 1), abs=0.05)
    first = chain["rows"][0]
    assert (first["workload"], first["policy"], first["gain_measured_pct"]) == ("gpt3-mlp", "stream", None)
    assert isinstance(chain["rows"][3]["gain_predicted_pct"], float)
    assert found["recordings"][0]["digest"] == file_digest((tmp_path / recorded).read_bytes())
    assert len(found["context"]) == 1
    assert found["noise"]["between_pct"] is None


@pytest.mark.parametrize(("name", "starts"), [("v.md", "**h200"), ("v.json", "{"), ("v.txt", "h200")])
def test_a_file_is_written_whole(call: Call, recorded: str, tmp_path: Path, name: str, starts: str) -> None:
    done = call("validate", "--machine", "h200", recorded, "-o", name)
    assert done.exit_code == 0, done.output
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(starts)


def test_a_gate_that_is_missed_is_exit_code_4(call: Call, recorded: str, tmp_path: Path) -> None:
    (tmp_path / "gates.toml").write_text(GATE.format(2.0), encoding="utf-8")
    done = call("validate", "--machine", "h200", recorded, "--gate", "gates.toml", "-q")
    assert done.exit_code == 4
    assert "gate missed: dev chain mape_pct at most 2; reached" in " ".join(done.stderr.split())
    assert "gates: 0 of 1 met" in done.stdout
    (tmp_path / "gates.toml").write_text(GATE.format(6.0), encoding="utf-8")
    done = call("validate", "--machine", "h200", recorded, "--gate", "gates.toml", "--json", "-q")
    assert (done.exit_code, done.stderr) == (0, "")
    assert json.loads(done.stdout)["gates"][0]["met"] is True


def test_a_what_if_machine_is_judged_as_it_is(call: Call, recorded: str) -> None:
    done = call("validate", "--machine", "h200", "--set", "machine.sms=22", recorded, "--json", "-q")
    found = json.loads(done.stdout)
    assert found["machine"]["overrides"] == ["machine.sms=22"]
    assert found["tables"]["dev"]["chain"]["summary"]["bias_pct"] > 20


def test_a_machine_that_lists_the_recording_is_refused(call: Call, recorded: str, tmp_path: Path) -> None:
    digest = file_digest((tmp_path / recorded).read_bytes())
    for labels, code in ((("calibrate",), 0), (("calibrate", "dev"), 2)):
        calibration = Calibration("2026-12-02", (Used("elsewhere.csv", digest, labels, 1),))
        machine = replace(load_machine("h200"), name="h200", state="calibrated", calibration=calibration)
        (tmp_path / "mine.toml").write_text(machine_to_toml(machine), encoding="utf-8")
        done = call("validate", "--machine", "mine.toml", recorded)
        assert done.exit_code == code, done.output
        if code:
            assert "a.csv: dev rows" in done.stderr
            assert done.stdout == ""
        else:
            assert "fitted on, not judged: 1 calibrate rows of a.csv" in done.stdout
            assert "calibrate: times" not in done.stdout


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("a.csv",), "--machine"),
        ((".",), "--machine"),
        (("--machine", "h200"), "Name recordings"),
        (("--machine", "h200", "published/gpt3-mlp"), "cannot be read"),
        (("--machine", "h100", "a.csv"), "machine h100 is H100"),
        (("--machine", "h2000", "a.csv"), "did you mean h200?"),
        (("--machine", "h200", "--set", "machine.sm=1", "a.csv"), "machine.sm"),
        (("--machine", "h200", "a.csv", "a.csv"), "the same bytes"),
        (("--machine", "h200", "nan.csv"), "must be a whole number"),
        (("--machine", "h200", "minus.csv"), "must be a whole number"),
        (("--machine", "h200", "other.csv"), "cusim.recording/1"),
        (("--machine", "h200", "a.csv", "--gate", "gates.toml"), "did you mean mape_pct?"),
        (("--machine", "h200", "a.csv", "-o", "v.csv"), "unknown suffix"),
        (("published/gpt3-mlp", "--gate", "gates.toml"), "for recordings"),
        (("published/gpt3-mlp", "published/gpt3-mlp"), "Name one set"),
    ],
)
def test_bad_input_is_exit_code_2(call: Call, recorded: str, tmp_path: Path, args: tuple[str, ...], says: str) -> None:
    text = (tmp_path / recorded).read_text(encoding="utf-8")
    (tmp_path / "nan.csv").write_text(text.replace(",9000,", ",nan,"), encoding="utf-8")
    (tmp_path / "minus.csv").write_text(text.replace(",9000,", ",-9000,"), encoding="utf-8")
    (tmp_path / "other.csv").write_text(text.replace("recording/1", "recording/2"), encoding="utf-8")
    (tmp_path / "gates.toml").write_text(GATE.format(1.0).replace("mape_pct", "mape"), encoding="utf-8")
    done = call("validate", *args)
    assert done.exit_code == 2, done.output
    assert says in done.stderr
    assert done.stdout == ""


def test_a_recording_is_not_written_over(call: Call, recorded: str, tmp_path: Path) -> None:
    before = (tmp_path / recorded).read_bytes()
    done = call("validate", "--machine", "h200", recorded, "--json", "-o", recorded)
    assert done.exit_code == 2
    assert "is read by this command" in done.stderr
    assert (tmp_path / recorded).read_bytes() == before
