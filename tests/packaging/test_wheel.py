"""The wheel holds three packages with their data and nothing else."""

import subprocess
import sys
import tomllib
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest

PACKAGES = {"cusim", "backend_gpu", "cli"}


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("build", reason="building the wheel needs the dev extra")
    pytest.importorskip("hatchling", reason="building the wheel needs the dev extra")
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with ZipFile(wheel) as archive:
        return set(archive.namelist())


def read(wheel: Path, ending: str) -> str:
    with ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(ending))
        return archive.read(name).decode()


def project(root: Path) -> dict[str, object]:
    table: dict[str, object] = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return table


def test_top_level_is_the_three_packages(root: Path, names: set[str]) -> None:
    info = f"cusim_tiles-{project(root)['version']}.dist-info"
    assert {name.split("/")[0] for name in names} == PACKAGES | {info}


@pytest.mark.parametrize("room", ["machines", "workloads", "examples"])
def test_data_of_a_room_is_shipped(root: Path, names: set[str], room: str) -> None:
    expected = {path.relative_to(root).as_posix() for path in (root / "cusim" / room).glob("*.toml")}
    assert expected, f"cusim/{room} holds no TOML file"
    assert expected <= names


def test_every_source_file_is_shipped_and_no_leftover(root: Path, names: set[str]) -> None:
    files = (path for package in PACKAGES for path in (root / package).rglob("*") if path.is_file())
    expected = {path.relative_to(root).as_posix() for path in files if path.suffix != ".pyc"}
    assert {name for name in names if ".dist-info/" not in name} == expected


def test_types_are_announced(names: set[str]) -> None:
    assert "cusim/py.typed" in names


def test_the_command_and_the_base_dependencies(root: Path, wheel: Path) -> None:
    assert "cusim = cli.main:main" in read(wheel, ".dist-info/entry_points.txt").splitlines()
    metadata = Parser().parsestr(read(wheel, ".dist-info/METADATA"))
    assert metadata["Name"] == "cusim-tiles"
    assert metadata["License-Expression"] == "MIT"
    base = {line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line}
    dependencies = project(root)["dependencies"]
    assert isinstance(dependencies, list)
    assert base == set(dependencies)


def test_contents_pass_the_public_checker(root: Path, wheel: Path) -> None:
    pytest.importorskip("check_wheel_contents", reason="needs the dev extra")
    config = str(root / "pyproject.toml")
    command = [sys.executable, "-m", "check_wheel_contents", "--config", config, str(wheel)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
