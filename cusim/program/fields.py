"""Reads tables of user input field by field: strict about types, every mistake collected with its key."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from cusim.errors import Problems, did_you_mean

T = TypeVar("T")

#: Largest extent, count or step number that an input may give.
LARGEST = 2**31 - 1

_KINDS: tuple[tuple[type, str], ...] = (
    (bool, "a boolean"),
    (int, "an integer"),
    (float, "a number with a fraction"),
    (str, "a string"),
    (list, "an array"),
    (dict, "a table"),
    (type(None), "null"),
)


def kind_of(value: object) -> str:
    """What a user would call the type of a value read from TOML or JSON."""
    return next((name for type_, name in _KINDS if isinstance(value, type_)), type(value).__name__)


@dataclass(frozen=True, slots=True)
class Fields:
    """One table of an input, at *key* (empty for the whole file). Reading methods return None after a mistake.

    A method without a default reports a missing key; with one it returns the default instead.
    """

    data: Mapping[str, Any]
    key: str
    problems: Problems

    @classmethod
    def of(cls, value: object, key: str, problems: Problems) -> Fields | None:
        """The table *value* to read from; None, and a problem recorded, if it is no table."""
        if isinstance(value, Mapping):
            return cls(value, key, problems)
        problems.add(key or "the whole input", None, f"must be a table, not {kind_of(value)}")
        return None

    def at(self, name: str) -> str:
        """The full key of a field."""
        return f"{self.key}.{name}" if self.key else name

    def has(self, name: str) -> bool:
        """True when the field is given and not null."""
        return self.data.get(name) is not None

    def wrong(self, name: str, why: str) -> None:
        """Records that the field's value is refused."""
        self.problems.add(self.at(name), self.data.get(name), why)

    def missing(self, name: str, what: str) -> None:
        """Records that the field should have been given; *what* says how it looks."""
        self.problems.add(self.at(name), None, f"missing; give {what}")

    def only(self, allowed: Collection[str]) -> None:
        """Reports every key that is not among *allowed*."""
        for name in self.data:
            if name not in allowed:
                self.problems.add(self.at(str(name)), None, f"unknown key; {did_you_mean(str(name), allowed)}")

    def integer(self, name: str, default: int | None = None, *, low: int = 1, high: int = LARGEST) -> int | None:
        """An integer of *low* ... *high*; a boolean or a whole number written with a fraction is none."""
        if not self.has(name):
            return self._absent(name, default, "an integer")
        return _integer(self.data[name], self.at(name), self.problems, low, high)

    def number(self, name: str, *, low: float, high: float) -> float | None:
        """A finite number of *low* ... *high*."""
        value = self.data.get(name)
        if value is None:
            return self._absent(name, None, "a number")
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.wrong(name, f"must be a number, not {kind_of(value)}")
        elif isinstance(value, float) and not math.isfinite(value):
            self.wrong(name, "must be a finite number")
        elif not low <= value <= high:
            self.wrong(name, f"must be {low:g} to {high:g}")
        else:
            return float(value)
        return None

    def text(self, name: str, what: str = "a string", default: str | None = None) -> str | None:
        """A string that is not empty."""
        value = self.data.get(name)
        if value is None:
            return self._absent(name, default, what)
        if isinstance(value, str) and value:
            return value
        self.wrong(name, "must not be empty" if value == "" else f"must be a string, not {kind_of(value)}")
        return None

    def choice(self, name: str, allowed: Collection[str], default: str | None = None) -> str | None:
        """One of the words *allowed*."""
        value = self.text(name, f"one of {' '.join(allowed)}", default)
        if value is None or value in allowed:
            return value
        self.wrong(name, did_you_mean(value, allowed))
        return None

    def flag(self, name: str, default: bool | None = None) -> bool | None:
        """true or false."""
        value = self.data.get(name)
        if value is None:
            return self._absent(name, default, "true or false")
        if isinstance(value, bool):
            return value
        self.wrong(name, f"must be true or false, not {kind_of(value)}")
        return None

    def integers(self, name: str, lengths: Collection[int], *, low: int = 1) -> tuple[int, ...] | None:
        """An array of integers, as many as *lengths* allows."""
        sizes = " or ".join(map(str, lengths))
        values = self.array(name, f"an array of {sizes} integers")
        if values is None:
            return None
        if len(values) not in lengths:
            self.wrong(name, f"must hold {sizes} integers")
            return None
        pairs = enumerate(values)
        read = [_integer(v, f"{self.at(name)}[{i}]", self.problems, low, LARGEST) for i, v in pairs]
        return tuple(v for v in read if v is not None) if None not in read else None

    def array(self, name: str, what: str = "an array") -> list[Any] | None:
        """An array of anything."""
        value = self.data.get(name)
        if value is None:
            return self._absent(name, None, what)
        if isinstance(value, list):
            return value
        self.wrong(name, f"must be {what}, not {kind_of(value)}")
        return None

    def table(self, name: str, what: str = "a table") -> Fields | None:
        """A table inside this one."""
        if not self.has(name):
            return self._absent(name, None, what)
        return Fields.of(self.data[name], self.at(name), self.problems)

    def tables(self, name: str, what: str = "an array of tables") -> Iterable[Fields | None]:
        """The tables of an array; None in place of an entry that is no table."""
        values = self.array(name, what) or []
        return [Fields.of(value, f"{self.at(name)}[{i}]", self.problems) for i, value in enumerate(values)]

    def _absent(self, name: str, default: T | None, what: str) -> T | None:
        if default is None:
            self.missing(name, what)
        return default


def _integer(value: object, key: str, problems: Problems, low: int, high: int) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        problems.add(key, value, f"must be an integer, not {kind_of(value)}")
    elif not low <= value <= high:
        problems.add(key, value, f"must be {low} or more" if value < low else f"must be at most {high}")
    else:
        return value
    return None
