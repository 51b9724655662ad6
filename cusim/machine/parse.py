"""From a mapping (TOML file or JSON document) to a Machine, strictly and with all mistakes at once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

from cusim.errors import Problems, did_you_mean
from cusim.machine.calibration import calibration_from
from cusim.machine.check import check_values
from cusim.machine.machine import SCHEMA, STATES, Machine, State, leaves
from cusim.machine.quantity import (
    IDS,
    STATUSES,
    WORD,
    Quantity,
    Status,
    UnitError,
    Value,
    kind_of,
    to_internal,
)
from cusim.machine.sections import PLACEMENTS, SECTIONS

_TEXTS = ("name", "gpu", "arch")
_OPTIONAL = ("digest", "overrides", "calibration")
_TOP = ("schema", *_TEXTS, "state", "band_pct", *_OPTIONAL, *SECTIONS)
_LEAF_NEEDED = ("value", "unit", "source", "status")
_LEAF_ALLOWED = (*_LEAF_NEEDED, "stderr", "record")


def machine_from_json(document: Mapping[str, Any], source: str = "machine JSON") -> Machine:
    """The Machine of a cusim.machine/2 *document*; raises InputError naming *source* and every mistake."""
    problems = Problems(source)
    if document.get("schema") != SCHEMA:
        problems.add("schema", document.get("schema"), f'must be "{SCHEMA}"')
    if "schema" in document:
        problems.raise_if_any()  # a file of another kind would be wrong in every line
    _unknown(problems, "", document, _TOP)
    texts: dict[str, Any] = {key: _text(problems, key, document) for key in _TEXTS}
    state = cast(State, _one_of(problems, "state", document.get("state"), STATES))
    reader = _Reader(problems)
    band = reader.leaf("band_pct", "band_pct", document.get("band_pct"))
    values = {section: reader.section(section, document.get(section)) for section in SECTIONS}
    overrides = _overrides(problems, document.get("overrides", []))
    calibration = calibration_from(document.get("calibration"), problems)
    if not problems.found:
        reader.resolve_order(values)
        check_values(problems, values)
    problems.raise_if_any()
    parts: dict[str, Any] = {section: kind(**values[section]) for section, kind in SECTIONS.items()}
    return Machine(
        **texts,
        **parts,
        state=state,
        band_pct=band,
        provenance=reader.provenance,
        overrides=overrides,
        calibration=calibration,
    )


class _Reader:
    """Reads leaves one by one and keeps the provenance of those that are right."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self.provenance: dict[str, Quantity] = {}

    def section(self, section: str, given: object) -> dict[str, Any]:
        """The values of one section, by leaf."""
        names = leaves(section)
        if not isinstance(given, Mapping):
            why = f"a table with {len(names)} leaves is needed"
            self.problems.add(section, given, "missing: " + why if given is None else why)
            return {}
        _unknown(self.problems, section + ".", given, names)
        return {name: self.leaf(f"{section}.{name}", name, given.get(name)) for name in names}

    def leaf(self, path: str, name: str, given: object) -> Any:
        """The internal value of one leaf, or None after a mistake."""
        before = len(self.problems.found)
        if not isinstance(given, Mapping):
            form = '{ value = .., unit = "..", source = "..", status = ".." }'
            self.problems.add(path, given, f"missing: {form}" if given is None else f"must be {form}")
            return None
        _unknown(self.problems, path + ".", given, _LEAF_ALLOWED)
        for key in _LEAF_NEEDED:
            if key not in given:
                self.problems.add(f"{path}.{key}", None, "missing")
        quantity = self._quantity(path, given)
        value = self._value(path, name, given)
        if len(self.problems.found) > before:
            return None
        self.provenance[path] = quantity
        return value

    def resolve_order(self, values: dict[str, dict[str, Any]]) -> None:
        """Replaces the word "ascending" by the ids it stands for, once the number of SMs is known."""
        if values["dispatch"]["sm_order"] == "ascending":
            order = tuple(range(values["limits"]["sms"]))
            values["dispatch"]["sm_order"] = order
            quantity = self.provenance["dispatch.sm_order"]
            self.provenance["dispatch.sm_order"] = Quantity(
                order, quantity.unit, quantity.source, quantity.stderr, quantity.status, quantity.record
            )

    def _quantity(self, path: str, given: Mapping[str, Any]) -> Quantity:
        for key in ("unit", "source"):
            if key in given and not (isinstance(given[key], str) and given[key].strip()):
                self.problems.add(f"{path}.{key}", given[key], "must be a text that says something")
        if "status" in given:
            _one_of(self.problems, f"{path}.status", given["status"], STATUSES)
        record = given.get("record")
        if record is not None and not isinstance(record, str):
            self.problems.add(f"{path}.record", record, "must be the id of a calibration record")
        stderr = given.get("stderr")
        if stderr is not None and not (_is_number(stderr) and math.isfinite(stderr) and stderr >= 0):
            self.problems.add(f"{path}.stderr", stderr, "must be a number, 0 or more")
        value = given.get("value")
        kept = tuple(value) if isinstance(value, list) else cast(Value, value)
        status = cast(Status, given.get("status"))
        return Quantity(kept, str(given.get("unit")), str(given.get("source")), stderr, status, record)

    def _value(self, path: str, name: str, given: Mapping[str, Any]) -> Any:
        if "value" not in given or not isinstance(given.get("unit"), str):
            return None
        value, kind = given["value"], kind_of(name)
        if kind in (WORD, IDS) and given["unit"] not in kind.units:
            self.problems.add(f"{path}.unit", given["unit"], did_you_mean(given["unit"], kind.units))
        if kind is WORD:
            return _one_of(self.problems, f"{path}.value", value, PLACEMENTS)
        if kind is IDS:
            return self._ids(path, value)
        if not _is_number(value):
            self.problems.add(f"{path}.value", value, "must be a number")
            return None
        try:
            return to_internal(kind, value, given["unit"])
        except UnitError as error:
            key = "value" if given["unit"] in kind.units else "unit"
            self.problems.add(f"{path}.{key}", given[key], str(error))
            return None

    def _ids(self, path: str, value: object) -> Any:
        if value == "ascending":
            return value
        if isinstance(value, list | tuple) and all(type(item) is int for item in value):
            return tuple(value)
        self.problems.add(f"{path}.value", value, 'must be a list of SM ids, or "ascending"')
        return None


def _unknown(problems: Problems, prefix: str, given: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
    for key in given:
        if key not in allowed:
            problems.add(f"{prefix}{key}", given[key], f"unknown key: {did_you_mean(str(key), allowed)}")


def _text(problems: Problems, key: str, document: Mapping[str, Any]) -> str:
    given = document.get(key)
    if not (isinstance(given, str) and given.strip()):
        problems.add(key, given, "missing: a text is needed" if given is None else "must be a text")
    return str(given)


def _one_of(problems: Problems, key: str, given: object, allowed: tuple[str, ...]) -> str | None:
    if isinstance(given, str) and given in allowed:
        return given
    problems.add(key, given, did_you_mean(given if isinstance(given, str) else "", allowed))
    return None


def _overrides(problems: Problems, given: object) -> tuple[str, ...]:
    if isinstance(given, list | tuple) and all(isinstance(item, str) for item in given):
        return tuple(given)
    problems.add("overrides", given, "must be a list of texts")
    return ()


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
