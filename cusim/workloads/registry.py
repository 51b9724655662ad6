"""Workloads by name, for a machine and a number of rows, with the user's own tile and split where they are given."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from cusim.errors import Problems, did_you_mean, refuse
from cusim.program.fields import LARGEST
from cusim.program.program import Program
from cusim.program.toml_kernel import parse_tile
from cusim.workloads.blocks import Architecture, Tiling, fitting
from cusim.workloads.defaults import (
    CONTENDERS,
    Entry,
    architecture_of,
    architectures,
    entry_for,
    machines_of,
    rule_for,
)
from cusim.workloads.fig1 import NAME as FIG1
from cusim.workloads.fig1 import fig1_workload
from cusim.workloads.mlp import MLPS, Mlp
from cusim.workloads.shipped import SHIPPED, shipped_workload
from cusim.workloads.workload import Choice, Workload

T = TypeVar("T")

#: Rows of an MLP where none are asked for.
DEFAULT_M = 1024


@dataclass(frozen=True, slots=True)
class _Request:
    """What the user asked for, parsed; *problems* collects what is wrong with it."""

    mlp: Mlp
    machine: str
    m: int
    tiles: tuple[tuple[int, int, int], ...] | None
    splits: tuple[int, ...] | None
    contender: str | None
    problems: Problems


def workload_names() -> tuple[str, ...]:
    """Every name that :func:`build_workload` takes, sorted."""
    return tuple(sorted((*MLPS, FIG1, *SHIPPED)))


def build_workload(
    name: str,
    machine_name: str,
    *,
    m: int | None = None,
    tile: str | None = None,
    split_k: str | int | None = None,
    contender: str | None = None,
    architecture: str | None = None,
) -> Workload:
    """The workload *name* as the machine *machine_name* runs it best, so far as is known.

    *tile* is ``MxNxK`` for every GEMM or one each, joined by ``+``; *split_k* a number likewise. They replace the
    table's for every policy. *contender* (``stream``, ``row`` or ``tile``; ``overlap`` is row) gives every policy the
    tiles of that one, so that only synchronisation differs. *architecture* (``sm_90``) says what a machine is that the
    table does not know: it is then taken as one that it knows of that architecture.
    Raises InputError with everything that is wrong, also where nothing is known for the machine, and TypeError for
    arguments of another type.
    """
    _check_types(name, machine_name, m, {"tile": tile, "contender": contender, "architecture": architecture}, split_k)
    if name not in workload_names():
        why = f"unknown workload; {did_you_mean(name, workload_names())}  (or the path of a .toml file)"
        raise refuse("workloads", "workload", name, why)
    problems = Problems(f"workload {name}")
    contender = "row" if contender == "overlap" else contender
    if contender is not None and contender not in CONTENDERS:
        problems.add("contender", contender, did_you_mean(contender, CONTENDERS))
    if name not in MLPS:
        for key, value in (("m", m), ("tile", tile), ("split_k", split_k)):
            if value is not None:
                problems.add(key, value, f"{name} has one shape; leave it out")
        problems.raise_if_any()
        return fig1_workload(machine_name) if name == FIG1 else shipped_workload(name, machine_name)
    rows = DEFAULT_M if m is None else m
    if not 1 <= rows <= LARGEST:
        problems.add("m", m, f"must be 1 to {LARGEST}")
    request = _Request(
        MLPS[name], machine_name, rows, _tiles(tile, problems), _splits(split_k, problems), contender, problems
    )
    rule = _architecture(request, architecture)
    relative = _relative(name, machine_name, rule)
    entry = entry_for(name, relative, rows)
    if entry is None and request.tiles is None and not problems.found:
        known = " ".join(machines_of(name))
        why = f"no tiles are known for this machine (known: {known}); give --tile 128x256x64, or a program as TOML file"
        problems.add("machine", machine_name, why)
    problems.raise_if_any()
    assert rule is not None
    return _mlp_workload(request, rule, entry, relative)


def _check_types(name: object, machine: object, m: object, texts: Mapping[str, object], split_k: object) -> None:
    """Raises TypeError with a sentence for an argument of a type that no value of it has."""
    for key, value in (("name", name), ("machine_name", machine)):
        if not isinstance(value, str):
            example = "gpt3-mlp" if key == "name" else "h200 (a Machine has it as its name)"
            raise TypeError(f"{key} must be text such as {example}, not {type(value).__name__}")
    if m is not None and (isinstance(m, bool) or not isinstance(m, int)):
        raise TypeError(f"m must be an int, the number of rows, not {m!r}")
    for key, value in texts.items():
        if value is not None and not isinstance(value, str):
            example = {"tile": " such as 128x256x64", "architecture": " such as sm_90"}.get(key, "")
            raise TypeError(f"{key} must be text{example}, not {value!r}")
    if split_k is not None and (isinstance(split_k, bool) or not isinstance(split_k, int | str)):
        raise TypeError(f"split_k must be an int, or text such as 2+1, not {split_k!r}")


def _relative(workload: str, machine: str, rule: Architecture | None) -> str:
    """The machine whose defaults serve: itself, or the first known one of its architecture for which there are any."""
    if rule is None or architecture_of(machine) is not None:
        return machine
    return next((known for known in rule.machines if known in machines_of(workload)), machine)


def _mlp_workload(request: _Request, rule: Architecture, entry: Entry | None, relative: str) -> Workload:
    tilings = {word: _tilings(request, rule, entry, request.contender or word) for word in CONTENDERS}
    request.problems.raise_if_any()
    programs: dict[tuple[Tiling, ...], Program] = {}
    for cut in tilings.values():
        if cut not in programs:
            programs[cut] = request.mlp.program(request.m, cut, rule)
    defaults = rule_for(request.mlp.name, relative, request.m)
    taken = "" if relative == request.machine else f"as for {relative}, of the same architecture: "
    source = "--tile, --split-k" if entry is None or request.tiles else entry.source
    choices = {
        word: Choice(
            programs[tilings[word]],
            defaults.flags.get(word, ""),
            defaults.order[word],
            f"{taken}tiles: {source}; flags and order: {defaults.source}; blocks: {rule.source}",
        )
        for word in CONTENDERS
    }
    return Workload(request.mlp.name, request.machine, request.m, choices, (), request.mlp.source)


def _tilings(request: _Request, rule: Architecture, entry: Entry | None, contender: str) -> tuple[Tiling, ...]:
    """How both GEMMs are cut for one contender; a tile of the user's takes the stages that fit."""
    gemms = request.mlp.gemms(request.m)
    found: Sequence[Tiling]
    if request.tiles is not None:
        cuts = [Tiling(tile, 1, rule.stages) for tile in _each(request.tiles, len(gemms))]
        before = len(request.problems.found)
        found = [fitting(gemm, cut, rule, "tile", request.problems) for gemm, cut in zip(gemms, cuts, strict=True)]
        _forget_repeats(request.problems, before)
    else:
        assert entry is not None
        found = entry.tilings[contender]
    if request.splits is not None:
        splits = _each(request.splits, len(gemms))
        found = [replace(cut, split_k=split) for cut, split in zip(found, splits, strict=True)]
    return tuple(found)


def _forget_repeats(problems: Problems, before: int) -> None:
    """One tile for all GEMMs and contenders is one mistake, not one each."""
    kept = problems.found[:before]
    kept += [problem for problem in problems.found[before:] if problem not in kept]
    problems.found[:] = list(dict.fromkeys(kept))


def _each(values: Sequence[T], count: int) -> list[T]:
    """One value for each GEMM: a single one serves all."""
    return list(values) * count if len(values) == 1 else list(values)


def _architecture(request: _Request, given: str | None) -> Architecture | None:
    names = [rule.name for rule in architectures()]
    if given is not None:
        found = next((rule for rule in architectures() if rule.name == given), None)
        if found is None:
            request.problems.add(
                "architecture", given, f"no rule for its blocks is known; {did_you_mean(given, names)}"
            )
        return found
    found = architecture_of(request.machine)
    if found is None:
        known = " ".join(sorted(name for rule in architectures() for name in rule.machines))
        why = f"what a block takes is not known for this machine (known: {known}); write the program as a TOML file"
        request.problems.add("machine", request.machine, why)
    return found


def _tiles(text: str | None, problems: Problems) -> tuple[tuple[int, int, int], ...] | None:
    if text is None:
        return None
    tiles = [parse_tile(part) for part in text.split("+")]
    if None in tiles or len(tiles) > 2:
        problems.add("tile", text, "must be MxNxK such as 128x256x64, or two joined by + for up and down")
        return None
    return tuple(tile for tile in tiles if tile is not None)


def _splits(given: str | int | None, problems: Problems) -> tuple[int, ...] | None:
    if given is None:
        return None
    parts = str(given).split("+")
    if len(parts) > 2 or not all(re.fullmatch(r"[1-9]\d{0,3}", part, re.ASCII) for part in parts):
        problems.add("split_k", given, "must be a number of slices, 1 or more, or two joined by + for up and down")
        return None
    return tuple(map(int, parts))
