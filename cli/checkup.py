"""What ``cusim doctor`` looks at, as plain values that go into text and JSON alike."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

#: Distributions that cusim cannot do without.
NEEDED = ("numpy", "simpy", "click", "rich", "cattrs", "matplotlib")
#: Top-level modules that cusim installs; their names are common enough to be taken by somebody else.
MODULES = ("cusim", "backend_gpu", "cli")
#: Another package on the public index, which is not ours though its name is.
FOREIGN = "cusim"
Owners: TypeAlias = Mapping[str, Sequence[str]]


def examine() -> dict[str, Any]:
    """Versions, where modules come from, clashes, the compiler and the GPU."""
    from cusim.report.version import DISTRIBUTION, cusim_version, installed_version

    where = {name: module_folder(name) for name in MODULES}
    return {
        "schema": "cusim.doctor/1",
        "cusim": cusim_version(),
        "distribution": DISTRIBUTION if installed_version(DISTRIBUTION) else None,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: installed_version(name) for name in NEEDED},
        "modules": {name: str(folder) if folder else None for name, folder in where.items()},
        "clashes": clashes(where, importlib.metadata.packages_distributions(), installed_version(FOREIGN)),
        "compiler": _compiler(),
        "gpu": _gpu(),
    }


def module_folder(name: str) -> Path | None:
    """The folder that ``import name`` would read, without importing; None when there is no such module."""
    spec = importlib.util.find_spec(name)
    if spec is None:
        return None
    places = list(spec.submodule_search_locations or ()) or [spec.origin or ""]
    return Path(places[0]).resolve()


def clashes(where: Mapping[str, Path | None], owners: Owners, foreign: str | None = None) -> list[str]:
    """What other packages do to cusim's names: modules missing, from elsewhere, or installed twice.

    *owners* maps a module to the distributions that installed it; *foreign* is the version of :data:`FOREIGN`, if
    that package is installed.
    """
    found = []
    if foreign is not None:
        found.append(f"distribution {FOREIGN} {foreign} is installed: another package under our name; uninstall it")
    home = Path(__file__).resolve().parent.parent
    for name, folder in where.items():
        if folder is None:
            found.append(f"module {name} cannot be found: the installation is incomplete")
        elif folder.parent != home:
            found.append(f"module {name} comes from {folder}, cusim from {home}: another package has the name")
        others = sorted(set(owners.get(name, ())))
        if len(others) > 1:
            found.append(f"module {name} is installed by {' and '.join(others)}: they overwrite each other")
    return found


def _compiler() -> str | None:
    """First line of ``g++ --version``; None when there is no g++ or it does not answer."""
    path = shutil.which("g++")
    if path is None:
        return None
    try:
        answer = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.splitlines()[0] if answer.stdout else None


def _gpu() -> dict[str, Any]:
    from backend_gpu.detect import detect

    gpu = detect()
    return {
        "usable": gpu.usable,
        "parts": [asdict(part) for part in (gpu.driver, gpu.cupy, gpu.nvrtc)],
        "devices": [asdict(device) for device in gpu.devices],
    }


def gpu_advice(instead: str = "--device null runs the whole path without a GPU.") -> str:
    """What stands in the way of a GPU, which extra to install, and what works *instead*; empty when nothing does."""
    from backend_gpu.detect import detect

    gpu = detect()
    if gpu.usable:
        return ""
    words = ["no usable GPU, nothing was run."]
    for part in (gpu.driver, gpu.cupy, gpu.nvrtc):
        if part.problem:
            words.append(f"{part.name}: {part.problem}{f'; {part.fix}' if part.fix else ''}.")
    words.append(instead)
    return " ".join(words)
