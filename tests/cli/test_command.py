"""The command around its verbs: help, version, unknown words, exit codes, and no traceback for anybody."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from cli import main as command
from cli.main import VERBS, cusim
from cusim.errors import InputError, Problem


def invoke(*args: str) -> "click.testing.Result":
    return CliRunner().invoke(cusim, list(args))


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> "click.testing.Result":
    """What the command says and returns when its verb raises *error*."""

    @click.command("doctor")
    def broken() -> None:
        raise error

    monkeypatch.setattr(command.Verbs, "get_command", lambda self, ctx, name: broken)
    return invoke("doctor")


def test_help_lists_every_verb_with_its_line() -> None:
    done = invoke("--help")
    assert done.exit_code == 0
    assert [
        line.split()[0] for line in done.stdout.splitlines() if line[:2] == "  " and line[2:].split(" ")[0] in VERBS
    ]
    for verb in VERBS:
        assert f"\n  {verb} " in done.stdout


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(verb: str) -> None:
    done = invoke(verb, "--help")
    assert done.exit_code == 0
    assert done.stdout.startswith(f"Usage: cusim {verb}")


def test_version_is_one_line() -> None:
    done = invoke("--version")
    assert done.exit_code == 0
    assert done.stdout.startswith("cusim ")
    assert done.stdout.count("\n") == 1


def test_no_verb_prints_help_and_is_a_usage_error() -> None:
    done = invoke()
    assert done.exit_code == 2
    assert "Usage: cusim" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("word", "said"),
    [("predikt", "Did you mean predict?"), ("qqq", "Commands: predict run"), ("tune", "planned")],
)
def test_unknown_verb(word: str, said: str) -> None:
    done = invoke(word)
    assert done.exit_code == 2
    assert said in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (InputError("x.toml", [Problem("kernel", "up", "is wrong")]), 2, "cusim: 1 error in x.toml"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (ValueError("boom"), 1, "unexpected ValueError: boom"),
        (MemoryError(), 1, "out of memory"),
        (ModuleNotFoundError("No module named 'simpy'", name="simpy"), 1, "package simpy is missing"),
        (PermissionError(13, "Permission denied", "out.npz"), 1, "out.npz: Permission denied"),
        (RecursionError("deep"), 1, "Please report"),
    ],
)
def test_failures_become_a_line_and_a_code(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, said: str
) -> None:
    monkeypatch.delenv("CUSIM_DEBUG", raising=False)
    done = failing(monkeypatch, error)
    assert done.exit_code == code
    assert said in done.stderr
    assert "Traceback" not in done.output


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUSIM_DEBUG", "1")
    done = failing(monkeypatch, ValueError("boom"))
    assert isinstance(done.exception, ValueError)


def test_help_imports_only_click_and_the_standard_library(root: Path) -> None:
    code = (
        "import sys\nfrom cli.main import main\nsys.argv = ['cusim', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "sys.stderr.write(' '.join(sorted({name.split('.')[0] for name in sys.modules})))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    ours = {"cli", "click", "__main__", "cusim"}
    foreign = set(done.stderr.split()) - set(sys.stdlib_module_names) - ours
    assert not {name for name in foreign if not name.startswith(("_", "sitecustomize"))}
    assert "numpy" not in done.stderr.split()


def test_a_closed_pipe_is_quiet(root: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "cli.main", "doctor"], cwd=root, stdout=write, stderr=subprocess.PIPE, text=True,
        check=False,
    )  # fmt: skip
    os.close(write)
    assert done.stderr == ""
    assert done.returncode == 141


FIG1 = [sys.executable, "-m", "cli.main", "predict", "cusync-fig1", "-q"]


def on_a_terminal(root: Path, **environment: str) -> bytes:
    """What `cusim predict` sends to a terminal."""
    ours, theirs = pty.openpty()
    clean = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    done = subprocess.run(FIG1, cwd=root, stdout=theirs, env={**clean, "TERM": "xterm", **environment}, check=False)
    os.close(theirs)
    assert done.returncode == 0
    found = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:
            part = b""
        if not part:
            os.close(ours)
            return found
        found += part


def test_only_a_terminal_gets_colour_and_only_without_no_color(root: Path) -> None:
    coloured, plain = on_a_terminal(root), on_a_terminal(root, NO_COLOR="1")
    piped = subprocess.run(FIG1, cwd=root, capture_output=True, check=True).stdout
    assert b"\x1b[" in coloured
    assert b"\x1b[" not in plain
    assert plain.replace(b"\r\n", b"\n") == piped


def test_a_terminal_gets_lines_of_its_own_width(root: Path) -> None:
    lines = on_a_terminal(root, NO_COLOR="1", COLUMNS="80").decode().splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("(no room for: ") for line in lines)


def test_a_stdout_that_lacks_characters_gets_question_marks(root: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "iso8859-5"}
    done = subprocess.run(FIG1, cwd=root, capture_output=True, check=True, env=environment)
    assert re.search(rb"times \?\d+ %", done.stdout)


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_a_verb_needs_no_numpy(root: Path, verb: str) -> None:
    code = (
        "import sys\nfrom cli.main import main\n"
        f"sys.argv = ['cusim', '{verb}', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "sys.exit('numpy' in sys.modules or 'rich' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, check=True)
