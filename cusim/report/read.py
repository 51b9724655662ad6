"""Reads a ``cusim.predict/1`` document back, strictly: for pictures of a prediction made earlier."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cusim.errors import Problems, refuse
from cusim.files import read_file
from cusim.report.json import SCHEMA
from cusim.report.result import DEADLOCKS, STREAM_BEST

_TEXTS = ("policy", "order", "flags", "launch", "tile", "split_k", "deadlock", "machine", "dispatch")
_SHARES = ("working_pct", "waiting_pct", "empty_pct")
#: Thirty years in nanoseconds: more is no prediction, and infinity is no number.
_MOST = 10**18
_ALLOWED = f"must be a number of 0 to {_MOST:.0e}"


@dataclass(frozen=True, slots=True)
class SavedRow:
    """A row of a document, with the *case* that it belongs to: only rows of one case compare with each other."""

    policy: str
    order: str
    flags: str
    launch: str
    tile: str
    split_k: str
    case: tuple[tuple[str, str], ...]
    total_ns: int
    shares: tuple[float, float, float]
    reference: bool
    recommended: bool
    deadlock: bool

    @property
    def strongest(self) -> bool:
        """True for the row of stream order at its own best tile, order and split-K."""
        return self.policy == STREAM_BEST


@dataclass(frozen=True, slots=True)
class SavedReport:
    """What a picture needs of a document; *machine* names every GPU in it, *band_pct* is the first machine's."""

    program: str
    machine: str
    band_pct: float
    rows: tuple[SavedRow, ...]


def read_report(path: Path) -> SavedReport:
    """The document in a file; InputError for a file that is absent, cut off, of another schema or inconsistent."""
    source = str(path)
    try:
        data = json.loads(read_file(path).decode())
    except OSError as error:
        raise refuse(source, "file", None, f"cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise refuse(source, "file", None, "is not JSON: cut off, or not written by cusim predict --json") from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        given = data.get("schema") if isinstance(data, dict) else None
        raise refuse(source, "schema", given, f'must be "{SCHEMA}", as cusim predict --json writes it')
    return _report(data, source)


def _report(data: Mapping[str, Any], source: str) -> SavedReport:
    problems = Problems(source)
    machine, program = data.get("machine"), data.get("program")
    if not isinstance(machine, dict) or not _number(machine.get("band_pct")):
        problems.add("machine.band_pct", None, _ALLOWED)
    if not isinstance(program, dict) or not isinstance(program.get("name"), str):
        problems.add("program.name", None, "must be text")
    rows = data.get("rows")
    if not isinstance(rows, list) or not rows:
        problems.add("rows", None, "must be a list of at least one row")
    found = [_row(row, f"rows[{place}]", problems) for place, row in enumerate(rows if isinstance(rows, list) else [])]
    problems.raise_if_any()
    assert isinstance(machine, dict)
    assert isinstance(program, dict)
    good = tuple(row for row in found if row is not None)
    gpus = dict.fromkeys(str(row.get("gpu") or machine.get("gpu", "")) for row in rows or ())
    return SavedReport(program["name"], ", ".join(gpus), float(machine["band_pct"]), good)


def _row(row: Any, key: str, problems: Problems) -> SavedRow | None:
    before = len(problems.found)
    if not isinstance(row, dict):
        problems.add(key, None, "must be an object")
        return None
    for name in _TEXTS:
        if not isinstance(row.get(name), str):
            problems.add(f"{key}.{name}", row.get(name), "must be text")
    stuck = row.get("deadlock") == DEADLOCKS
    for name in () if stuck else ("total_ns", *_SHARES):
        if not _number(row.get(name)):
            problems.add(f"{key}.{name}", row.get(name), _ALLOWED)
    if len(problems.found) > before:
        return None
    shares = (0.0, 0.0, 0.0) if stuck else (row[_SHARES[0]], row[_SHARES[1]], row[_SHARES[2]])
    total = 0 if stuck else int(row["total_ns"])
    return SavedRow(
        policy=row["policy"],
        order=row["order"],
        flags=row["flags"],
        launch=row["launch"],
        tile=row["tile"],
        split_k=row["split_k"],
        case=_case(row),
        total_ns=total,
        shares=shares,
        reference=row.get("reference") is True,
        recommended=row.get("recommended") is True,
        deadlock=stuck,
    )


def _case(row: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """What sets rows apart that must not be compared: machine, what-if, m, dispatch and seed."""
    overrides = row.get("overrides")
    what_if = " ".join(map(str, overrides)) if isinstance(overrides, list) else ""
    return (
        ("machine", row["machine"]),
        ("set", what_if or "-"),
        ("m", str(row.get("m"))),
        ("dispatch", row["dispatch"]),
        ("seed", str(row.get("seed"))),
    )


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MOST
