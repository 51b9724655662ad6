"""What every trace file holds, whatever its format: a JSON header and three tables of integers."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from cusim.errors import Problems, did_you_mean, refuse
from cusim.trace.bounds import check_columns, check_meta
from cusim.trace.columns import NONE, TIME_COLUMNS, Column, Table, check_tables
from cusim.trace.trace import Trace

#: Name and version of what a trace file holds.
SCHEMA = "cusim.trace/1"
_PS_PER_NS = 1000


def to_ns(name: str, column: Column) -> Column:
    """A column as a file holds it: times floored to whole ns, :data:`NONE` and the rest untouched."""
    if name not in TIME_COLUMNS:
        return column
    return np.where(column == NONE, NONE, column // _PS_PER_NS)


def to_ps(name: str, column: Column) -> Column:
    """The inverse of :func:`to_ns`, for columns that hold whole nanoseconds."""
    if name not in TIME_COLUMNS:
        return column
    return np.where(column == NONE, NONE, column * _PS_PER_NS)


def floored(trace: Trace) -> Trace:
    """The trace as it comes back from a file: times floored to whole nanoseconds, still in picoseconds."""
    tables = {
        label: {name: to_ps(name, to_ns(name, column)) for name, column in table.items()}
        for label, table in trace.tables.items()
    }
    return dataclasses.replace(trace, **tables)  # type: ignore[arg-type]


def header_text(trace: Trace, path: Path, **more: object) -> str:
    """The JSON header: schema, names, meta and whatever *more* the format keeps there. One line.

    Raises InputError, naming the key, for meta that JSON cannot hold.
    """
    problems = Problems(str(path))
    meta = _plain(trace.meta, "meta", problems)
    problems.raise_if_any()
    names = {"kernels": list(trace.kernels), "dependences": list(trace.dependences)}
    return json.dumps({"schema": SCHEMA, **names, "meta": meta, **more}, ensure_ascii=True)


def header_of(text: str, path: Path, more: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The header that *text* holds, its types checked; *more* names the keys that the format adds.

    Raises InputError for text that is no JSON object, another schema, and keys missing, foreign or of a wrong
    type.
    """
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        raise refuse(str(path), "header", None, "is not JSON: cut off, or not written by cusim") from None
    if not isinstance(header, dict) or header.get("schema") != SCHEMA:
        given = header.get("schema") if isinstance(header, dict) else None
        raise refuse(str(path), "schema", given, f'must be "{SCHEMA}"')
    problems = Problems(str(path))
    allowed = {"schema", "kernels", "dependences", "meta"} | more
    for key in sorted(allowed - set(header)):
        problems.add(key, None, "is missing from the header")
    for key in sorted(set(header) - allowed):
        problems.add(key, None, f"is not known in the header: {did_you_mean(key, allowed)}")
    for key in ("kernels", "dependences"):
        names = header.get(key, [])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            problems.add(key, None, "must be a list of names")
    if not isinstance(header.get("meta", {}), dict):
        problems.add("meta", None, "must be an object")
    problems.raise_if_any()
    return header


def trace_of(path: Path, header: Mapping[str, Any], tables: Mapping[str, Table]) -> Trace:
    """The trace of a header and its tables in nanoseconds.

    Raises InputError with everything that is wrong, in the words and the unit of the file.
    """
    problems = Problems(str(path))
    check_tables(problems, header["kernels"], header["dependences"], tables, unit="_ns")
    check_meta(problems, header["meta"])
    problems.raise_if_any()
    check_columns(problems, tables)
    problems.raise_if_any()
    in_ps = {label: {name: to_ps(name, column) for name, column in table.items()} for label, table in tables.items()}
    return Trace(
        kernels=tuple(header["kernels"]),
        dependences=tuple(header["dependences"]),
        meta=MappingProxyType(header["meta"]),
        **in_ps,
    )


def _plain(value: object, key: str, problems: Problems) -> object:
    """*value* in the types that JSON knows, problems recorded where there is no such form."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        return {str(name): _plain(inner, f"{key}.{name}", problems) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner, f"{key}[{place}]", problems) for place, inner in enumerate(value)]
    if isinstance(value, float) and not np.isfinite(value):
        problems.add(key, value, "must be finite")
    elif not isinstance(value, (str, int, float, bool, type(None))):
        problems.add(key, type(value).__name__, "must be text, a number, true, false, null, a list or an object")
    return value
