"""Machines by name (presets shipped with cusim) or from a file."""

from __future__ import annotations

import functools
import json
import tomllib
from importlib import resources
from pathlib import Path

from cusim.errors import InputError, did_you_mean, refuse
from cusim.files import read_file
from cusim.machine.machine import Machine
from cusim.machine.parse import machine_from_json

_SUFFIXES = (".toml", ".json")


def machine_names() -> tuple[str, ...]:
    """The names of the presets, sorted."""
    folder = resources.files("cusim") / "machines"
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")))


def load_machine(name_or_path: str | Path) -> Machine:
    """The preset of that name, or the machine in that .toml or .json file.

    Raises InputError with everything that is wrong: an unknown name, a missing file, a leaf that is missing,
    unknown or mistyped.
    """
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or "/" in text or text.endswith(_SUFFIXES):
        return _from_file(Path(name_or_path))
    name = text.lower()
    if name not in machine_names():
        why = f"unknown machine: {did_you_mean(name, machine_names())}  (or the path of a .toml or .json file)"
        raise refuse("--machine", "machine", text, why)
    return _preset(name)


@functools.cache
def _preset(name: str) -> Machine:
    text = (resources.files("cusim") / "machines" / f"{name}.toml").read_text(encoding="utf-8")
    return machine_from_toml(text, f"machine {name}")


def _from_file(path: Path) -> Machine:
    try:
        text = read_file(path).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "not a UTF-8 text"
        raise refuse("--machine", "machine", str(path), f"cannot be read: {reason}") from None
    if path.suffix == ".json":
        return _from_json_text(text, str(path))
    return machine_from_toml(text, str(path))


def machine_from_toml(text: str, source: str) -> Machine:
    """The machine that a TOML *text* describes; raises InputError naming *source*."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise _syntax(source, "TOML", error) from None
    return machine_from_json(document, source)


def _from_json_text(text: str, source: str) -> Machine:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _syntax(source, "JSON", error) from None
    if not isinstance(document, dict):
        raise refuse(source, "document", None, "must be a JSON object")
    return machine_from_json(document, source)


def _syntax(source: str, form: str, error: ValueError | RecursionError) -> InputError:
    return refuse(source, "file", None, f"is not {form}: {str(error).partition(';')[0]}")
