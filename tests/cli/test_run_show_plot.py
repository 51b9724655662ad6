"""`cusim run`, `show`, `plot`: traces written, described and drawn."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

from cli.detail import kind_of
from cusim.errors import InputError
from cusim.machine import load_machine
from cusim.machine.unused import UNUSED
from cusim.plot.bars import policy_bars
from cusim.plot.lines import sweep_lines
from cusim.program.toml_read import parse_program
from cusim.trace.formats import read_trace

Call = Callable[..., Result]

RUN = ("run", "cusync-fig1", "--machine", "h200", "--policy", "row")


@pytest.mark.parametrize("suffix", ["npz", "csv"])
def test_run_prints_a_summary_and_writes_its_trace(call: Call, tmp_path: Path, suffix: str) -> None:
    done = call(*RUN, "-o", f"row.{suffix}")
    assert done.exit_code == 0
    assert "plan      row, order row, flags -, launch wait-first" in done.stdout
    assert f"wrote row.{suffix}" in done.stderr
    trace = read_trace(tmp_path / f"row.{suffix}")
    assert trace.kernels == ("c", "e")
    assert trace.blocks == 12
    assert trace.meta["blocks_per_sm"] == {"c": 1, "e": 1}
    assert [path.name for path in tmp_path.iterdir()] == [f"row.{suffix}"]


def test_run_without_output_says_that_nothing_was_kept(call: Call, tmp_path: Path) -> None:
    assert "the trace was not kept" in call(*RUN).stderr
    assert not list(tmp_path.iterdir())


def test_run_of_a_deadlock_is_exit_5_and_keeps_what_ran(call: Call, tmp_path: Path) -> None:
    options = ("--m", "768", "--machine", "h200", "--policy", "row", "--order", "column", "--launch", "none")
    done = call("run", "gpt3-mlp", *options, "--dispatch", "adversarial", "-o", "stuck.npz")
    assert done.exit_code == 5
    assert "never ends" in done.stdout
    assert 0 < read_trace(tmp_path / "stuck.npz").blocks < 432
    shown = call("show", "stuck.npz").stdout
    assert "Deadlocked: from then on nothing moves:" in shown
    assert "waits for semaphore" in shown.split("Deadlocked")[1]
    assert "stood still after" in shown
    assert call("plot", "stuck.npz", "--sm", "0:4").exit_code == 0


def test_run_of_a_trace_to_a_device_does_not_replace_it(call: Call, tmp_path: Path) -> None:
    (tmp_path / "full.npz").symlink_to("/dev/full")
    done = call(*RUN, "-o", "full.npz")
    assert (done.exit_code, "No space left on device" in done.stderr) == (2, True)
    assert (tmp_path / "full.npz").is_char_device()


def test_run_says_how_blocks_were_dispatched(call: Call) -> None:
    assert "\ndispatch  random, seed 4\n" in call(*RUN, "--dispatch", "random", "--seed", "4").stdout
    assert "\ndispatch" not in call(*RUN).stdout


def test_run_takes_stream_order_too(call: Call) -> None:
    done = call("run", "cusync-fig1", "--machine", "h200", "--policy", "stream", "-q")
    assert "plan      stream, order row, flags -, launch stream" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_plot_of_a_trace(call: Call, tmp_path: Path, kind: str) -> None:
    call(*RUN, "-o", "row.npz")
    done = call("plot", "row.npz", "--sm", "0:2", "-o", f"picture.{kind}")
    assert (done.exit_code, done.stdout, done.stderr) == (0, f"picture.{kind}\n", "")
    head = {"png": b"\x89PNG", "svg": b"<?xml"}[kind]
    assert (tmp_path / f"picture.{kind}").read_bytes().startswith(head)


@pytest.mark.parametrize("kind", ["time", "gain"])
def test_plot_of_a_report_beside_it(call: Call, tmp_path: Path, kind: str) -> None:
    call("predict", "cusync-fig1", "--machine", "h200", "-o", "fig1.json")
    done = call("plot", "fig1.json", "--kind", kind)
    assert (done.exit_code, done.stdout) == (0, "fig1.png\n")
    assert (tmp_path / "fig1.png").stat().st_size > 5000


def test_plot_of_a_sweep_has_times_and_no_common_gain(call: Call) -> None:
    call("predict", "cusync-fig1", "--set", "sms=2,4", "-q", "-o", "sweep.json")
    assert call("plot", "sweep.json").exit_code == 0
    done = call("plot", "sweep.json", "--kind", "gain")
    assert done.exit_code == 2
    assert "2 cases" in done.stderr


def test_plot_of_a_sweep_over_m_is_lines(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[str, Any] = {}

    def noted(lines: Any, **how: Any) -> Any:
        drawn.update(lines=lines, **how)
        return sweep_lines(lines, **how)

    monkeypatch.setattr("cusim.plot.lines.sweep_lines", noted)
    call("predict", "gpt3-mlp", "--m", "512,256", "--order", "row,column", "--policy", "row", "-q", "-o", "s.json")
    assert call("plot", "s.json").exit_code == 0
    assert [line.label for line in drawn["lines"]] == [
        "stream  row", "stream  column", "stream-best", "row  row", "row  column",
    ]  # fmt: skip
    assert [(line.reference, line.rival) for line in drawn["lines"][:4]] == [
        (True, False), (True, False), (False, True), (False, False),
    ]  # fmt: skip
    assert {line.x for line in drawn["lines"]} == {(256, 512)}
    assert drawn["title"] == "gpt3-mlp on H200"
    assert drawn["measures"] == ("time", "gain")
    for kind in ("time", "gain"):
        assert call("plot", "s.json", "--kind", kind).exit_code == 0
        assert drawn["measures"] == (kind,)


def test_bars_of_several_machines_name_them_and_what_sets_rows_apart(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: dict[str, Any] = {}

    def noted(rows: Any, **how: Any) -> Any:
        drawn.update(rows=rows, **how)
        return policy_bars(rows, **how)

    monkeypatch.setattr("cusim.plot.bars.policy_bars", noted)
    call("predict", "llama-mlp", "--m", "256", "--machine", "v100,a100", "--policy", "row", "-q", "-o", "r.json")
    assert call("plot", "r.json").exit_code == 0
    assert drawn["title"] == "llama-mlp on V100, A100, m=256"
    labels = [row.label for row in drawn["rows"]]
    assert (labels[0], labels[2]) == ("stream  split 6+4 v100", "row  split 4 v100")
    assert labels[1].startswith("stream-best  tile 128x128x32+64x256x32 split ")
    assert [label.split()[-1] for label in labels] == ["v100"] * 3 + ["a100"] * 3


def test_plot_of_a_trace_that_does_not_say_its_machine(call: Call, tmp_path: Path) -> None:
    call(*RUN, "-o", "row.csv")
    path = tmp_path / "row.csv"
    first, rest = path.read_text(encoding="utf-8").split("\n", 1)
    mark, _, text = first.partition("{")
    header = json.loads("{" + text)
    header["meta"] = {"kind": "measured"}
    path.write_text(f"{mark}{json.dumps(header)}\n{rest}", encoding="utf-8")
    done = call("plot", "row.csv")
    assert done.exit_code == 0
    assert "note: row.csv does not say sms (" in done.stderr


def test_show_lists_everything(call: Call) -> None:
    shown = call("show").stdout
    for word in ("gpt3-mlp", "batched", "group:G", "wait-all", "h200", "H200, 132 SMs, calibrated", "132 SMs, preset"):
        assert word in shown


def test_show_of_a_machine_has_every_number_with_its_source(call: Call) -> None:
    lines = call("show", "h200").stdout.splitlines()
    assert lines[0].startswith("h200: H200, 132 SMs")
    sms = next(line for line in lines if line.startswith("limits.sms "))
    assert sms.split()[1] == "132"
    assert "measured" in sms
    prologue = next(line for line in lines if line.startswith("block.prologue_ps "))
    given = load_machine("h200").provenance["block.prologue_ps"]
    assert prologue.split()[1:3] == [str(given.value), "us"]
    assert "micro-benchmarks" in " ".join(" ".join(lines).split())


def test_show_with_a_what_if(call: Call) -> None:
    lines = call("show", "h200", "--set", "machine.sms=100").stdout.splitlines()
    assert "with machine.sms=100" in lines[0]
    assert "extrapolated  --set" in next(line for line in lines if line.startswith("limits.sms "))


def test_diff_shows_only_what_differs(call: Call) -> None:
    lines = call("show", "h200", "--diff", "a100").stdout.splitlines()
    keys = [line.split()[0] for line in lines[4:] if line]
    assert "limits.sms" in keys
    assert "limits.warps_per_sm" not in keys
    assert "No number differs." in call("show", "h200", "--diff", "h200").stdout


def test_show_of_a_workload_counts_the_papers_waits(call: Call) -> None:
    shown = call("show", "cusync-fig1").stdout
    rows = [line.split() for line in shown.splitlines() if line.startswith("c>e")]
    assert {row[2]: row[4] for row in rows} == {"row": "6", "tile": "12", "batched:2": "6"}


def test_toml_round_trips(call: Call, tmp_path: Path) -> None:
    text = call("show", "gpt3-mlp", "--m", "300", "--toml").stdout
    program = parse_program(text, "printed")
    assert {kernel.gemm.m for kernel in program.kernels if kernel.gemm} == {300}
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    assert call("show", "mine.toml", "--toml").stdout == text


def test_the_shipped_example_is_printed_with_its_comments(call: Call, root: Path) -> None:
    shipped = (root / "cusim" / "examples" / "two_gemms.toml").read_text(encoding="utf-8")
    assert call("show", "two_gemms", "--toml").stdout == shipped
    assert call("predict", "two_gemms", "-q").exit_code == 0


def test_show_marks_numbers_that_nothing_reads_yet(call: Call) -> None:
    shown = " ".join(call("show", "h200").stdout.split())
    assert shown.count("not used by the model yet:") == len(UNUSED)
    assert "changes nothing" in call(*RUN, "--set", "poll_ps=x2").stderr


def test_show_says_what_the_words_of_the_tables_mean(call: Call) -> None:
    shown = " ".join(call("show").stdout.split())
    assert "it adds kernels up though a tile of one may take longer than a tile of another" in shown


def test_show_of_a_trace(call: Call) -> None:
    call(*RUN, "-o", "row.npz")
    shown = call("show", "row.npz").stdout
    assert "kind            predicted" in shown
    assert "working" in shown.splitlines()[-1]


def test_show_of_policies(call: Call) -> None:
    assert "One semaphore a row of producer tiles." in call("show", "row").stdout
    assert call("show", "batched:3").stdout.startswith("batched:3\n")
    assert "without semaphores" in call("show", "stream").stdout
    assert "stronger rival" in call("show", "stream-best").stdout


def test_what_a_word_is() -> None:
    assert [kind_of(word) for word in (None, "h200", "gpt3-mlp", "tile", "a.npz", "-", "x.toml")] == [
        "catalogue", "machine", "workload", "policy", "trace", "program", "program",
    ]  # fmt: skip
    with pytest.raises(InputError, match="did you mean h200"):
        kind_of("h20")


def test_a_drawn_trace_equals_the_run(call: Call, tmp_path: Path) -> None:
    call(*RUN, "-o", "a.npz")
    call(*RUN, "-o", "b.npz")
    a, b = (read_trace(tmp_path / name) for name in ("a.npz", "b.npz"))
    assert all(np.array_equal(a.tiles[column], b.tiles[column]) for column in a.tiles)
