"""The table of defaults: tiles, splits, stages, flags and orders by workload, machine and number of rows."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from cusim.program.toml_kernel import parse_tile
from cusim.workloads.blocks import Architecture, Tiling

#: Policies that may have tiles, flags and orders of their own.
CONTENDERS = ("stream", "row", "tile")


@dataclass(frozen=True, slots=True)
class Entry:
    """Tilings of a workload's GEMMs for one range of M, by contender; *source* is where they come from."""

    tilings: Mapping[str, tuple[Tiling, ...]]
    source: str


@dataclass(frozen=True, slots=True)
class Rule:
    """Flags and order by contender for one range of M."""

    flags: Mapping[str, str]
    order: Mapping[str, str]
    source: str


#: The rule where a workload has none for a machine: no flags but what tile needs, and the hardware's own order.
PLAIN = Rule({"tile": "R"}, dict.fromkeys(CONTENDERS, "row"), "no defaults for this machine: row order")


def entry_for(workload: str, machine: str, m: int) -> Entry | None:
    """The tilings of *workload* with *m* rows on *machine*; None where the table has none."""
    found = _find("entry", workload, machine, m)
    if found is None:
        return None
    tilings = {name: _tilings(found.get(name, found["stream"])) for name in CONTENDERS}
    return Entry(tilings, _table()["sources"][found["source"]])


def rule_for(workload: str, machine: str, m: int) -> Rule:
    """Flags and orders of *workload* with *m* rows on *machine*."""
    found = _find("rule", workload, machine, m)
    if found is None:
        return PLAIN
    sources = "; ".join(_table()["sources"][key] for key in found["source"])
    return Rule({"stream": "", **found["flags"]}, found["order"], sources)


def architecture_of(machine: str) -> Architecture | None:
    """The architecture of a machine, by its name; None where it is not known."""
    return next((rule for rule in architectures() if family(machine) in rule.machines), None)


@functools.cache
def architectures() -> tuple[Architecture, ...]:
    """Every architecture that has a rule for its blocks."""
    tables = _table()["architecture"]
    return tuple(Architecture(**{**table, "machines": tuple(table["machines"])}) for table in tables)


def machines_of(workload: str) -> tuple[str, ...]:
    """Machines for which *workload* has tilings, sorted."""
    return tuple(sorted({m for e in _table()["entry"] if e["workload"] == workload for m in e["machines"]}))


def family(machine: str) -> str:
    """The preset that a machine's name begins with: ``a100`` for ``a100-80gb``."""
    return machine.lower().partition("-")[0]


def _find(kind: str, workload: str, machine: str, m: int) -> dict[str, Any] | None:
    for row in _table()[kind]:
        first, last = row["m"][0], row["m"][-1] if len(row["m"]) == 2 else m
        if row["workload"] == workload and family(machine) in row["machines"] and first <= m <= last:
            return dict(row)
    return None


def _tilings(contender: Mapping[str, Any]) -> tuple[Tiling, ...]:
    found = []
    for text, split_k, stages in zip(contender["tile"], contender["split"], contender["stages"], strict=True):
        tile = parse_tile(text)
        assert tile is not None, text
        found.append(Tiling(tile, split_k, stages))
    return tuple(found)


@functools.cache
def _table() -> dict[str, Any]:
    text = (resources.files("cusim") / "workloads" / "defaults.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
