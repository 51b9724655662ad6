"""The columns of a trace, and the checks that they must pass whatever their unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cusim.errors import Problems

Column: TypeAlias = NDArray[np.int64]
Table: TypeAlias = Mapping[str, Column]

#: Integer columns of ``Trace.tiles``, one row a thread block; times in picoseconds from the run's start.
TILE_COLUMNS = (
    "kernel", "r", "c", "z", "ticket", "epoch", "block", "sm", "lane",
    "placed", "ready", "first_load", "end", "posted", "wait_total",
)  # fmt: skip
#: Columns of ``Trace.waits``, one row for each time that a block stood still: *tile* is a row of the tiles.
WAIT_COLUMNS = ("tile", "begin", "end", "dependence", "semaphore")
#: Columns of ``Trace.events``, one row a kernel.
EVENT_COLUMNS = ("kernel", "enqueue", "arrive", "launch", "done")
#: The three tables of a trace and their columns.
TABLES = {"tiles": TILE_COLUMNS, "events": EVENT_COLUMNS, "waits": WAIT_COLUMNS}
#: Columns of tiles, waits and events that hold times.
TIME_COLUMNS = frozenset(
    (
        "placed", "ready", "first_load", "end", "posted", "wait_total",
        "begin", "enqueue", "arrive", "launch", "done",
    )
)  # fmt: skip
#: Value of *posted* for a block that posts nothing, of an event that was not seen, of *semaphore* and
#: *dependence* where a wait is not for one.
NONE = -1

#: What a block does, in order.
_LIFE = ("placed", "ready", "first_load", "end")
#: Time columns that may hold :data:`NONE`.
_OPTIONAL = frozenset(("posted", "enqueue", "arrive", "launch", "done"))


def check_tables(
    problems: Problems,
    kernels: Sequence[str],
    dependences: Sequence[str],
    tables: Mapping[str, Table],
    unit: str = "",
) -> None:
    """Records everything wrong with the *tables* (tiles, events, waits) of a trace.

    *unit* is the suffix that names times in messages: nothing for picoseconds in memory, ``_ns`` in files.
    Values are checked only when every column is there, an int64 vector and as long as its neighbours.
    """
    before = len(problems.found)
    for label, columns in TABLES.items():
        _check_shape(problems, label, tables[label], columns, unit)
    if len(problems.found) > before:
        return
    _check_counted(problems, tables, unit)
    _check_order(problems, "tiles", tables["tiles"], _LIFE, unit)
    _check_order(problems, "waits", tables["waits"], ("begin", "end"), unit)
    for label in ("tiles", "events"):
        _check_index(problems, f"{label}.kernel", tables[label]["kernel"], len(kernels), "kernels", 0)
    _check_index(problems, "waits.tile", tables["waits"]["tile"], len(tables["tiles"]["kernel"]), "tiles", 0)
    _check_index(problems, "waits.dependence", tables["waits"]["dependence"], len(dependences), "dependences", NONE)


def column_key(name: str, unit: str) -> str:
    """The name of a column where times carry the suffix *unit*."""
    return name + unit if name in TIME_COLUMNS else name


def _check_shape(problems: Problems, label: str, table: Table, columns: tuple[str, ...], unit: str) -> None:
    if set(table) != set(columns):
        wrong = ", ".join(column_key(name, unit) for name in sorted(set(table) ^ set(columns)))
        allowed = " ".join(column_key(name, unit) for name in columns)
        problems.add(label, wrong, f"columns must be exactly: {allowed}")
        return
    for name in columns:
        column = table[name]
        if not isinstance(column, np.ndarray) or column.dtype != np.int64 or column.ndim != 1:
            given = getattr(column, "dtype", type(column).__name__)
            problems.add(f"{label}.{column_key(name, unit)}", str(given), "must be a vector of int64")
            return
    lengths = sorted({len(column) for column in table.values()})
    if len(lengths) > 1:
        problems.add(label, lengths, "all columns must have one length")


def _check_counted(problems: Problems, tables: Mapping[str, Table], unit: str) -> None:
    for label, columns in TABLES.items():
        for name in columns:
            if name not in TIME_COLUMNS or name == "enqueue":
                continue  # a run queued behind a busy kernel was enqueued before its start
            least = NONE if name in _OPTIONAL else 0
            why = "times count from the run's start: 0 or more" + (", or -1 for none" if least else "")
            _check_first(problems, label, name, tables[label][name], tables[label][name] < least, unit, why)


def _check_order(problems: Problems, label: str, table: Table, order: tuple[str, ...], unit: str) -> None:
    for early, late in pairwise(order):
        why = f"must not precede {column_key(early, unit)}"
        _check_first(problems, label, late, table[late], table[late] < table[early], unit, why)


def _check_first(
    problems: Problems, label: str, name: str, column: Column, bad: NDArray[np.bool_], unit: str, why: str
) -> None:
    rows = np.flatnonzero(bad)
    if len(rows):
        more = f" ({len(rows)} such rows)" if len(rows) > 1 else ""
        problems.add(f"{label}.{column_key(name, unit)}[{rows[0]}]", int(column[rows[0]]), why + more)


def _check_index(problems: Problems, key: str, column: Column, count: int, what: str, least: int) -> None:
    rows = np.flatnonzero((column < least) | (column >= count))
    if len(rows):
        problems.add(f"{key}[{rows[0]}]", int(column[rows[0]]), f"must index the {count} {what}")
