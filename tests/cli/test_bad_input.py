"""What people get wrong: exit 2, every mistake named with what is allowed, nothing on stdout, no file, no traceback."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Call = Callable[..., Result]


P = ("predict", "cusync-fig1")
G = ("predict", "gpt3-mlp")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("predict", "gpt4-mlp"), ["gpt4-mlp", "did you mean gpt3-mlp?"]),
        (("predict",), ["Name a workload"]),
        (("predict", "gpt3-mlp", "more"), ["unexpected extra argument"]),
        ((*P, "--polcy", "row"), ["--polcy", "--policy"]),
        ((*P, "--policy", "rwo"), ["--policy", "rwo", "did you mean row?"]),
        ((*P, "--policy", "batched:0"), ["--policy", "batched:0", "number from 1"]),
        ((*P, "--policy", "c>x:row"), ["--policy", "c>x", "did you mean c>e?"]),
        ((*P, "--policy", ""), ["--policy"]),
        ((*P, "--order", "colum"), ["--order", "did you mean column?"]),
        ((*P, "--order", "missing.json"), ["--order", "missing.json", "cannot be read"]),
        ((*P, "--flags", "Q"), ["--flags", "W R T A"]),
        ((*P, "--launch", "waitall"), ["--launch", "did you mean wait-all?"]),
        ((*P, "--dispatch", "randm"), ["--dispatch", "did you mean random?"]),
        ((*P, "--seed", "-1"), ["--seed", "0 or more"]),
        ((*P, "--time-unit", "s"), ["--time-unit", "ns", "us", "ms"]),
        ((*P, "--machine", "h2000"), ["--machine", "did you mean h200?"]),
        ((*P, "--machine", "missing.toml"), ["missing.toml", "cannot be read"]),
        ((*P, "--set", "machine.smss=4"), ["--set", "did you mean sms?"]),
        ((*P, "--set", "sms"), ["--set", "key=value"]),
        ((*P, "--set", "post_ps=3parsec"), ["--set", "parsec", "allowed: ms ns ps s us"]),
        ((*P, "--set", "post_ps=nan"), ["--set", "finite"]),
        ((*P, "--set", "sms=1.5"), ["--set", "whole"]),
        ((*P, "--m", "5"), ["m = 5", "one shape"]),
        ((*G, "--m", "0"), ["--m", "1 or more"]),
        ((*G, "--m", "nan"), ["--m", "whole number"]),
        ((*G, "--m", "10:1"), ["--m", "start <= stop"]),
        ((*G, "--tile", "128x256"), ["tile", "128x256x64"]),
        ((*G, "--tile", "1024x1024x64"), ["choose a smaller tile"]),
        ((*G, "--split-k", "none"), ["--split-k"]),
        ((*G, "--m", "256:2048"), ["1793 values; step missing? 256:2048:256"]),
        ((*G, "--m", "7:1000"), ["994 values; step missing? 7:1000:125"]),
        ((*P, "--set", "sms=1e9"), ["--set limits.sms", "at most 4096"]),
        ((*P, "--set", "post_ps=900"), ["--set sync.post_ps", "needs a unit: 900ps 900ns"]),
        ((*P, "--json", "--csv"), ["--json --csv", "one form at a time"]),
        ((*P, "--json", "-o", "out.csv"), ["--output", "its suffix says csv, the option --json"]),
        ((*P, "--policy", "row", "--flags", "A"), ["flag A", "a store keeps only the last post"]),
        ((*P, "--policy", "row", "--flags", "W", "--launch", "wait-first"), ["flag W means no wait-kernel"]),
        ((*P, "--policy", "stream", "--launch", "wait-all"), ["--launch", "stream order has no waits"]),
        ((*P, "-o", "out.xlsx"), ["--output", ".csv .json .md .txt"]),
        ((*P, "-o", "no/such/folder/out.json"), ["--output", "no directory"]),
        ((*P, "-o", "."), ["--output", "is a directory"]),
        (("run", "cusync-fig1", "--policy", "row,tile"), ["--policy", "one plan", "row, tile"]),
        (("run", "cusync-fig1", "--policy", "stream,row"), ["--policy", "one plan", "stream, row"]),
        (("run", "cusync-fig1", "--order", "row,column"), ["plan", "one plan"]),
        (("run", "cusync-fig1", "--set", "sms=2,4"), ["--set sms=2,4", "one value"]),
        (("run", "cusync-fig1", "--seed", "1,2"), ["--seed", "one value"]),
        (("run", "cusync-fig1", "-o", "trace.json"), ["--output", ".csv .npz"]),
        (("run",), ["Name a workload"]),
        (("plot", "missing.npz"), ["missing.npz"]),
        (("plot", "missing.json"), ["missing.json", "cannot be read"]),
        (("plot", "trace.txt"), ["suffix", ".csv .json .npz"]),
        (("plot",), ["Missing argument"]),
        (("show", "h20"), ["did you mean h200?"]),
        (("show", "missing.npz"), ["missing.npz"]),
        (("show", "missing.toml"), ["missing.toml", "cannot be read"]),
        (("show", "h200", "--m", "4"), ["--m", "goes with a workload"]),
        (("show", "row", "--toml"), ["--toml", "goes with a workload or a program or a machine"]),
        (("show", "gpt3-mlp", "--diff", "h200"), ["--diff", "goes with a machine"]),
        (("show", "h200", "--diff", "x100"), ["x100", "allowed"]),
        (("show", "gpt3-mlp", "--m", "1,2"), ["--m", "one value"]),
        (("doctor", "please"), ["unexpected extra argument"]),
    ],
)
def test_mistakes(call: Call, tmp_path: Path, words: tuple[str, ...], said: list[str]) -> None:
    done = call(*words)
    assert done.exit_code == 2
    assert done.stdout == ""
    for part in said:
        assert part in done.stderr
    assert not list(tmp_path.iterdir())


def test_all_mistakes_at_once(call: Call) -> None:
    done = call(*G, "--m", "0", "--machine", "h2000", "--set", "foo=1", "--dispatch", "x", "--seed", "y")
    assert "cusim: 5 errors in the command line, nothing was run" in done.stderr


@pytest.mark.parametrize("verb", ["predict", "run"])
def test_options_of_the_plan_and_of_the_workload_are_told_together(call: Call, verb: str) -> None:
    wrong = {
        "--m": "0", "--machine": "h2000", "--tile": "3x", "--split-k": "none", "--set": "sms=1e9", "--policy": "rwo",
        "--order": "colum", "--flags": "Q", "--launch": "no", "--dispatch": "x", "--seed": "y", "-o": "no/such/x.csv",
    }  # fmt: skip
    done = call(verb, "gpt3-mlp", *(word for pair in wrong.items() for word in pair))
    assert f"{len(wrong)} errors in the command line" in done.stderr
    said = [line.split()[0] for line in done.stderr.splitlines()[1:]]
    assert sorted(said) == sorted("--output" if option == "-o" else option for option in wrong)


def test_an_unknown_workload_does_not_hide_other_mistakes(call: Call) -> None:
    done = call("predict", "gpt4-mlp", "--policy", "rwo", "--order", "up:row", "--launch", "no")
    assert [line.split()[0] for line in done.stderr.splitlines()[1:]] == ["--policy", "--launch", "WORKLOAD"]


def test_what_the_engine_refuses_is_told_under_the_name_of_the_file(call: Call, pair: str, tmp_path: Path) -> None:
    text = (tmp_path / pair).read_text(encoding="utf-8").replace("shared_kib = 128", "shared_kib = 900", 1)
    (tmp_path / pair).write_text(text, encoding="utf-8")
    for verb in ("predict", "run"):
        done = call(verb, pair, "--machine", "h200")
        assert done.exit_code == 2
        assert "1 error in pair.toml, nothing was run" in done.stderr
        assert "kernel[0].block" in done.stderr


def test_a_program_file_keeps_its_own_sizes(call: Call, pair: str) -> None:
    done = call("predict", pair, "--m", "5", "--tile", "64x64x64", "--split-k", "2")
    assert done.exit_code == 2
    assert all(option in done.stderr for option in ("3 errors", "--m", "--tile", "--split-k"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = [", "is no TOML"),
        ('schema = "cusim.machine/2"\n', "schema"),
        ('schema = "cusim.program/1"\n', "[[kernel]]"),
        ('schema = "cusim.program/1"\n[[kernel]]\nname = "a"\ngem = {}\n', "did you mean gemm?"),
        ('schema = "cusim.program/1"\n[[kernel]]\nname = "a"\ngemm = { m = nan, n = 1, k = 1 }\n', "m = nan"),
    ],
)
def test_broken_program_files(call: Call, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "broken.toml").write_text(text, encoding="utf-8")
    done = call("predict", "broken.toml")
    assert done.exit_code == 2
    assert "broken.toml" in done.stderr
    assert said in done.stderr


@pytest.mark.parametrize("suffix", ["npz", "csv"])
@pytest.mark.parametrize("kept", [0, 10, 500])
def test_traces_that_are_cut_off(call: Call, tmp_path: Path, suffix: str, kept: int) -> None:
    call("run", "cusync-fig1", "-o", f"whole.{suffix}")
    (tmp_path / f"cut.{suffix}").write_bytes((tmp_path / f"whole.{suffix}").read_bytes()[:kept])
    for verb in ("show", "plot"):
        done = call(verb, f"cut.{suffix}")
        assert done.exit_code == 2
        assert f"cut.{suffix}" in done.stderr
    assert not (tmp_path / "cut.png").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("[]", "schema"),
        ('{"schema": "cusim.predict/2"}', 'must be "cusim.predict/1"'),
        (
            '{"schema": "cusim.predict/1", "machine": {"band_pct": NaN}, "program": {"name": "x"}, "rows": []}',
            "band_pct",
        ),
        ('{"schema": "cusim.predict/1", "machine": {"band_pct": 1}, "program": {"name": "x"}, "rows": [3]}', "rows[0]"),
    ],
)
def test_reports_that_are_broken(call: Call, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "report.json").write_text(text, encoding="utf-8")
    done = call("plot", "report.json")
    assert done.exit_code == 2
    assert said in done.stderr


def test_pictures_that_an_input_does_not_have(call: Call) -> None:
    call("run", "cusync-fig1", "-o", "t.npz")
    call("predict", "cusync-fig1", "-o", "r.json")
    for words, said in (
        (("t.npz", "--kind", "gain"), "timeline"),
        (("t.npz", "--sm", "3:1"), "A < B"),
        (("t.npz", "--sm", "0:999"), "within 0:4"),
        (("t.npz", "-o", "x.gif"), ".png .svg"),
        (("r.json", "--sm", "0:1"), "only a timeline has SMs"),
        (("r.json", "--kind", "timeline"), "time or gain"),
    ):
        done = call("plot", *words)
        assert done.exit_code == 2
        assert said in done.stderr


def test_a_write_that_fails_leaves_no_file(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, target: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    done = call("predict", "cusync-fig1", "-o", "out.json")
    assert done.exit_code == 2
    assert "No space left on device" in done.stderr
    assert not list(tmp_path.iterdir())
