"""The CSV of Nsight Compute, in both of its forms, as one set of values for each kernel launch.

``--page raw`` has a column for every metric and a row of units under the heads; ``--page details`` (and ``--metrics``
without a page) has a row for every metric, with its name, unit and value. Around either stand lines of ncu's own log,
``==PROF== ...``, and whatever the profiled program printed.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from cusim.errors import Problems, refuse

#: How a report that can be imported is made.
ADVICE = "ncu --csv --page raw --section LaunchStats --metrics gpu__time_duration.sum PROGRAM > report.csv"
_NAME, _UNIT, _VALUE = "Metric Name", "Metric Unit", "Metric Value"
#: Words in the first lines of what is no CSV of Nsight Compute, and what it is.
_OTHERS = (
    ("NVPROF is profiling", "an output of nvprof"),
    ("==Profiling result", "an output of nvprof"),
    ('"Time(%)"', "an output of nvprof"),
    ("Section: ", "the text that ncu prints without --csv"),
    ("Total Time (ns)", "a table of nsys"),
    ("Duration (ns)", "a table of nsys"),
    ("CorrId", "a table of nsys"),
    ("TotalDurationNs", "a table of rocprof"),
    ("KernelName", "a table of rocprof"),
)
#: A cell by the metric or column that it belongs to: value and unit.
Cells: TypeAlias = dict[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Record:
    """One kernel launch: *number* and *process* as ncu gives them, and every value with its unit by name."""

    number: str
    process: str
    cells: Cells = field(default_factory=dict)


def read_records(text: str, source: str) -> tuple[Record, ...]:
    """The launches of a report, in order; InputError for text of another tool, a file cut off, a report of nothing."""
    heads, rows = _table(text, source)
    missing = [name for name in ("ID", "Kernel Name") if name not in heads]
    if missing:
        raise refuse(source, "columns", " ".join(missing), f"missing; make the report so: {ADVICE}")
    records = _long(heads, rows) if _NAME in heads else _wide(heads, rows, source)
    if not records:
        raise refuse(source, "report", None, f"holds no kernel: ncu profiled none; make it so: {ADVICE}")
    return tuple(records)


def _table(text: str, source: str) -> tuple[list[str], list[list[str]]]:
    """The heads and the rows under them, each as wide as the heads."""
    lines = text.splitlines(keepends=True)
    start = next((place for place, line in enumerate(lines) if _is_head(line)), None)
    if start is None:
        raise refuse(source, "file", None, _what_else(text))
    rows: list[list[str]] = []
    places = [place for place in range(start, len(lines)) if lines[place].strip() and not lines[place].startswith("==")]
    if not lines[places[-1]].endswith(("\n", '"')):
        raise refuse(source, f"line {places[-1] + 1}", None, "has no end: cut off?")
    reader = csv.reader(_counted(lines, places, at := [start]), strict=True)
    problems = Problems(source)
    try:
        for row in reader:
            if rows and row == rows[0]:
                problems.add(f"line {at[0] + 1}", None, "heads come again: import one report at a time")
            elif rows and len(row) != len(rows[0]):
                why = f"has {len(row)} fields, the heads are {len(rows[0])}: cut off, or mixed with other output"
                problems.add(f"line {at[0] + 1}", None, why)
            if problems.found:
                break
            rows.append(row)
    except csv.Error as error:
        problems.add(f"line {at[0] + 1}", None, f"is no CSV: cut off? ({error})")
    problems.raise_if_any()
    return rows[0], rows[1:]


def _counted(lines: list[str], places: list[int], at: list[int]) -> Iterator[str]:
    for place in places:
        at[0] = place
        yield lines[place]


def _is_head(line: str) -> bool:
    return line.lstrip("\ufeff").startswith(('"ID",', "ID,"))


def _what_else(text: str) -> str:
    beginning = text[:20_000]
    if not text.strip():
        found = "is empty"
    elif "No kernels were profiled" in beginning:
        found = "holds no kernel: ncu profiled none"
    else:
        named = next((what for word, what in _OTHERS if word in beginning), None)
        found = f"is {named}" if named else "is no CSV of Nsight Compute: no line of heads that begins with ID"
    return f"{found}; allowed: the CSV of ncu, made so: {ADVICE}"


def _long(heads: list[str], rows: list[list[str]]) -> list[Record]:
    """One row for every metric; rows of rules have no metric."""
    found: dict[tuple[str, str], Record] = {}
    for row in rows:
        cells = dict(zip(heads, row, strict=True))
        number, process = cells["ID"], cells.get("Process ID", "")
        record = found.setdefault((process, number), Record(number, process))
        if not record.cells:
            record.cells.update({name: (value, "") for name, value in cells.items()})
        if cells.get(_NAME):
            record.cells[f"metric {cells[_NAME]}"] = (cells.get(_VALUE, ""), cells.get(_UNIT, ""))
    return list(found.values())


def _wide(heads: list[str], rows: list[list[str]], source: str) -> list[Record]:
    """One row for every launch, under a row of units that has no ID."""
    if rows and rows[0][heads.index("ID")].strip():
        why = f"the row of units under the heads is missing; make the report so: {ADVICE}"
        raise refuse(source, "units", None, why)
    found = []
    for row in rows[1:]:
        cells = {
            name if name[:1].isupper() else f"metric {name}": (value, unit)
            for name, unit, value in zip(heads, rows[0], row, strict=True)
        }
        found.append(Record(cells["ID"][0], cells.get("Process ID", ("", ""))[0], cells))
    return found
