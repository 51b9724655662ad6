"""Inputs that would fill the memory, and files whose numbers are impossible: exit 2 with the file's name."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Call = Callable[..., Result]

TALL = """\
schema = "cusim.program/1"
[[kernel]]
name = "up"
gemm = { m = 5000, n = 64, k = 64 }
tile = "1x64x64"
block = { threads = 128, registers = 32, shared_kib = 64 }
[[kernel]]
name = "down"
gemm = { m = 5000, n = 64, k = 64 }
a = "up"
tile = "5000x64x64"
block = { threads = 128, registers = 32, shared_kib = 64 }
"""
MEASURED = """\
[[kernel]]
name = "{name}"
grid = [2, 2]
block = {{ threads = 128, registers = 32, shared_kib = 0 }}
time_us = 5
measured_on = "{machine}"
"""


def test_a_policy_with_too_many_waits_is_left_out_and_the_others_are_answered(call: Call, tmp_path: Path) -> None:
    (tmp_path / "tall.toml").write_text(TALL, encoding="utf-8")
    done = call("predict", "tall.toml")
    assert done.exit_code == 0
    assert "left out --policy tile" in done.stderr
    assert {"stream", "row", "batched:2"} <= {line.split()[0] for line in done.stdout.splitlines() if line}
    alone = call("predict", "tall.toml", "--policy", "tile")
    assert (alone.exit_code, alone.stdout) == (2, "")
    assert "5000 semaphores of up one by one, at most 4096" in alone.stderr


def test_show_of_a_policy_with_too_many_waits(call: Call, tmp_path: Path) -> None:
    (tmp_path / "tall.toml").write_text(TALL, encoding="utf-8")
    done = call("show", "tall.toml")
    assert done.exit_code == 0
    cells = [line.split() for line in done.stdout.splitlines() if line.startswith("up>down")]
    assert [(row[2], row[4]) for row in cells] == [("row", "5000"), ("tile", "-"), ("batched:2", "2500")]


@pytest.mark.parametrize("verb", ["show", "predict"])
def test_every_unknown_machine_that_a_time_was_measured_on_is_named(call: Call, tmp_path: Path, verb: str) -> None:
    kernels = (MEASURED.format(name=name, machine=on) for name, on in (("a", "h900"), ("b", "h200"), ("c", "h901")))
    (tmp_path / "times.toml").write_text('schema = "cusim.program/1"\n' + "".join(kernels), encoding="utf-8")
    done = call(verb, "times.toml")
    assert (done.exit_code, done.stdout) == (2, "")
    for said in ("2 errors in times.toml", 'kernel[0].measured_on = "h900"', 'kernel[2].measured_on = "h901"', "h200"):
        assert said in done.stderr


def test_devices_are_no_machines_and_no_programs(call: Call) -> None:
    for words in (("cusync-fig1", "--machine", "/dev/zero"), ("/dev/zero",)):
        done = call("predict", *words)
        assert done.exit_code == 2
        assert "/dev/zero" in done.stderr
        assert "a device, not a file" in done.stderr


def test_standard_input_has_a_limit(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.subject.MOST_TEXT_BYTES", 2**20)
    done = call("predict", "-", stdin=" " * (2**20 + 1))
    assert done.exit_code == 2
    assert "standard input" in done.stderr
    assert "larger than 1 MiB" in done.stderr


def test_a_report_with_impossible_shares_is_named(call: Call, tmp_path: Path) -> None:
    call("predict", "cusync-fig1", "-o", "r.json")
    report = json.loads((tmp_path / "r.json").read_text())
    report["rows"][0]["working_pct"] += 50
    (tmp_path / "r.json").write_text(json.dumps(report))
    done = call("plot", "r.json")
    assert done.exit_code == 2
    assert "in r.json" in done.stderr
    assert "sum to 100 %" in done.stderr


@pytest.mark.parametrize("time", ["1e400", "NaN", "99999999999999999999999"])
def test_a_report_with_an_impossible_time_is_named(call: Call, tmp_path: Path, time: str) -> None:
    call("predict", "cusync-fig1", "-o", "r.json")
    report = json.loads((tmp_path / "r.json").read_text())
    report["rows"][0]["total_ns"] = "here"
    (tmp_path / "r.json").write_text(json.dumps(report).replace('"here"', time))
    done = call("plot", "r.json")
    assert done.exit_code == 2
    assert "in r.json" in done.stderr
    assert "rows[0].total_ns" in done.stderr


@pytest.mark.parametrize("verb", ["show", "plot"])
def test_a_trace_on_more_sms_than_it_says_is_named(call: Call, tmp_path: Path, verb: str) -> None:
    call("run", "cusync-fig1", "-o", "t.csv")
    text = (tmp_path / "t.csv").read_text()
    (tmp_path / "t.csv").write_text(text.replace('"sms": 4,', '"sms": 3,'))
    done = call(verb, "t.csv")
    assert done.exit_code == 2
    assert "in t.csv" in done.stderr
    assert "must be at least 4" in done.stderr


def test_an_order_of_huge_numbers_is_named(call: Call, tmp_path: Path) -> None:
    (tmp_path / "o.json").write_text("[[0, 0], [0, 99999999999999999999999]]")
    done = call("predict", "cusync-fig1", "--policy", "row", "--order", "o.json")
    assert done.exit_code == 2
    assert "o.json: order[1]" in done.stderr
    assert "0 to 2147483647" in done.stderr
