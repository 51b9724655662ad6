"""C identifiers for kernels and dependences, whatever characters their names hold; no two share one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from cusim.program.depends import TileDep
from cusim.program.program import Program


def kernel_identifiers(program: Program) -> dict[str, str]:
    """The identifier of every kernel, by its name."""
    names = [kernel.name for kernel in program.kernels]
    return dict(zip(names, distinct(names), strict=True))


def dependence_identifiers(deps: Sequence[TileDep]) -> tuple[str, ...]:
    """The identifier of each dependence: producer and consumer, and the buffer where that alone tells two apart."""
    names = [dep.name for dep in deps]
    wanted = [dep.name if names.count(dep.name) == 1 else f"{dep.name}_{dep.buffer}" for dep in deps]
    return distinct(wanted)


def distinct(names: Iterable[str]) -> tuple[str, ...]:
    """An identifier for each name, in order; where two would be alike, the later one gets a number."""
    taken: set[str] = set()
    found = []
    for name in names:
        stem = identifier(name)
        choice, number = stem, 1
        while choice in taken:
            number += 1
            choice = f"{stem}_{number}"
        taken.add(choice)
        found.append(choice)
    return tuple(found)


def identifier(name: str) -> str:
    """The name with every other character than ASCII letters, digits and ``_`` replaced by ``_``.

    Only valid as the tail of an identifier, since it may begin with a digit.
    """
    return re.sub(r"[^A-Za-z0-9_]", "_", name) or "_"
