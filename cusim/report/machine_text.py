"""A machine as people read it: every number with its unit, status and source; or where two of them differ."""

from __future__ import annotations

from cusim.machine.machine import Machine, leaf_paths
from cusim.machine.quantity import Quantity
from cusim.machine.unused import UNUSED
from cusim.report.line import WIDTH, Line, strip_table, table
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


def difference_lines(left: Machine, right: Machine) -> list[Line]:
    """The leaves in which two machines differ, values as their files give them."""
    names = _names(left, right)
    rows = [
        [path, *_shown(left.provenance[path]), *_shown(right.provenance[path])]
        for path in leaf_paths()
        if _value(left, path) != _value(right, path)
    ]
    head = Line(f"{names[0]}: {machine_text(left)}", "head"), Line(f"{names[1]}: {machine_text(right)}", "head")
    if not rows:
        return [*head, Line(""), Line("No number differs.", "verdict")]
    return [
        *head,
        Line(""),
        *table(["key", names[0], "unit", names[1], "unit"], rows, [False, True, False, True, False]),
    ]


def _names(left: Machine, right: Machine) -> tuple[str, str]:
    return (left.name, right.name) if left.name != right.name else (f"{left.name} (1)", f"{right.name} (2)")


def _leaf(path: str, quantity: Quantity) -> list[str]:
    stderr = "-" if quantity.stderr is None else f"{quantity.stderr:g}"
    source = " ".join(quantity.source.split())
    record = f"  [{quantity.record}]" if quantity.record else ""
    unused = f"not used by the model yet: {UNUSED[path]}. " if path in UNUSED else ""
    return [path, *_shown(quantity), stderr, quantity.status, unused + source + record]


def _shown(quantity: Quantity) -> tuple[str, str]:
    """The value as text, a long list of ids cut, and its unit; a plain count has no unit worth printing."""
    value = quantity.value
    unit = "" if quantity.unit in ("1", "word", "id") else quantity.unit
    if isinstance(value, tuple):
        cut = " ".join(map(str, value[:_MOST_IDS]))
        return f"{cut} ... ({len(value)} ids)" if len(value) > _MOST_IDS else cut, unit
    return str(value), unit


def _value(machine: Machine, path: str) -> object:
    """A leaf in internal units, so that 1 us equals 1000 ns."""
    section, _, leaf = path.rpartition(".")
    return getattr(getattr(machine, section), leaf) if section else machine.band_pct
