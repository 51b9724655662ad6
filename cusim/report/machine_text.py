"""A machine as people read it: every number with its unit, status and source."""

from __future__ import annotations

from cusim.machine.machine import Machine, leaf_paths
from cusim.machine.quantity import Quantity
from cusim.machine.unused import UNUSED
from cusim.report.line import WIDTH, Line, strip_table
from cusim.report.table import Strip
from cusim.report.text import machine_text

_MOST_IDS = 3


def machine_lines(machine: Machine) -> list[Line]:
    """The headline and a table of all leaves; the source comes last, since it may be long."""
    titles = ["key", "value", "unit", "stderr", "status", "source"]
    rows = [_leaf(path, machine.provenance[path]) for path in leaf_paths()]
    head = Line(f"{machine.name}: {machine_text(machine)}, {machine.arch}, digest {machine.digest}", "head", 4)
    strips = [
        Strip(title, cells, number)
        for title, cells, number in zip(
            titles, zip(*rows, strict=True), [False, True, False, True, False, False], strict=True
        )
    ]
    return [head, Line(""), *strip_table(strips, WIDTH)]


def _leaf(path: str, quantity: Quantity) -> list[str]:
    stderr = "-" if quantity.stderr is None else f"{quantity.stderr:g}"
    source = " ".join(quantity.source.split())
    record = f"  [{quantity.record}]" if quantity.record else ""
    unused = f"not used by the model yet: {UNUSED[path]}. " if path in UNUSED else ""
    return [path, *shown(quantity), stderr, quantity.status, unused + source + record]


def shown(quantity: Quantity) -> tuple[str, str]:
    """The value as text, a long list of ids cut, and its unit; a plain count has no unit worth printing."""
    value = quantity.value
    unit = "" if quantity.unit in ("1", "word", "id") else quantity.unit
    if isinstance(value, tuple):
        cut = " ".join(map(str, value[:_MOST_IDS]))
        return f"{cut} ... ({len(value)} ids)" if len(value) > _MOST_IDS else cut, unit
    return str(value), unit
