"""Who may import whom: the contracts of pyproject.toml hold, and each of them can fail."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("importlinter", reason="the import contracts need the dev extra")

RUN = "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"


def verdicts(where: Path) -> tuple[int, dict[str, str], str]:
    """Exit status, KEPT or BROKEN by contract, and all that was printed."""
    command = [sys.executable, "-c", RUN, "--no-cache", "--no-logo"]
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False)
    found = re.findall(r"^(\S.*?) (KEPT|BROKEN)\b", done.stdout, re.MULTILINE)
    return done.returncode, dict(found), done.stdout + done.stderr


def plant(package: Path, line: str) -> None:
    """Add an import to a room, whether it is one file or a folder of them."""
    target = package / "planted.py" if package.is_dir() else package.with_suffix(".py")
    with target.open("a", encoding="utf-8") as file:
        file.write(f"\n{line}\n")


@pytest.fixture
def copy(root: Path, tmp_path: Path) -> Path:
    for package in ("cusim", "backend_gpu", "cli"):
        shutil.copytree(root / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(root / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_contracts_are_kept(root: Path) -> None:
    status, found, printed = verdicts(root)
    assert status == 0, printed
    assert len(found) == 8, printed
    assert set(found.values()) == {"KEPT"}, printed


@pytest.mark.parametrize(
    ("room", "line", "contract"),
    [
        ("backend_gpu", "import cli", "cli -> backend_gpu -> cusim"),
        ("cusim/policies", "import cusim.engine", "the rooms of cusim stand in layers"),
        ("cusim/workloads", "import cusim.plot", "the rooms of cusim stand in layers"),
        ("cusim/errors", "import cusim.program", "no circles inside a package"),
        ("cusim/machine", "import cusim.program", "machine and trace know nobody but cusim.errors and cusim.files"),
        ("cusim/trace", "import cusim.machine", "machine and trace know nobody but cusim.errors and cusim.files"),
        ("cusim/program", "import cusim.machine", "the program does not know the machine"),
        ("backend_gpu", "import cusim.engine", "the GPU backend never imports the engine"),
        ("cusim/engine", "import cupy", "the model never imports CuPy or CUDA"),
        ("cusim/engine", "import matplotlib.figure", "matplotlib stays in cusim.plot"),
        ("cli", "import matplotlib", "matplotlib stays in cusim.plot"),
    ],
)
def test_a_planted_import_breaks_its_contract(copy: Path, room: str, line: str, contract: str) -> None:
    plant(copy / room, line)
    status, found, printed = verdicts(copy)
    assert status != 0
    assert found.get(contract) == "BROKEN", printed
