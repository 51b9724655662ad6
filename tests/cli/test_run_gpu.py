"""`cusim run --gpu`: exit codes, refusals and traces, on the device that needs no GPU."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from backend_gpu import checks, detect
from backend_gpu.launch import withheld
from cusim.trace.formats import read_trace

Call = Callable[..., Result]

SMALL = """\
schema = "cusim.program/1"
name = "small"
[[kernel]]
name = "up"
gemm = { m = 96, n = 128, k = 64, dtype = "fp16" }
tile = "32x32x16"
block = { threads = 256, registers = 128, shared_kib = 100 }
[[kernel]]
name = "down"
gemm = { m = 96, n = 160, k = 128, dtype = "fp16" }
a = "up"
tile = "32x32x16"
block = { threads = 256, registers = 128, shared_kib = 100 }
"""
NULL = ("run", "--gpu", "small.toml", "--device", "null", "--repeats", "2")


@pytest.fixture(autouse=True)
def _small(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SMALL, encoding="utf-8")


@pytest.mark.parametrize(
    "options",
    [
        (), ("--policy", "stream"),
        ("--policy", "stream", "--launch", "graph"), ("--policy", "stream", "--launch", "pdl"),
        ("--policy", "tile", "--launch", "pdl", "--flags", "R"), ("--launch", "wait-all", "--order", "column"),
    ],
)  # fmt: skip
def test_a_checked_run_is_measured_and_kept(call: Call, tmp_path: Path, options: tuple[str, ...]) -> None:
    done = call(*NULL, *options, "-o", "out.npz", "--label", "dev")
    assert done.exit_code == 0, done.output
    assert "measured on null device" in done.stdout
    assert "check 1" in done.stdout
    trace = read_trace(tmp_path / "out.npz")
    assert trace.blocks == 27
    assert (trace.meta["kind"], trace.meta["label"]) == ("measured", "dev")
    assert call("show", "out.npz").exit_code == 0
    assert call("plot", "out.npz", "-o", "out.png").exit_code == 0
    assert call("export", "out.npz", "-o", "out.json").exit_code == 0


def test_without_a_gpu_the_answer_is_exit_3_and_what_is_missing(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    absent = detect.Part("CuPy", None, None, "not installed", "install the extra gpu-cu13")
    driver = detect.Part("driver", None, None, "no NVIDIA driver")
    monkeypatch.setattr(detect, "detect", lambda: detect.Gpu(driver, (), absent, absent))
    done = call("run", "--gpu", "small.toml", "--policy", "row", "-o", "out.npz")
    assert (done.exit_code, done.stdout) == (3, "")
    assert "no NVIDIA driver" in done.stderr
    assert "install the extra gpu-cu13" in done.stderr


def test_a_plan_that_can_hang_is_refused_before_it_is_launched(call: Call) -> None:
    done = call("run", "--gpu", "gpt3-mlp", "--m", "768", "--policy", "row", "--launch", "none", "--device", "null")
    assert done.exit_code == 2
    assert "can deadlock: down may come first" in done.stderr


def test_wrong_numbers_are_exit_1_and_no_time(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backend_gpu.checks.tolerance", lambda kernel: 1e-9)
    done = call(*NULL, "-o", "out.npz")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "the numbers are wrong, so no time is given" in done.stderr
    assert not (tmp_path / "out.npz").exists()
    assert call(*NULL, "--no-check").exit_code == 0


def test_a_deadlock_is_exit_5_and_names_the_semaphore(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    import backend_gpu.bench as bench

    steps = bench.steps_of
    monkeypatch.setattr(bench, "steps_of", lambda program, plan: withheld(steps(program, plan), 0))
    done = call(*NULL)
    assert done.exit_code == 5
    assert "never ends: given up after 1000 ms" in done.stdout
    assert "Deadlocked: block 0 of down waits for semaphore 0 of up>down" in done.stdout


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--set", "machine.sms=8"), "a GPU is as it is"),
        (("--dispatch", "random"), "a GPU is as it is"),
        (("--policy", "row,tile"), "run takes one plan, 2 values were given"),
        (("--launch", "pdl,none"), "run takes one plan, 2 values were given"),
        (("--launch", "stream"), "an overlapped plan has no stream order"),
        (("--policy", "row", "--launch", "graph"), "an overlapped plan has no stream order"),
        (("--launch", "later"), "did you mean wait-first|allowed: graph none"),
        (("-o", "out.txt"), "unknown suffix"),
        (("--repeats", "0"), "--repeats"),
    ],
)
def test_what_makes_no_sense_is_exit_2(call: Call, options: tuple[str, ...], why: str) -> None:
    done = call(*NULL, *options)
    assert done.exit_code == 2, done.output
    assert any(part in done.stderr for part in why.split("|"))


@pytest.mark.parametrize("option", [("--device", "null"), ("--repeats", "3"), ("--no-check",), ("--label", "x")])
def test_options_of_a_device_need_gpu(call: Call, option: tuple[str, ...]) -> None:
    done = call("run", "small.toml", *option)
    assert done.exit_code == 2
    assert "give --gpu too" in done.stderr


def test_an_unsound_policy_is_refused_with_the_tile(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    import cusim.policies.registry as registry

    build: Any = registry.build_plan

    def planted(program: Any, **words: Any) -> Any:
        plan = build(program, **words)
        return replace(checks.plant(plan, "missing wait"), label="row")

    monkeypatch.setattr(registry, "build_plan", planted)
    done = call(*NULL)
    assert done.exit_code == 2
    assert "unsound at tile (0, 0, 0): step 0 reads tile (0, 0), which no wait covers" in done.stderr
