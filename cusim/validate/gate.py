"""Gates: limits, committed in a file, that a validation must keep; a set that is missing misses its gates."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cusim.errors import Problems, did_you_mean, refuse
from cusim.files import read_file
from cusim.recording.rows import SETS
from cusim.validate.judging import judge
from cusim.validate.recorded_tables import KINDS, RecordedTable

SCHEMA = "cusim.gate/1"
#: Regret less that of the best rival, in points: at most 0 where no rule chooses better.
ABOVE_RIVALS = "regret_above_rivals_pts"
_LIMITS = ("at_most", "at_least")
_KEYS = ("set", "kind", "metric", *_LIMITS, "why")


@dataclass(frozen=True, slots=True)
class Gate:
    """The *metric* of one table (*label* is its set), and the limits that it must keep; None where there is none."""

    label: str
    kind: str
    metric: str
    at_most: float | None
    at_least: float | None
    why: str = ""

    @property
    def text(self) -> str:
        """The gate in words."""
        limits = (("at most", self.at_most), ("at least", self.at_least))
        wanted = " and ".join(f"{word} {limit:g}" for word, limit in limits if limit is not None)
        return f"{self.label} {self.kind} {self.metric} {wanted}"


@dataclass(frozen=True, slots=True)
class Passed:
    """A gate and what was reached: None where there is no such table, or nothing to say in it."""

    gate: Gate
    value: float | None

    @property
    def met(self) -> bool:
        """True within both limits; a figure that is missing keeps none."""
        if self.value is None:
            return False
        most, least = self.gate.at_most, self.gate.at_least
        return (most is None or self.value <= most) and (least is None or self.value >= least)

    @property
    def text(self) -> str:
        """The gate with what was reached, in words."""
        reached = "nothing to judge" if self.value is None else f"reached {self.value:.4g}"
        return f"{self.gate.text}; {reached}" + (f" ({self.gate.why})" if self.gate.why else "")


def load_gates(path: Path) -> tuple[Gate, ...]:
    """The gates of a TOML file; InputError naming it for whatever is unknown, missing or no number."""
    try:
        text = read_file(path).decode()
        document = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "not a UTF-8 text"
        raise refuse("--gate", "gate", str(path), f"cannot be read: {reason}") from None
    except tomllib.TOMLDecodeError as error:
        raise refuse(str(path), "file", None, f"is not TOML: {error}") from None
    problems = Problems(str(path))
    if document.get("schema") != SCHEMA:
        problems.add("schema", document.get("schema"), f'must be "{SCHEMA}"')
    for key in document:
        if key not in ("schema", "gate"):
            problems.add(key, document[key], f"unknown key: {did_you_mean(key, ('schema', 'gate'))}")
    tables = document.get("gate")
    if not isinstance(tables, list) or not tables:
        problems.add("gate", tables, "at least one [[gate]] is needed")
        tables = []
    found = [_gate(table, f"gate[{place}]", problems) for place, table in enumerate(tables)]
    problems.raise_if_any()
    return tuple(gate for gate in found if gate is not None)


def passed(gates: Sequence[Gate], tables: Sequence[RecordedTable]) -> list[Passed]:
    """Each gate with the figure that was reached."""
    figures = {(table.label, table.kind): figures_of(table) for table in tables}
    return [Passed(gate, figures.get((gate.label, gate.kind), {}).get(gate.metric)) for gate in gates]


def figures_of(table: RecordedTable) -> dict[str, float | None]:
    """Every figure of a table that a gate can name."""
    own = table.summary.ranking.regret_pct
    others = [rival.ranking.regret_pct for rival in table.rivals.values() if rival.ranking.regret_pct is not None]
    above = own - min(others) if own is not None and others else None
    return {**_plain(table.summary.to_json()), ABOVE_RIVALS: above}


def metrics() -> tuple[str, ...]:
    """The names of :func:`figures_of`, sorted."""
    return tuple(sorted({*_plain(judge(()).to_json()), ABOVE_RIVALS}))


def _plain(summary: Mapping[str, Any]) -> dict[str, float | None]:
    return {name: value for name, value in summary.items() if name != "rank_interval"}


def _gate(table: object, key: str, problems: Problems) -> Gate | None:
    if not isinstance(table, Mapping):
        problems.add(key, table, "must be a table: [[gate]]")
        return None
    before = len(problems.found)
    for name in table:
        if name not in _KEYS:
            problems.add(f"{key}.{name}", table[name], f"unknown key: {did_you_mean(name, _KEYS)}")
    for name, allowed in (("set", SETS), ("kind", KINDS), ("metric", metrics())):
        given = table.get(name)
        if given not in allowed:
            known = did_you_mean(given, allowed) if isinstance(given, str) else f"allowed: {' '.join(allowed)}"
            problems.add(f"{key}.{name}", given, known)
    for name in _LIMITS:
        limit = table.get(name)
        if limit is not None and not (type(limit) in (int, float) and math.isfinite(limit)):
            problems.add(f"{key}.{name}", limit, "must be a number")
    if not any(name in table for name in _LIMITS):
        problems.add(key, None, "needs at_most or at_least")
    if not isinstance(table.get("why", ""), str):
        problems.add(f"{key}.why", table["why"], "must be a text")
    if len(problems.found) > before:
        return None
    most, least = (table.get(name) for name in _LIMITS)
    return Gate(table["set"], table["kind"], table["metric"], most, least, table.get("why", ""))
