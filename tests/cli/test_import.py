"""``cusim import``: a report to a program that predicts, or a refusal with nothing written."""

from collections.abc import Callable
from pathlib import Path

import click.testing
import pytest

from cusim.program.toml_read import load_program

Call = Callable[..., click.testing.Result]


@pytest.fixture
def reports(root: Path) -> Path:
    return root / "tests" / "fixtures" / "ncu"


@pytest.mark.parametrize(
    ("report", "arguments"),
    [("raw.csv", ()), ("details.csv", ("--measured-on", "h200")), ("metrics_2020.csv", ("--measured-on", "v100"))],
)
def test_import_then_predict(call: Call, reports: Path, report: str, arguments: tuple[str, ...]) -> None:
    done = call("import", "--ncu", str(reports / report), "-o", "program.toml", *arguments)
    assert done.exit_code == 0, done.output
    assert done.stdout == ""
    assert "wrote program.toml" in done.stderr
    assert "independent until their needs are filled in" in done.stderr
    program = load_program("program.toml")
    assert all(not kernel.reads for kernel in program.kernels)
    predicted = call("predict", "program.toml", "--machine", arguments[1] if arguments else "h200")
    assert predicted.exit_code == 0, predicted.output
    for kernel in program.kernels:
        assert kernel.name in predicted.stdout


def test_filled_in_needs_are_dependences(call: Call, reports: Path) -> None:
    call("import", "--ncu", str(reports / "raw.csv"), "-o", "p.toml", "-q")
    text = Path("p.toml").read_text(encoding="utf-8")
    filled = text.replace('# needs = ["gelu[r, :]"]', 'needs = ["gemm[r, :]"]')
    assert filled != text
    Path("p.toml").write_text(filled, encoding="utf-8")
    done = call("predict", "p.toml", "--machine", "h200", "--policy", "row")
    assert done.exit_code == 0, done.output


def test_stdout_is_the_program(call: Call, reports: Path) -> None:
    done = call("import", "--ncu", str(reports / "raw.csv"), "--quiet")
    assert done.exit_code == 0
    assert done.stderr == ""
    assert call("show", "-", "--toml", stdin=done.stdout).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--ncu", "absent.csv"), "cannot be read"),
        (("--ncu", "nsys.csv"), "is a table of nsys; allowed: the CSV of ncu"),
        (("--ncu", "empty.csv"), "is empty"),
        ((), "Name a report"),
    ],
)
def test_refused_by_name_with_nothing_written(call: Call, arguments: tuple[str, ...], says: str) -> None:
    Path("nsys.csv").write_text("Time (%),Total Time (ns),Instances,Name\n1,2,3,k\n", encoding="utf-8")
    Path("empty.csv").write_text("", encoding="utf-8")
    done = call("import", *arguments, "-o", "p.toml")
    assert done.exit_code == 2
    assert says in done.stderr
    assert not Path("p.toml").exists()


@pytest.mark.parametrize(
    ("report", "arguments", "says"),
    [
        ("details.csv", (), "give --measured-on"),
        ("raw.csv", ("--measured-on", "h2000"), "did you mean h200?"),
        ("two_processes.csv", (), "choose one with --process"),
        ("raw.csv", ("--output", "p.json"), "unknown suffix"),
        ("raw.csv", ("--output", "absent/p.toml"), "no directory"),
    ],
)
def test_choices_that_are_missing_or_wrong(
    call: Call, reports: Path, report: str, arguments: tuple[str, ...], says: str
) -> None:
    # The last of two outputs counts.
    done = call("import", "--ncu", str(reports / report), "-o", "p.toml", *arguments)
    assert done.exit_code == 2
    assert says in done.stderr
    assert not list(Path().glob("p.*"))
