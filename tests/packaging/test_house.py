"""The layout stays as fixed, nothing in it names a machine, and what is pinned is pinned exactly."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

DIRECTORIES = {".ci", "backend_gpu", "cli", "cusim", "figures", "tests", "traces"}
# Built from pieces, or this file would be the first to be found.
PLACES = "|".join(("home", "root", "work", "tmp", "Users", "mnt"))
ABSOLUTE = re.compile(rf"(?<![\w.}})\]*-])/(?:{PLACES})/".encode())
PIN = re.compile(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!-]+")


@pytest.fixture(scope="module")
def tracked(root: Path) -> list[Path]:
    """What is in the repository or would be with the next `git add`, relative to its top."""
    if shutil.which("git") is None or not (root / ".git").exists():
        pytest.skip("not a git checkout: which files are tracked is unknown")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"git cannot list this checkout: {done.stderr.strip()}")
    paths = [Path(name) for name in done.stdout.split("\0") if name]
    return [path for path in paths if (root / path).is_file()]


def normal(name: str) -> str:
    """A distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_top_level_directories_are_the_fixed_ones(tracked: list[Path]) -> None:
    assert {path.parts[0] for path in tracked if len(path.parts) > 1} <= DIRECTORIES


def test_no_file_names_a_directory_of_somebodys_machine(root: Path, tracked: list[Path]) -> None:
    found = {str(path): ABSOLUTE.findall((root / path).read_bytes()) for path in tracked}
    assert not {path: hits for path, hits in found.items() if hits}


@pytest.mark.parametrize("place", PLACES.split("|"))
@pytest.mark.parametrize("before", ["", " ", '"', "file://", "=", "-I "])
def test_the_search_for_directories_finds_them(place: str, before: str) -> None:
    assert ABSOLUTE.search(f"{before}/{place}/someone/cusim".encode())
    assert not ABSOLUTE.search(f"build/{place}/out.json".encode())


def test_constraints_are_exact_and_name_no_address(root: Path) -> None:
    lines = (root / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert pins
    assert not [line for line in pins if not PIN.fullmatch(line)]


def test_everything_installed_by_make_is_constrained(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = project["dependencies"] + project["optional-dependencies"]["dev"]
    named = {normal(re.split(r"[<>=!~ \[;]", line, maxsplit=1)[0]) for line in wanted}
    lines = (root / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {normal(line.split("==")[0]) for line in lines if "==" in line}
    assert named <= pinned


def test_ruff_is_one_version(root: Path) -> None:
    config = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    lines = (root / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert f"ruff{config['tool']['ruff']['required-version']}" in lines
