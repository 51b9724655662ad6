"""Kernel names as TOML programs allow them, from the demangled names that profilers print."""

from __future__ import annotations

import re
from collections.abc import Iterable

_LONGEST = 48
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]+")
_UNNAMED = re.compile(r"\(anonymous namespace\)|<unnamed>|\(anonymous class\)|\{[^{}]*\}")


def short_name(demangled: str) -> str:
    """The function's own name: no return type, namespaces, template arguments or parameters; never empty."""
    text = _UNNAMED.sub("", demangled)
    bare, depth = [], 0
    for letter in text:
        if letter == "(" and depth == 0:
            break
        depth += (letter == "<") - (letter == ">" and depth > 0)
        if depth == 0 and letter != ">":
            bare.append(letter)
    words = "".join(bare).split()
    last = words[-1] if words else ""
    parts = [part for part in last.split("::") if part]
    name = _FOREIGN.sub("_", parts[-1] if parts else "").strip("_-")[:_LONGEST].rstrip("_-")
    if not name:
        return "kernel"
    return name if name[0].isalpha() else f"k_{name}"


def unique_names(demangled: Iterable[str]) -> list[str]:
    """Short names, one for each launch, in order; those that come again get ``-2``, ``-3`` ..."""
    taken: set[str] = set()
    counts: dict[str, int] = {}
    found = []
    for full in demangled:
        short = short_name(full)
        number = counts.get(short, 0) + 1
        name = short if number == 1 else f"{short}-{number}"
        while name in taken:
            number += 1
            name = f"{short}-{number}"
        counts[short] = number
        taken.add(name)
        found.append(name)
    return found
