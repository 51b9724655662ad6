"""``cusim reproduce``: the list, the table, the documents, and what is refused."""

import json
from collections.abc import Callable
from pathlib import Path

import click.testing
import pytest

from cusim.reproduce.lab import Lab

Call = Callable[..., click.testing.Result]


@pytest.fixture(scope="module")
def shared() -> Lab:
    """One lab for all calls here, so that each run is simulated once."""
    return Lab()


@pytest.fixture(autouse=True)
def labs(shared: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.reproducing.Lab", lambda: shared)


def test_without_a_paper_it_lists_them(call: Call) -> None:
    done = call("reproduce")
    assert done.exit_code == 0
    assert any(line.startswith("cusync ") for line in done.stdout.splitlines())
    assert "CGO 2024" in done.stdout


def test_an_unknown_paper_is_refused_with_the_closest(call: Call) -> None:
    done = call("reproduce", "cusink")
    assert done.exit_code == 2
    assert done.stdout == ""
    assert "did you mean cusync?" in done.stderr


def test_the_table_names_every_verdict_and_says_why(call: Call) -> None:
    done = call("reproduce", "cusync")
    assert done.exit_code == 0
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0].startswith("cuSync: ")
    assert any(line.startswith("Table IV") and "differs [" in line for line in lines)
    assert any(line.startswith("[") and "contradict the grids beside them" in line for line in lines)
    assert lines[-1].startswith(
        f"{len([line for line in lines if '  same' in line or 'differs [' in line]) + 5} claims:"
    )


def test_json_is_one_document_on_stdout(call: Call) -> None:
    done = call("reproduce", "cusync", "--json")
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert found["schema"] == "cusim.reproduce/1"
    assert {"claim", "where", "paper", "ours", "baseline", "low", "high", "status"} <= set(found["claims"][0])


@pytest.mark.parametrize(("name", "begins"), [("c.json", "{"), ("c.md", "**cuSync"), ("c.txt", "cuSync: ")])
def test_a_file_takes_the_form_of_its_suffix(call: Call, name: str, begins: str) -> None:
    done = call("reproduce", "cusync", "-o", name)
    assert done.exit_code == 0
    assert done.stderr == f"wrote {name}\n"
    assert done.stdout.startswith("cuSync: ")
    assert Path(name).read_text(encoding="utf-8").startswith(begins)


def test_a_form_with_a_file_goes_to_the_file_alone(call: Call) -> None:
    done = call("reproduce", "cusync", "--md", "-o", "claims", "-q")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
    assert "| Table IV |" in Path("claims").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("cusync", "-o", "claims.csv"), "unknown suffix"),
        (("cusync", "-o", "none/claims.md"), "no directory none"),
        (("--json",), "needs a paper"),
        (("-o", "claims.md"), "needs a paper"),
    ],
)
def test_bad_options_are_refused_before_anything_runs(call: Call, args: tuple[str, ...], said: str) -> None:
    done = call("reproduce", *args)
    assert done.exit_code == 2
    assert said in done.stderr
    assert not list(Path().iterdir())


def test_a_claim_that_fails_is_shown_and_the_exit_code_is_one(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object, **how: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(Lab, "outcome", broken)
    done = call("reproduce", "cusync")
    assert done.exit_code == 1
    assert "RuntimeError: planted" in done.stdout
    assert "failed" in done.stdout.splitlines()[-1]
    assert "Table I " in done.stdout
