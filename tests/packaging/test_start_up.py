"""`cusim --help` starts fast, because what is heavy is imported where it is used."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("matplotlib", "scipy", "cupy", "simpy")
BUDGET_S = 0.150
REPEATS = 5
HELP = """
import sys
from cli.main import main
sys.argv = ["cusim", "--help"]
try:
    main()
except SystemExit as stop:
    assert not stop.code, stop.code
"""
LIST = HELP + "sys.stderr.write(chr(10).join(sys.modules))"


def python(code: str, root: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)


def cpu_s(code: str, root: Path) -> float:
    """Processor time of an interpreter that runs `code`: unlike wall time, little disturbed by other work."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    python(code, root)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


@pytest.fixture(scope="module")
def loaded(root: Path) -> set[str]:
    done = python(LIST, root)
    assert "Usage: cusim" in done.stdout
    return set(done.stderr.splitlines())


@pytest.mark.parametrize("module", HEAVY)
def test_help_does_not_import(loaded: set[str], module: str) -> None:
    assert "cli.main" in loaded
    assert not {name for name in loaded if name.split(".")[0] == module}


def test_help_costs_little_more_than_an_interpreter(root: Path) -> None:
    bare = min(cpu_s("pass", root) for _ in range(REPEATS))
    full = min(cpu_s(HELP, root) for _ in range(REPEATS))
    assert full - bare < BUDGET_S, f"{1e3 * (full - bare):.0f} ms of processor time over a bare interpreter"
