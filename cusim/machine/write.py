"""A machine as a TOML file of the user's own, which :func:`cusim.machine.load.load_machine` reads back equal."""

from __future__ import annotations

import json
from collections.abc import Sequence

from cusim.machine.calibration import Calibration
from cusim.machine.machine import SCHEMA, Machine, leaves
from cusim.machine.quantity import Quantity, Value
from cusim.machine.sections import SECTIONS

_HEAD = "# Give this file as --machine FILE.toml. Beside each value: where it comes from."
_IDS_A_LINE = 20


def machine_to_toml(machine: Machine) -> str:
    """The machine as TOML text (``cusim.machine/2``), a table for each section and a line for each number."""
    texts = {"schema": SCHEMA, "name": machine.name, "gpu": machine.gpu, "arch": machine.arch, "state": machine.state}
    lines = [_HEAD, "", *(f"{key} = {_text(value)}" for key, value in texts.items())]
    lines += [f"overrides = [{', '.join(map(_text, machine.overrides))}]"] if machine.overrides else []
    lines.append(_leaf("band_pct", machine.provenance["band_pct"]))
    lines += [] if machine.calibration is None else _calibration(machine.calibration)
    for section in SECTIONS:
        lines += ["", f"[{section}]"]
        lines += [_leaf(leaf, machine.provenance[f"{section}.{leaf}"]) for leaf in leaves(section)]
    return "\n".join(lines) + "\n"


def _calibration(calibration: Calibration) -> list[str]:
    lines = ["", "[calibration]", f"date = {_text(calibration.date)}"]
    for used in calibration.to_json()["recordings"]:
        lines += ["", "[[calibration.recordings]]"]
        lines += [f"{name} = {_plain(value)}" for name, value in used.items()]
    return lines


def _leaf(name: str, quantity: Quantity) -> str:
    parts = [
        f"value = {_value(quantity.value)}",
        f"unit = {_text(quantity.unit)}",
        f"status = {_text(quantity.status)}",
    ]
    parts += [] if quantity.stderr is None else [f"stderr = {quantity.stderr!r}"]
    parts += [] if quantity.record is None else [f"record = {_text(quantity.record)}"]
    parts.append(f"source = {_text(quantity.source)}")
    return f"{name} = {{ {', '.join(parts)} }}"


def _value(value: Value) -> str:
    if isinstance(value, str):
        return _text(value)
    return _ids(value) if isinstance(value, tuple) else repr(value)


def _plain(value: str | int | list[str]) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    return _text(value) if isinstance(value, str) else str(value)


def _ids(ids: Sequence[int]) -> str:
    rows = [", ".join(map(str, ids[at : at + _IDS_A_LINE])) for at in range(0, len(ids), _IDS_A_LINE)]
    return "[\n  " + ",\n  ".join(rows) + ",\n]" if len(rows) > 1 else f"[{', '.join(rows)}]"


def _text(value: str) -> str:
    """A TOML basic string: JSON's escapes, but DEL must be escaped too."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
