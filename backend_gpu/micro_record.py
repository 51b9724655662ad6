"""What micro-benchmarks found, in one JSON file: every quantity with its raw samples, unit and how it was measured."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from cusim.trace.formats.whole import write_whole

SCHEMA = "cusim.micro/1"


@dataclass(frozen=True, slots=True)
class Quantity:
    """One measured quantity: its *unit*, *how* it was measured in a sentence, and every sample in the order taken."""

    unit: str
    how: str
    samples: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        """The quantity with its count, median, quartiles and extremes."""
        values = self.samples
        cuts = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
        return {
            "unit": self.unit, "how": self.how, "count": len(values), "median": _short(statistics.median(values)),
            "quartiles": [_short(cuts[0]), _short(cuts[2])], "min": _short(min(values)), "max": _short(max(values)),
            "samples": [_short(value) for value in values],
        }  # fmt: skip


@dataclass(slots=True)
class Findings:
    """Quantities by name, tables (orders, grids) by name, and why a measurement was dropped, by name."""

    quantities: dict[str, Quantity] = field(default_factory=dict)
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, unit: str, how: str, samples: Sequence[float]) -> None:
        """Keeps a quantity; one without samples is dropped and says so."""
        if len(samples):
            self.quantities[name] = Quantity(unit, how, tuple(float(value) for value in samples))
        else:
            self.dropped[name] = "no samples"

    def table(self, name: str, how: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Keeps a table, its rows in the order of *columns*."""
        self.tables[name] = {"how": how, "columns": list(columns), "rows": [list(row) for row in rows]}

    def to_json(self, provenance: Mapping[str, Any]) -> dict[str, Any]:
        """The whole file."""
        return {
            "schema": SCHEMA, "kind": "measured", "provenance": dict(provenance),
            "quantities": {name: quantity.to_json() for name, quantity in self.quantities.items()},
            "tables": self.tables, "dropped": self.dropped,
        }  # fmt: skip


def write_findings(path: Path, findings: Findings, provenance: Mapping[str, Any]) -> None:
    """Writes the file, whole or not at all."""
    text = json.dumps(findings.to_json(provenance), separators=(",", ":"), allow_nan=False)
    text = text.replace('},"', '},\n"') + "\n"

    def write(file: BinaryIO) -> None:
        file.write(text.encode())

    write_whole(path, write)


def _short(value: float) -> float | int:
    """Whole numbers without a point, others to a thousandth."""
    rounded = round(value, 3)
    return int(rounded) if rounded == int(rounded) else rounded
