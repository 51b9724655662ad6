"""Two machines compared leaf by leaf: where they differ, by how much, and how well each number is known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cusim.machine.machine import Machine, leaf_paths
from cusim.machine.quantity import Quantity
from cusim.report.line import WIDTH, Line, prose, strip_table
from cusim.report.machine_text import shown
from cusim.report.table import Strip
from cusim.report.text import machine_text

SCHEMA = "cusim.machine-diff/1"
#: More keys than this are counted and not named.
_MOST_NAMED = 6


@dataclass(frozen=True, slots=True)
class Difference:
    """A leaf whose value differs; *change_pct* is how far the right is above the left, None where there is no ratio."""

    path: str
    left: Quantity
    right: Quantity
    change_pct: float | None


def differences(left: Machine, right: Machine) -> list[Difference]:
    """The leaves whose values differ, in internal units, so that 1 us equals 1000 ns."""
    found = []
    for path in leaf_paths():
        one, other = _value(left, path), _value(right, path)
        if one != other:
            change = None
            if isinstance(one, int | float) and isinstance(other, int | float) and one:
                change = 100.0 * (other / one - 1.0)
            found.append(Difference(path, left.provenance[path], right.provenance[path], change))
    return found


def same_value(left: Machine, right: Machine) -> list[str]:
    """The leaves of equal value whose standard error or status differs: known better in one than in the other."""
    return [
        path
        for path in leaf_paths()
        if _value(left, path) == _value(right, path) and _known(left.provenance[path]) != _known(right.provenance[path])
    ]


def difference_lines(left: Machine, right: Machine, width: int = WIDTH) -> list[Line]:
    """Both headlines and a table of the leaves that differ; values and errors as their files give them."""
    names = _names(left, right)
    heads = [
        Line(f"{name}: {machine_text(machine)}", "head") for name, machine in zip(names, (left, right), strict=True)
    ]
    found = differences(left, right)
    body = strip_table(_strips(found, names), width) if found else [Line("No number differs.", "verdict")]
    return [*heads, Line(""), *body, *_same_lines(same_value(left, right), bool(found))]


def difference_json(left: Machine, right: Machine) -> str:
    """The comparison as JSON text (``cusim.machine-diff/1``): each leaf that differs, and those known differently."""
    names = _names(left, right)
    document = {
        "schema": SCHEMA,
        "machines": [
            {"name": name, "gpu": machine.gpu, "state": machine.state, "digest": machine.digest}
            for name, machine in zip(names, (left, right), strict=True)
        ],
        "rows": [_row(difference) for difference in differences(left, right)],
        "same_value": same_value(left, right),
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _row(difference: Difference) -> dict[str, Any]:
    change = difference.change_pct
    return {
        "path": difference.path,
        "left": asdict(difference.left),
        "right": asdict(difference.right),
        "change_pct": None if change is None else round(change, 3),
    }


def _strips(found: Sequence[Difference], names: tuple[str, str]) -> Sequence[Strip]:
    strips = [Strip("key", tuple(each.path for each in found))]
    for side, name in enumerate(names):
        quantities = [(each.left, each.right)[side] for each in found]
        values = [shown(quantity) for quantity in quantities]
        strips += [
            Strip(name, tuple(value for value, _ in values), number=True),
            Strip("unit", tuple(unit for _, unit in values)),
            Strip("stderr", tuple(map(_error, quantities)), number=True, shed=1),
        ]
    statuses = tuple(_statuses(each) for each in found)
    return [*strips, Strip("change", tuple(map(_change, found)), number=True), Strip("status", statuses, shed=2)]


def _change(difference: Difference) -> str:
    change = difference.change_pct
    if change is None:
        return "-"
    return f"x{1 + change / 100:.3g}" if change > 1000 else f"{change:+.1f} %"


def _error(quantity: Quantity) -> str:
    return "-" if quantity.stderr is None else f"{quantity.stderr:g}"


def _statuses(difference: Difference) -> str:
    left, right = difference.left.status, difference.right.status
    return left if left == right else f"{left} / {right}"


def _same_lines(paths: Sequence[str], any_differs: bool) -> list[Line]:
    """One sentence on leaves that are equal and not equally well known; they are named where they are few."""
    if not paths:
        return []
    named = f": {', '.join(paths)}" if len(paths) <= _MOST_NAMED else ""
    text = f"{len(paths)} equal {'number has' if len(paths) == 1 else 'numbers have'} another error or status{named}."
    return [*([Line("")] if any_differs else []), prose(text)]


def _names(left: Machine, right: Machine) -> tuple[str, str]:
    """What tells the two apart: the names, else the states, else which was named first."""
    if left.name != right.name:
        return left.name, right.name
    if left.state != right.state:
        return f"{left.name} {left.state}", f"{right.name} {right.state}"
    return f"{left.name} (1)", f"{right.name} (2)"


def _known(quantity: Quantity) -> tuple[float | None, str]:
    return quantity.stderr, quantity.status


def _value(machine: Machine, path: str) -> object:
    """A leaf in its internal unit."""
    section, _, leaf = path.rpartition(".")
    return getattr(getattr(machine, section), leaf) if section else machine.band_pct
