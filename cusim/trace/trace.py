"""Traces: who ran where and when. One type for what the simulator predicts and what a GPU measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from cusim.errors import Problems
from cusim.trace.columns import (
    EVENT_COLUMNS,
    NONE,
    TILE_COLUMNS,
    TIME_COLUMNS,
    WAIT_COLUMNS,
    Column,
    check_tables,
)

__all__ = [
    "EVENT_COLUMNS",
    "NONE",
    "TILE_COLUMNS",
    "TIME_COLUMNS",
    "WAIT_COLUMNS",
    "Column",
    "Trace",
    "column_table",
]


@dataclass(frozen=True, eq=False)
class Trace:
    """Tiles, waits and kernel events of one run, with the facts about it.

    *kernels* names the kernels that the ``kernel`` columns index, *dependences* what ``dependence`` indexes.
    *meta* holds ``kind`` (``predicted`` or ``measured``), digests of machine, plan and program, totals, clock
    and samples. Two traces are equal when all of their columns, names and facts are. Raises InputError for
    columns that are missing, foreign, not int64 or of unequal length, for indices out of range and times that
    run backwards.
    """

    kernels: tuple[str, ...]
    tiles: Mapping[str, Column]
    events: Mapping[str, Column]
    waits: Mapping[str, Column]
    dependences: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        problems = Problems("trace")
        check_tables(problems, self.kernels, self.dependences, self.tables)
        problems.raise_if_any()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trace):
            return NotImplemented
        return (
            (self.kernels, self.dependences) == (other.kernels, other.dependences)
            and dict(self.meta) == dict(other.meta)
            and all(
                np.array_equal(column, other.tables[label][name])
                for label, table in self.tables.items()
                for name, column in table.items()
            )
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def tables(self) -> dict[str, Mapping[str, Column]]:
        """The three tables by name: tiles, events and waits."""
        return {"tiles": self.tiles, "events": self.events, "waits": self.waits}

    @property
    def blocks(self) -> int:
        """Number of thread blocks recorded."""
        return len(self.tiles["kernel"])

    @property
    def span_ps(self) -> int:
        """First block start to the moment at which the last block has ended and posted."""
        if not self.blocks:
            return 0
        last = max(self.tiles["end"].max(), self.tiles["posted"].max())
        return int(last - self.tiles["placed"].min())


def column_table(rows: Sequence[tuple[int, ...]], columns: tuple[str, ...]) -> dict[str, Column]:
    """Columns from a list of rows in the order of *columns*; empty columns for no rows."""
    values = np.asarray(rows, dtype=np.int64).reshape(-1, len(columns))
    return {name: np.ascontiguousarray(values[:, place]) for place, name in enumerate(columns)}
