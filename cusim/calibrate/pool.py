"""Micro-benchmarks of several days taken together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cusim.calibrate.micro import Micro, Samples, read_micro
from cusim.errors import InputError, Problems
from cusim.machine.machine import Machine


@dataclass(frozen=True, slots=True)
class Pool:
    """Micro-benchmarks of one GPU taken on one day or more: a quantity differs more from day to day than in a day."""

    files: tuple[Micro, ...]

    @property
    def names(self) -> list[str]:
        """Every quantity that any file has, in their order."""
        return list(dict.fromkeys(name for micro in self.files for name in micro.quantities))

    def samples(self, names: Iterable[str]) -> list[tuple[str, Samples]]:
        """The quantities of these names, of every file that has them."""
        return [(name, micro.quantities[name]) for name in names for micro in self.files if name in micro.quantities]

    def rows(self, table: str) -> list[Sequence[Any]]:
        """The rows of a table, of every file."""
        return [row for micro in self.files for row in micro.tables.get(table, ())]

    @property
    def said(self) -> str:
        """The files' names."""
        return ", ".join(micro.file for micro in self.files)

    @property
    def place(self) -> str:
        """Where and when they were taken."""
        return "; ".join(dict.fromkeys(micro.place for micro in self.files))

    @property
    def record(self) -> str:
        """The files' digests, joined."""
        return "+".join(micro.digest for micro in self.files)


def read_pool(paths: Sequence[Path], machine: Machine) -> Pool:
    """The micro-benchmarks in these files, taken on the GPU that *machine* is; InputError with all that is wrong."""
    problems = Problems("the micro-benchmarks")
    found: list[Micro] = []
    for path in paths:
        try:
            micro = read_micro(path, machine)
        except InputError as error:
            problems.extend(error, f"{path}: ")
            continue
        if micro.digest in {other.digest for other in found}:
            problems.add(str(path), None, "holds the same bytes as another of the files; give it once")
        found.append(micro)
    problems.raise_if_any()
    return Pool(tuple(found))
