"""`cusim predict` on real programs: what it prints, where, in which form, and with which exit code."""

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from cusim.machine import load_machine

Call = Callable[..., Result]

PAIR = """\
schema = "cusim.program/1"
[[kernel]]
name = "up"
gemm = { m = 384, n = 512, k = 256 }
tile = "128x128x64"
block = { threads = 256, registers = 128, shared_kib = 128 }
[[kernel]]
name = "down"
gemm = { m = 384, n = 256, k = 512 }
a = "up"
tile = "128x128x64"
block = { threads = 256, registers = 128, shared_kib = 128 }
"""


SMALL = ("cusync-fig1", "--machine", "h200")
#: Only the rows that were asked for.
ALONE = (*SMALL, "--no-best-stream")


def test_fig1_is_the_papers(call: Call) -> None:
    done = call("predict", *SMALL)
    lines = done.stdout.splitlines()
    assert done.exit_code == 0
    assert lines[0].startswith("cusync-fig1  m=768  fp16   on H200, 4 SMs   (")
    assert f": times ±{load_machine('h200').band_pct:g} %)" in lines[0]
    titles = [
        "policy",
        "order",
        "flags",
        "launch",
        "time us",
        "vs stream",
        "rounds",
        "working %",
        "waiting %",
        "empty %",
        "deadlock",
    ]
    assert re.split(r"\s{2,}", lines[6]) == titles
    rounds = {line.split()[0]: line.split()[6] for line in lines[7:12]}
    assert list(rounds) == ["stream", "stream-best", "row", "tile", "batched:2"]
    assert [rounds[policy] for policy in ("stream", "row", "tile", "batched:2")] == ["4", "3", "3", "3"]


def test_advice_goes_to_stderr_and_quiet_silences_it(call: Call) -> None:
    loud, quiet = call("predict", *SMALL), call("predict", *SMALL, "--quiet")
    assert loud.stderr.startswith("note: ")
    assert quiet.stderr == ""
    assert quiet.stdout == loud.stdout


def test_the_default_machine_is_named_on_stderr(call: Call) -> None:
    assert "note: machine h200, since --machine names none" in call("predict", "cusync-fig1").stderr
    assert "since --machine" not in call("predict", *SMALL).stderr


def test_json_is_one_document_and_nothing_else(call: Call) -> None:
    done = call("predict", *SMALL, "--json", "--seed", "3")
    data = json.loads(done.stdout)
    assert data["schema"] == "cusim.predict/1"
    assert [row["policy"] for row in data["rows"]] == ["stream", "stream-best", "row", "tile", "batched:2"]
    assert all(type(row["total_ns"]) is int and row["total_ns"] > 0 for row in data["rows"])
    assert data["machine"]["overrides"] == ["machine.sms=4"]
    assert data["provenance"]["seed"] == [3]
    assert [kernel["waves"] for kernel in data["kernels"]] == [1.5, 1.5]


def test_the_same_command_gives_the_same_bytes(call: Call) -> None:
    options = ("predict", *SMALL, "--dispatch", "random", "--seed", "5", "--json")
    assert call(*options).stdout == call(*options).stdout


def test_csv_is_a_line_a_row(call: Call) -> None:
    rows = list(csv.DictReader(io.StringIO(call("predict", *ALONE, "--csv", "--policy", "row").stdout)))
    assert [row["policy"] for row in rows] == ["stream", "row"]
    assert int(rows[1]["total_ns"]) < int(rows[0]["total_ns"])


def test_markdown_has_two_tables(call: Call) -> None:
    lines = call("predict", *SMALL, "--md").stdout.splitlines()
    assert sum(line.startswith("| ---") for line in lines) == 2


@pytest.mark.parametrize("suffix", ["json", "csv", "md", "txt"])
def test_output_takes_the_form_of_its_suffix_and_stdout_keeps_the_table(
    call: Call, tmp_path: Path, suffix: str
) -> None:
    done = call("predict", *SMALL, "-o", f"out.{suffix}")
    assert done.stdout.startswith("cusync-fig1")
    assert f"wrote out.{suffix}" in done.stderr
    text = (tmp_path / f"out.{suffix}").read_text(encoding="utf-8")
    starts = {"json": "{", "csv": "policy,", "md": "**cusync-fig1", "txt": "cusync-fig1"}
    assert text.startswith(starts[suffix])
    assert [path.name for path in tmp_path.iterdir()] == [f"out.{suffix}"]


def test_a_form_with_an_output_leaves_stdout_empty(call: Call, tmp_path: Path) -> None:
    done = call("predict", *SMALL, "--json", "-o", "report.out")
    assert done.stdout == ""
    assert json.loads((tmp_path / "report.out").read_text(encoding="utf-8"))["rows"]


def test_several_values_of_m_add_a_column_and_compare_within_each(call: Call) -> None:
    options = ("--m", "256:512:256", "--machine", "h200", "--policy", "row", "--json", "-q", "--no-best-stream")
    done = call("predict", "gpt3-mlp", *options)
    rows = json.loads(done.stdout)["rows"]
    assert [(row["m"], row["policy"], row["reference"]) for row in rows] == [
        (256, "stream", True), (256, "row", False), (512, "stream", True), (512, "row", False),
    ]  # fmt: skip
    table = call("predict", "gpt3-mlp", "--m", "256,512", "--machine", "h200", "--policy", "row", "-q").stdout
    assert "\n  m  policy" in table
    assert re.search(r"\n  m  best policy +gain %  on stream-best %  (with wait-all us  )?verdict\n256  row \(", table)


def test_what_if_is_swept_and_recorded(call: Call) -> None:
    done = call("predict", *ALONE, "--set", "machine.sms=2,3", "--policy", "row", "--json")
    data = json.loads(done.stdout)
    assert [row["overrides"][-1] for row in data["rows"]] == ["machine.sms=2"] * 2 + ["machine.sms=3"] * 2
    assert [kernel["sms"] for kernel in data["kernels"]] == [2, 2, 3, 3]
    assert len({machine["digest"] for machine in data["provenance"]["machines"]}) == 2
    assert "what-if machine" in done.stderr


def test_several_machines(call: Call, pair: str) -> None:
    lines = call("predict", pair, "--machine", "h200,a100", "--policy", "row", "-q").stdout.splitlines()
    assert "H200, 132 SMs" in lines[0]
    assert "A100, 108 SMs" in lines[1]
    assert any(line.startswith("machine  policy") for line in lines)


def test_a_policy_for_each_dependence(call: Call, pair: str) -> None:
    options = ("--policy", "up>down:tile", "--json", "-q", "--no-best-stream")
    rows = json.loads(call("predict", pair, *options).stdout)["rows"]
    assert [row["policy"] for row in rows] == ["stream", "tile"]


def test_orders_for_each_kernel(call: Call, pair: str) -> None:
    options = ("--policy", "row", "--order", "up:row,down:column", "--order", "row", "--json", "-q", "--no-best-stream")
    rows = json.loads(call("predict", pair, *options).stdout)["rows"]
    assert [row["order"] for row in rows] == ["up:row down:column", "row"] * 2


def test_standard_input(call: Call, pair: str, tmp_path: Path) -> None:
    text = (tmp_path / pair).read_text(encoding="utf-8")
    assert call("predict", "-", "-q", stdin=text).stdout == call("predict", pair, "-q").stdout


def test_combinations_that_are_not_legal_are_left_out_with_the_reason(call: Call) -> None:
    done = call("predict", *ALONE, "--policy", "row,tile", "--flags", "-,A", "--json")
    rows = json.loads(done.stdout)["rows"]
    assert [(row["policy"], row["flags"]) for row in rows] == [
        ("stream", "-"), ("row", "-"), ("tile", "-"), ("tile", "A"),
    ]  # fmt: skip
    assert "note: left out --policy row --flags A: flag A: " in done.stderr


def test_reasons_that_kernels_share_are_said_once(call: Call) -> None:
    stderr = " ".join(
        call("predict", *SMALL, "--policy", "row", "--order", "column,row", "--flags", "T").stderr.split()
    )
    assert stderr.count("flag T leaves the order to the hardware") == 1


def test_one_combination_is_not_one_combinations(call: Call) -> None:
    options = ("--policy", "row,batched:2,batched:3,batched:4,batched:5,batched:6,batched:7", "--flags", "-,A")
    stderr = call("predict", *SMALL, *options).stderr
    assert "note: left out 1 more combination that is not legal" in stderr


def test_a_launch_that_is_typed_overrules_a_w_that_is_not(call: Call) -> None:
    options = ("llama-mlp", "--m", "64", "--machine", "v100", "--policy", "row", "--json", "-q", "--no-best-stream")
    own = json.loads(call("predict", *options).stdout)["rows"][1]
    held = json.loads(call("predict", *options, "--launch", "wait-all").stdout)["rows"][1]
    assert "W" in own["flags"]
    assert (held["launch"], "W" in held["flags"]) == ("wait-all", False)


HANG = [
    "gpt3-mlp",
    "--m",
    "768",
    "--machine",
    "h200",
    "--policy",
    "row",
    "--order",
    "column",
    "--launch",
    "none",
    "--dispatch",
    "adversarial",
]


def test_a_deadlock_is_exit_5_with_the_table_and_the_cycle(call: Call) -> None:
    done = call("predict", *HANG)
    assert done.exit_code == 5
    assert "  deadlocks\n" in done.stdout
    assert "Deadlock: row (order column, flags W, launch none) never finishes." in done.stdout
    assert "up tile" in done.stdout.split("Deadlock:")[1]


def test_a_deadlock_is_null_in_json(call: Call) -> None:
    done = call("predict", *HANG, "--json")
    row = json.loads(done.stdout)["rows"][-1]
    assert done.exit_code == 5
    assert (row["deadlock"], row["total_ns"], row["recommended"]) == ("deadlocks", None, False)


def test_a_program_without_dependences_has_stream_order_only(call: Call, tmp_path: Path) -> None:
    text = (
        'schema = "cusim.program/1"\n[[kernel]]\nname = "one"\ngrid = [6, 48]\ntime_us = 12.4\nmeasured_on = "a100"\n'
    )
    block = "block = { threads = 128, registers = 32, shared_kib = 0 }\n"
    (tmp_path / "one.toml").write_text(text + block, encoding="utf-8")
    done = call("predict", "one.toml", "--machine", "h200")
    assert done.exit_code == 0
    assert "rescaled from a100" in done.stdout
    assert "Only stream order was asked for" in done.stdout
    assert done.stdout.splitlines()[2].split() == [
        "kernel", "grid", "r", "x", "c", "tiles", "blocks/SM", "waves", "time", "from",
    ]  # fmt: skip


@pytest.mark.parametrize("options", [("gpt3-mlp", "--m", "768"), ("llama-mlp", "--m", "256,512", "--machine", "v100")])
def test_an_answer_is_at_most_120_wide(call: Call, options: tuple[str, ...]) -> None:
    done = call("predict", *options)
    assert max(map(len, done.output.splitlines())) <= 120


def test_unlike_tiles_are_told_with_the_option_that_makes_them_alike(call: Call) -> None:
    options = ("predict", "llama-mlp", "--m", "512", "--machine", "v100")
    said = " ".join(call(*options, "-q").stdout.split())
    assert "These two differ in split-K (3+1 and 2+1)" in said
    assert "--split-k 2+1 compares like with like." in said
    assert "even the best" not in said
    alike = " ".join(call(*options, "--split-k", "2+1", "-q").stdout.split())
    assert "These two differ" not in alike


def test_the_kernel_table_says_whose_tiles_these_are(call: Call) -> None:
    lines = call("predict", "llama-mlp", "--m", "512", "--machine", "v100", "-q").stdout.splitlines()
    assert lines[2].endswith("used by")
    assert [line.split("  ")[-1] for line in lines[3:6]] == ["stream", "all", "row tile batched:2"]


def test_a_recommendation_that_rests_on_arrival_names_the_time_of_the_safe_launch(call: Call) -> None:
    options = ("predict", "gpt3-mlp", "--m", "768", "--policy", "row", "--json", "-q", "--no-best-stream")
    (row,) = [row for row in json.loads(call(*options).stdout)["rows"] if row["recommended"]]
    assert row["deadlock"] == "safe if arrival order holds"
    held = json.loads(call(*options, "--launch", "wait-all").stdout)["rows"][-1]
    said = " ".join(call(*(option for option in options if option != "--json")).stdout.split())
    assert f"--launch wait-all takes {held['total_ns'] / 1000:.1f} us" in said
    assert said.endswith("and is safe by construction.")


def test_the_head_says_how_blocks_were_dispatched(call: Call) -> None:
    plain, seeded = call("predict", *SMALL).stdout, call("predict", *SMALL, "--seed", "3").stdout
    worst = call("predict", *SMALL, "--dispatch", "adversarial").stdout
    assert "dispatch" not in plain
    assert "seed 3" in seeded.splitlines()[0]
    assert "dispatch adversarial, seed 0" in " ".join(worst.split("kernel")[0].split())


def test_under_the_worst_dispatch_nothing_rests_on_arrival(call: Call) -> None:
    options = ("predict", "gpt3-mlp", "--m", "768", "--policy", "row", "--dispatch", "adversarial")
    done = call(*options)
    row = next(line for line in done.stdout.splitlines() if line.startswith("row "))
    assert row.endswith(("can deadlock (did not here)", "deadlocks"))
    assert "No policy to recommend" in done.stdout


def test_json_rows_name_program_machine_and_m(call: Call, pair: str) -> None:
    options = ("--machine", "h200,a100", "--policy", "row", "--json", "-q", "--no-best-stream")
    data = json.loads(call("predict", pair, *options).stdout)
    assert [(row["program"], row["machine"], row["gpu"], row["m"]) for row in data["rows"]] == [
        ("pair", "h200", "H200", 384), ("pair", "h200", "H200", 384),
        ("pair", "a100", "A100", 384), ("pair", "a100", "A100", 384),
    ]  # fmt: skip
    assert [machine["name"] for machine in data["machines"]] == ["h200", "a100"]


def test_a_machine_printed_as_toml_serves_workloads_by_its_architecture(call: Call, tmp_path: Path) -> None:
    text = call("show", "h200", "--toml").stdout
    (tmp_path / "mine.toml").write_text(text.replace('name = "h200"', 'name = "mine"'), encoding="utf-8")
    options = ("gpt3-mlp", "--m", "256", "--policy", "row", "--json", "-q")
    mine, known = (json.loads(call("predict", *options, "--machine", m).stdout) for m in ("mine.toml", "h200"))
    assert [row["total_ns"] for row in mine["rows"]] == [row["total_ns"] for row in known["rows"]]


def test_what_is_odd_about_a_kernel_is_noted(call: Call, tmp_path: Path) -> None:
    odd = PAIR.replace("threads = 256", "threads = 250", 1).replace("shared_kib = 128", "shared_kib = 8", 1)
    odd += 'time_us = 5000.0\nmeasured_on = "h200"\n'
    fast = PAIR + 'time_us = 0.05\nmeasured_on = "h200"\n'
    plain = call("predict", _written(tmp_path, PAIR), "--machine", "h200").stderr
    noted = " ".join(call("predict", _written(tmp_path, odd), "--machine", "h200").stderr.split())
    assert "250 threads are no multiple of 32" in noted
    assert "8 KiB of shared memory hold less than one k step of the tile's operands (32 KiB)" in noted
    assert re.search(r"down: its measured time is \d+\.\d times the \d+\.\d us that the model of H200", noted)
    assert "multiple of 32" not in plain
    assert call("predict", _written(tmp_path, fast), "--machine", "h200").exit_code == 2  # below its fixed costs


def _written(folder: Path, text: str) -> str:
    (folder / "mine.toml").write_text(text, encoding="utf-8")
    return "mine.toml"


def test_list_names_the_axes_and_a_programs_parts(call: Call, pair: str) -> None:
    done = call("predict", pair, "--list")
    assert [line.split()[0] for line in done.stdout.splitlines()[1:12]] == [
        "--m", "--tile", "--split-k", "--machine", "--set", "--policy", "--order", "--flags", "--launch",
        "--dispatch", "--seed",
    ]  # fmt: skip
    assert done.stdout.endswith("kernels of pair: up down\ndependences: up>down\n")
    assert call("predict", "--list").exit_code == 0
