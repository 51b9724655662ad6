"""Published times of dependent kernels as cusim keeps them: CSV files of the form ``cusim.published/1``.

The first line is a comment that holds the schema and one JSON object: gpu, workload, unit, source, licence, method and
notes. Below stands a CSV with the columns :data:`COLUMNS`, one line a size, policy and repeat.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from cusim.errors import Problems, did_you_mean, refuse
from cusim.machine.load import machine_names
from cusim.validate.foreign import what_it_looks_like
from cusim.validate.readings import COLUMNS, Reading, check_together, read_line
from cusim.workloads.mlp import MLPS

SCHEMA = "cusim.published/1"
#: Sets that cusim ships, by the word of the command line: the files of each, one a GPU.
SETS: Mapping[str, tuple[str, ...]] = {"published/gpt3-mlp": ("gpt3_mlp_v100.csv", "gpt3_mlp_a100.csv")}
#: Keys of the first line's object that must be there, and what they hold.
_TEXTS = ("gpu", "device", "workload", "unit", "source", "licence", "method")
_LISTS = ("files", "notes")
_UNIT = "us"


@dataclass(frozen=True)
class PublishedSet:
    """The times of one GPU: *gpu* names a machine, *workload* the program; *head* is the first line's whole object."""

    gpu: str
    workload: str
    readings: tuple[Reading, ...]
    head: Mapping[str, Any]


def set_names() -> tuple[str, ...]:
    """Names of the shipped sets, sorted."""
    return tuple(sorted(SETS))


def load_published(name_or_path: str) -> tuple[PublishedSet, ...]:
    """The shipped set of that name, or the one in that CSV file.

    Raises InputError with everything that is wrong: an unknown name, a file of another tool, a line that is off.
    """
    if name_or_path.lower().endswith(".csv") or (Path(name_or_path).is_file() and name_or_path not in SETS):
        return (_from_file(Path(name_or_path)),)
    if name_or_path not in SETS:
        why = f"unknown set: {did_you_mean(name_or_path, set_names())}  (or the path of a .csv file of {SCHEMA})"
        raise refuse("the command line", "SET", name_or_path, why)
    folder = resources.files("cusim") / "validate" / "published"
    files = SETS[name_or_path]
    return tuple(parse_published((folder / file).read_text(encoding="utf-8"), file) for file in files)


def parse_published(text: str, source: str) -> PublishedSet:
    """The set that *text* holds; InputError naming *source* lists everything that is wrong."""
    first, _, rest = text.partition("\n")
    mark = f"# {SCHEMA} "
    if not first.startswith(mark):
        raise refuse(source, "line 1", None, _not_ours(text))
    problems = Problems(source)
    head = _head(first.removeprefix(mark), problems)
    problems.raise_if_any()
    lines = list(csv.reader(rest.splitlines()))
    _check_columns(lines[0] if lines else [], problems)
    problems.raise_if_any()
    # The comment and the titles come first, so the first reading stands on line 3.
    found = [read_line(cells, f"line {place}", problems) for place, cells in enumerate(lines[1:], start=3)]
    readings = tuple(reading for reading in found if reading is not None)
    if not problems.found:
        check_together(readings, problems)
    problems.raise_if_any()
    return PublishedSet(head["gpu"], head["workload"], readings, head)


def _from_file(path: Path) -> PublishedSet:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "not a UTF-8 text"
        raise refuse("the command line", "FILE", str(path), f"cannot be read: {reason}") from None
    return parse_published(text, str(path))


def _not_ours(text: str) -> str:
    found = what_it_looks_like(text)
    seen = f"this looks like {found}; " if found else ""
    return f'{seen}a file to validate against starts with "# {SCHEMA} {{...}}" and gives times in {_UNIT}'


def _head(text: str, problems: Problems) -> dict[str, Any]:
    try:
        head = json.loads(text)
    except ValueError as error:
        head = None
        problems.add("line 1", None, f"what follows the schema is not JSON: {error}")
    if not isinstance(head, dict):
        if not problems.found:
            problems.add("line 1", None, "what follows the schema must be a JSON object")
        return {}
    for key in _TEXTS:
        if not isinstance(head.get(key), str) or not head[key]:
            problems.add(f"line 1: {key}", head.get(key), "must be a text that is not empty")
    for key in _LISTS:
        if not isinstance(head.get(key), list) or not all(isinstance(item, str) for item in head[key]):
            problems.add(f"line 1: {key}", head.get(key), "must be a list of texts")
    _check_known(head, problems)
    if isinstance(head.get("unit"), str) and head["unit"] not in ("", _UNIT):
        problems.add("line 1: unit", head["unit"], f"times must be in {_UNIT}; convert them and say so in the notes")
    return head


def _check_known(head: Mapping[str, Any], problems: Problems) -> None:
    """The GPU must be a preset, and the workload one whose kernels cusim can build."""
    gpu, workload = head.get("gpu"), head.get("workload")
    if isinstance(gpu, str) and gpu and gpu not in machine_names():
        problems.add("line 1: gpu", gpu, did_you_mean(gpu, machine_names()))
    if isinstance(workload, str) and workload and workload not in MLPS:
        problems.add("line 1: workload", workload, did_you_mean(workload, MLPS))
    elif isinstance(workload, str) and workload and head.get("hidden") != MLPS[workload].hidden:
        problems.add("line 1: hidden", head.get("hidden"), f"{workload} has {MLPS[workload].hidden}")


def _check_columns(titles: Sequence[str], problems: Problems) -> None:
    if tuple(titles) == COLUMNS:
        return
    for title in titles:
        stem, _, unit = title.rpartition("_")
        if title not in COLUMNS and f"{stem}_{_UNIT}" in COLUMNS:
            problems.add(f"line 2: {title}", None, f"a time in {unit}: times must be in {_UNIT}, as {stem}_{_UNIT}")
        elif title not in COLUMNS:
            problems.add(f"line 2: {title}", None, f"unknown column: {did_you_mean(title, COLUMNS)}")
    for missing in (title for title in COLUMNS if title not in titles):
        problems.add(f"line 2: {missing}", None, "this column is missing")
    if not problems.found:
        problems.add("line 2", None, f"columns must stand once each, in this order: {','.join(COLUMNS)}")
