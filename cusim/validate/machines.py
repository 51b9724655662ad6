"""The machines that published times are judged on: a preset and a short list of settings, each with its reason."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from cusim.errors import InputError, Problems, did_you_mean
from cusim.machine.load import load_machine
from cusim.machine.machine import Machine
from cusim.machine.override import corrected

SCHEMA = "cusim.published-machines/1"
_KEYS = ("gpu", "key", "value", "reason", "fitted", "grid")


@dataclass(frozen=True, slots=True)
class MachineSetting:
    """One number of a machine, *value* as ``--set`` reads it, and why it differs from the preset's.

    *fitted* is true where it was chosen on the very rows that are judged; then *grid* holds the values that are tried
    when a shape is left out (:mod:`cusim.validate.held_out`).
    """

    key: str
    value: str
    reason: str
    fitted: bool = False
    grid: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The setting as ``--set`` takes it."""
        return f"{self.key}={self.value}"


def settings_of(gpu: str) -> tuple[MachineSetting, ...]:
    """The settings that the preset *gpu* is judged with; empty where there are none."""
    return _shipped().get(gpu, ())


def judged_machine(gpu: str, instead: Mapping[str, str] | None = None) -> Machine:
    """The preset *gpu* with its settings; *instead* gives other values for some of their keys.

    Raises InputError for an unknown preset and for a setting that a machine does not have.
    """
    chosen = instead or {}
    texts = [f"{s.key}={chosen.get(s.key, s.value)}" for s in settings_of(gpu)]
    return corrected(load_machine(gpu), texts) if texts else load_machine(gpu)


def parse_settings(text: str, source: str) -> dict[str, tuple[MachineSetting, ...]]:
    """Settings by GPU from the TOML *text*; InputError naming *source* for keys missing, unknown or mistyped, and
    for settings that the machine refuses, with each value of their grids.
    """
    problems = Problems(source)
    document = tomllib.loads(text)
    if document.get("schema") != SCHEMA:
        problems.add("schema", document.get("schema"), f'must be "{SCHEMA}"')
    found: dict[str, list[MachineSetting]] = {}
    for place, table in enumerate(document.get("setting", [])):
        setting = _setting(table, f"setting[{place}]", problems)
        if setting is not None:
            found.setdefault(table["gpu"], []).append(setting)
    for gpu, settings in found.items():
        _try(gpu, settings, problems)
    problems.raise_if_any()
    return {gpu: tuple(settings) for gpu, settings in found.items()}


def _setting(table: Mapping[str, Any], key: str, problems: Problems) -> MachineSetting | None:
    before = len(problems.found)
    for name in table:
        if name not in _KEYS:
            problems.add(f"{key}.{name}", table[name], f"unknown key: {did_you_mean(name, _KEYS)}")
    for name in ("gpu", "key", "value", "reason"):
        if not isinstance(table.get(name), str) or not table[name]:
            problems.add(f"{key}.{name}", table.get(name), "must be a text that is not empty")
    fitted, grid = table.get("fitted", False), table.get("grid", [])
    if not isinstance(fitted, bool):
        problems.add(f"{key}.fitted", fitted, "must be true or false")
    if not isinstance(grid, list) or not all(isinstance(item, str) for item in grid) or bool(grid) != (fitted is True):
        problems.add(f"{key}.grid", grid, "must be a list of texts where fitted is true, and absent elsewhere")
    if len(problems.found) > before:
        return None
    return MachineSetting(table["key"], table["value"], table["reason"], fitted, tuple(grid))


def _try(gpu: str, settings: list[MachineSetting], problems: Problems) -> None:
    """Applies every setting with every value that it may take, and records what the machine refuses."""
    try:
        machine = load_machine(gpu)
    except InputError as error:
        problems.extend(error, f"{gpu}: ")
        return
    for setting in settings:
        for value in (setting.value, *setting.grid):
            try:
                corrected(machine, [f"{setting.key}={value}"])
            except InputError as error:
                problems.extend(error, f"{gpu}: ")


@functools.cache
def _shipped() -> dict[str, tuple[MachineSetting, ...]]:
    name = "machines.toml"
    text = (resources.files("cusim") / "validate" / "published" / name).read_text(encoding="utf-8")
    return parse_settings(text, name)
