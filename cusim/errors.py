"""Errors that people read: every mistake of an input at once, each with its key, value and what is allowed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in an input: the key where it stands, the value given and why it is refused."""

    key: str
    given: object
    why: str

    def line(self) -> str:
        """The problem as one line of text, without its source."""
        left = self.key if self.given is None else f"{self.key} = {_shown(self.given)}"
        return f"{left}   {self.why}"


class CusimError(Exception):
    """Base of every error that cusim raises on purpose; the command line prints it without a traceback."""


class InputError(CusimError):
    """An input that cannot be used: *source* names the file or the command line, *problems* everything wrong."""

    def __init__(self, source: str, problems: Iterable[Problem]) -> None:
        self.source = source
        self.problems = tuple(problems)
        super().__init__(self.text())

    def text(self) -> str:
        """The whole message: a headline, then one aligned line for each problem."""
        count = len(self.problems)
        plural = "error" if count == 1 else "errors"
        heads = [p.key if p.given is None else f"{p.key} = {_shown(p.given)}" for p in self.problems]
        width = min(max((len(head) for head in heads), default=0), 48)
        lines = [f"{count} {plural} in {self.source}, nothing was run"]
        lines += [f"  {head:<{width}}   {p.why}" for head, p in zip(heads, self.problems, strict=True)]
        return "\n".join(lines)


@dataclass(slots=True)
class Problems:
    """Collects the mistakes of one source, so that all of them are reported together."""

    source: str
    found: list[Problem] = field(default_factory=list)

    def add(self, key: str, given: object, why: str) -> None:
        """Records one mistake; *given* is None where a key is missing rather than wrong."""
        self.found.append(Problem(key, given, why))

    def extend(self, other: InputError, prefix: str = "") -> None:
        """Takes over the mistakes of *other*, their keys prefixed."""
        self.found += [Problem(prefix + p.key, p.given, p.why) for p in other.problems]

    def raise_if_any(self) -> None:
        """Raises InputError with everything recorded; returns when there is nothing."""
        if self.found:
            raise InputError(self.source, self.found)


def refuse(source: str, key: str, given: object, why: str) -> InputError:
    """An InputError with a single problem, ready to be raised."""
    return InputError(source, [Problem(key, given, why)])


def did_you_mean(word: str, allowed: Iterable[str]) -> str:
    """What to say of an unknown *word*: the closest allowed one, if any, and the whole list."""
    names = sorted(set(allowed))
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]}?  " if close else ""
    return f"{hint}allowed: {' '.join(names) if names else 'nothing'}"


def _shown(value: object) -> str:
    """A value as the user would have typed it in TOML, cut to a readable length."""
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, str):
        text = f'"{value}"'
    else:
        try:
            text = str(value)
        except ValueError:  # Python refuses to print integers of thousands of digits
            text = "an integer of thousands of digits"
    return text if len(text) <= 60 else text[:57] + "..."
