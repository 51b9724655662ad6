"""Recordings: one row a measured cell, in a CSV whose first line says where all of it comes from."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO

from cusim.errors import Problems, refuse
from cusim.files import read_file
from cusim.trace.formats.whole import write_whole

SCHEMA = "cusim.recording/1"
_DIGITS = 15
_WHOLE = re.compile(rf"\d{{1,{_DIGITS}}}", re.ASCII)
SETS = ("calibrate", "dev", "sealed")


@dataclass(frozen=True, slots=True)
class Row:
    """One cell: what ran, and the unstamped time from event to event in ns (median, quartiles, every sample).

    *label* is the set it belongs to, *occasion* counts the times that the same cell was measured. A cell that no kernel
    exists for, or that failed, has no samples and says why in *refused*.
    """

    group: str
    label: str
    workload: str
    m: int
    tile: str
    split_k: str
    policy: str
    order: str
    flags: str
    launch: str
    occasion: int
    total_ns: int | None
    low_ns: int | None
    high_ns: int | None
    samples_ns: tuple[int, ...] = ()
    empty_ns: int | None = None
    refused: str = ""


def write_recording(path: Path, rows: Sequence[Row], meta: Mapping[str, Any]) -> None:
    """Writes *rows* as CSV under a line of JSON that holds the schema and *meta*; the file is whole or absent."""
    text = io.StringIO()
    text.write(f"# {SCHEMA} {json.dumps({**meta, 'rows': len(rows)}, sort_keys=True)}\n")
    table = csv.DictWriter(text, [field.name for field in fields(Row)], lineterminator="\n")
    table.writeheader()
    for row in rows:
        values = {name: "" if value is None else value for name, value in asdict(row).items()}
        table.writerow({**values, "samples_ns": " ".join(map(str, row.samples_ns))})

    def write(file: BinaryIO) -> None:
        file.write(text.getvalue().encode())

    write_whole(path, write)


def read_recording(path: Path) -> tuple[list[Row], dict[str, Any]]:
    """The rows and what the first line says; InputError for another schema, a cut file or a value that is no number."""
    text = read_file(path).decode("utf-8", errors="replace")
    head, _, body = text.partition("\n")
    if not head.startswith(f"# {SCHEMA} "):
        raise refuse(str(path), "schema", head[:40], f'the first line must begin with "# {SCHEMA}"')
    problems = Problems(str(path))
    meta = _meta(head[len(SCHEMA) + 3 :], str(path))
    table = csv.DictReader(io.StringIO(body))
    names = [field.name for field in fields(Row)]
    if table.fieldnames != names:
        raise refuse(str(path), "columns", " ".join(table.fieldnames or ()), f"must be: {' '.join(names)}")
    try:
        rows = [_row(values, f"row[{place}]", problems) for place, values in enumerate(table)]
    except csv.Error as error:
        raise refuse(str(path), f"line {table.line_num + 2}", None, f"is no line of CSV: {error}") from None
    if len(rows) != meta.get("rows"):
        problems.add("rows", len(rows), f"the first line says {meta.get('rows')}: the file is cut")
    problems.raise_if_any()
    return [row for row in rows if row is not None], meta


def _meta(text: str, source: str) -> dict[str, Any]:
    try:
        meta = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise refuse(source, "line 1", None, f"what follows the schema is not JSON: {error}") from None
    if not isinstance(meta, dict):
        raise refuse(source, "line 1", text[:40], "what follows the schema must be a JSON object")
    return meta


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no number")


def _row(values: Mapping[str, Any], key: str, problems: Problems) -> Row | None:
    before = len(problems.found)
    if None in values or None in values.values():
        problems.add(key, None, f"must have {len(fields(Row))} cells")
        return None
    numbers: dict[str, int | None] = {}
    for name in ("m", "occasion", "total_ns", "low_ns", "high_ns", "empty_ns"):
        numbers[name] = _whole(values[name], f"{key}.{name}", problems, none=name not in ("m", "occasion"))
    samples = tuple(_whole(part, f"{key}.samples_ns", problems) or 0 for part in (values["samples_ns"] or "").split())
    if values["label"] not in SETS:
        problems.add(f"{key}.label", values["label"], f"allowed: {' '.join(SETS)}")
    if len(problems.found) > before:
        return None
    return Row(**{**values, **numbers, "samples_ns": samples})


def _whole(text: str | None, key: str, problems: Problems, *, none: bool = False) -> int | None:
    if not text and none:
        return None
    if _WHOLE.fullmatch(text or "") is None:
        problems.add(key, (text or "")[:40], f"must be a whole number, 0 or more, of at most {_DIGITS} digits")
        return None
    return int(text or "")
