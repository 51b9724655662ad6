"""Traces as text: the tiles as CSV under one comment line that carries everything else as JSON.

The first line is ``# cusim.trace/1 {...}``; ``pandas.read_csv(path, comment="#")`` reads the rest. ``name``
repeats the kernel's name for people; ``kernel`` indexes the header's list.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from cusim.errors import Problems, refuse
from cusim.files import MOST_DATA_BYTES, read_file
from cusim.trace.columns import EVENT_COLUMNS, TILE_COLUMNS, WAIT_COLUMNS, Column, column_key
from cusim.trace.formats.table import SCHEMA, header_of, header_text, to_ns, trace_of
from cusim.trace.formats.whole import write_whole
from cusim.trace.trace import Trace

_HEADS = ["name"] + [column_key(column, "_ns") for column in TILE_COLUMNS]
_MARK = f"# {SCHEMA} "
_IN_HEADER = {"events": EVENT_COLUMNS, "waits": WAIT_COLUMNS}


def write_csv(trace: Trace, path: Path) -> None:
    """Writes *trace* as one CSV file with a JSON comment line on top."""
    tables = {
        label: {column_key(name, "_ns"): to_ns(name, trace.tables[label][name]).tolist() for name in columns}
        for label, columns in _IN_HEADER.items()
    }
    header = header_text(trace, path, rows=trace.blocks, **tables)
    text = io.StringIO(newline="")
    text.write(f"{_MARK}{header}\n{','.join(_HEADS)}\n")
    columns = [to_ns(name, trace.tiles[name]).tolist() for name in TILE_COLUMNS]
    names = [trace.kernels[kernel] for kernel in columns[0]]
    # Names are always quoted: a bare # would start a comment for pandas.
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerows(zip(names, *columns, strict=True))
    raw = text.getvalue().encode()

    def write(file: BinaryIO) -> None:
        file.write(raw)

    write_whole(path, write)


def read_csv(path: Path) -> Trace:
    """The trace in a CSV file; raises InputError for a file that is not such a text."""
    text = _text(path)
    first, _, body = text.partition("\n")
    if not first.startswith(_MARK):
        raise refuse(str(path), "line 1", first, f"must begin with {_MARK.strip()!r} and a JSON header")
    header = header_of(first[len(_MARK) :], path, frozenset(("rows", *_IN_HEADER)))
    problems = Problems(str(path))
    tables = {label: _header_table(header[label], label, columns, problems) for label, columns in _IN_HEADER.items()}
    tables["tiles"] = _tiles(body, header, problems)
    problems.raise_if_any()
    return trace_of(path, header, tables)


def _text(path: Path) -> str:
    try:
        return read_file(path, MOST_DATA_BYTES).decode()  # line ends inside quoted names stay as they are
    except OSError as error:
        raise refuse(str(path), "file", None, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise refuse(str(path), "file", None, "is not UTF-8 text") from None


def _header_table(given: Any, label: str, columns: tuple[str, ...], problems: Problems) -> dict[str, Column]:
    heads = [column_key(name, "_ns") for name in columns]
    if not isinstance(given, dict) or set(given) != set(heads):
        problems.add(label, None, f"must be an object of columns: {' '.join(heads)}")
        return {}
    table = {}
    for name, head in zip(columns, heads, strict=True):
        values = given[head]
        if not isinstance(values, list) or not all(type(value) is int for value in values):
            problems.add(f"{label}.{head}", None, "must be a list of whole numbers")
            return {}
        table[name] = _vector(values, f"{label}.{head}", problems)
    return table


def _tiles(body: str, header: Mapping[str, Any], problems: Problems) -> dict[str, Column]:
    try:
        lines = list(csv.reader(io.StringIO(body, newline=""), strict=True))
    except csv.Error as error:
        problems.add("tiles", None, f"are not CSV: {error}")
        return {}
    if not lines or lines[0] != _HEADS:
        problems.add("line 2", ",".join(lines[0]) if lines else None, f"must be {','.join(_HEADS)}")
        return {}
    rows = lines[1:]
    if len(rows) != header["rows"] or type(header["rows"]) is not int or not body.endswith("\n"):
        problems.add("rows", len(rows), f"must be the {header['rows']} rows that the header counts: cut off?")
        return {}
    ragged = [place for place, row in enumerate(rows) if len(row) != len(_HEADS)]
    if ragged:
        problems.add(f"tiles[{ragged[0]}]", len(rows[ragged[0]]), f"must have {len(_HEADS)} fields")
        return {}
    texts = list(zip(*rows, strict=True)) if rows else [()] * len(_HEADS)
    table = {}
    for name, head, column in zip(TILE_COLUMNS, _HEADS[1:], texts[1:], strict=True):
        table[name] = _vector([_whole(text) for text in column], f"tiles.{head}", problems, column)
    _check_names(texts[0], table["kernel"], header["kernels"], problems)
    return table


def _whole(text: str) -> int | None:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 20 else None


def _vector(values: list[Any], key: str, problems: Problems, texts: tuple[str, ...] | None = None) -> Column:
    limits = np.iinfo(np.int64)
    for place, value in enumerate(values):
        if value is None or not limits.min <= value <= limits.max:
            given = value if texts is None else texts[place]
            problems.add(f"{key}[{place}]", given, "must be a whole number of 64 bits")
            return np.zeros(0, np.int64)
    return np.array(values, dtype=np.int64)


def _check_names(names: tuple[str, ...], index: Column, kernels: list[str], problems: Problems) -> None:
    for place, (name, kernel) in enumerate(zip(names, index.tolist(), strict=False)):
        if 0 <= kernel < len(kernels) and kernels[kernel] != name:
            problems.add(f"tiles.name[{place}]", name, f'must be "{kernels[kernel]}", as kernel {kernel} is named')
            return
