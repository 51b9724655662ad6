"""What-if: a machine with some of its numbers replaced (``--set machine.sms=108``)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from cusim.errors import Problems, did_you_mean
from cusim.machine.check import check_values
from cusim.machine.machine import Machine, leaf_paths, leaves
from cusim.machine.quantity import IDS, WORD, Kind, Quantity, Scalar, UnitError, Value, kind_of, to_internal
from cusim.machine.sections import PLACEMENTS, SECTIONS

SOURCE = "--set"
_NUMBER = re.compile(r"([-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf))\s*(\S*)", re.ASCII)


def with_overrides(machine: Machine, settings: Sequence[str]) -> Machine:
    """*machine* with each of *settings* applied, recorded in ``overrides`` and marked extrapolated.

    A setting is ``key=value``. A key is "section.leaf" or a leaf name, with or without a leading "machine.".
    A value is a number with a unit ("2us", "96KiB"), which only counts and fractions may leave out, or a factor on
    what *machine* has ("x10"). Where the number of SMs changes, ``sm_order`` follows: ids that are gone drop out, new
    ones join at the end. Raises InputError with every mistake.
    """
    problems = Problems(SOURCE)
    chosen: dict[str, tuple[Any, Quantity]] = {}
    for setting in settings:
        key, _, text = (part.strip() for part in setting.partition("="))
        if not key or not text:
            problems.add(setting, None, "must be key=value, such as machine.sms=108")
        elif path := _path(problems, key, text):
            _choose(problems, path, text, machine.provenance[path], chosen)
    problems.raise_if_any()
    return _apply(problems, machine, chosen, tuple(settings))


def corrected(machine: Machine, settings: Sequence[str]) -> Machine:
    """*machine* with numbers that are known better, not a what-if: times measured on it were measured on this one."""
    return replace(with_overrides(machine, settings), base=None)


def _path(problems: Problems, key: str, given: str) -> str | None:
    """The full path that *key* stands for, or None after a mistake."""
    short = key.removeprefix("machine.")
    paths = leaf_paths()
    if short in paths:
        return short
    found = [path for path in paths if path.rpartition(".")[2] == short]
    if len(found) == 1:
        return found[0]
    if found:
        problems.add(key, given, f"could be {' or '.join(found)}")
        return None
    problems.add(key, given, f"unknown {_hint(short)}")
    return None


def _hint(short: str) -> str:
    """What a mistyped key could have been: a section, a leaf of its section, or any leaf."""
    section, dot, leaf = short.partition(".")
    if dot and section not in SECTIONS:
        return f"section: {did_you_mean(section, SECTIONS)}"
    names = leaves(section) if dot else [path.rpartition(".")[2] for path in leaf_paths()]
    return f"leaf: {did_you_mean(leaf if dot else section, names)}"


def _choose(
    problems: Problems, path: str, text: str, present: Quantity, chosen: dict[str, tuple[Any, Quantity]]
) -> None:
    kind = kind_of(path.rpartition(".")[2])
    if kind is WORD:
        if text not in PLACEMENTS:
            problems.add(path, text, did_you_mean(text, PLACEMENTS))
        chosen[path] = (text, _quantity(text, "word"))
        return
    if kind is IDS:
        if text != "ascending":
            problems.add(path, text, "allowed here: ascending  (write a machine file for another order)")
        chosen[path] = ((), _quantity((), "id"))
        return
    try:
        number, unit = _scaled(present, text[1:]) if text.startswith("x") else _number(kind, text)
        chosen[path] = (to_internal(kind, number, unit), _quantity(number, unit))
    except UnitError as error:
        problems.add(path, text, str(error))


def _number(kind: Kind, text: str) -> tuple[Scalar, str]:
    """The number and the unit that *text* spells; UnitError where the unit is missing, or it is no number."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        form = "with a unit" if kind.dimensional else "with or without a unit"
        raise UnitError(f"must be a number, {form} ({' '.join(kind.units)}), or a factor such as x2")
    if kind.dimensional and not match[2] and math.isfinite(float(match[1])):
        raise UnitError(f"needs a unit: {' '.join(f'{match[1]}{unit}' for unit in kind.units)}")
    return _plain(match[1]), match[2] or kind.unit


def _scaled(present: Quantity, factor: str) -> tuple[Scalar, str]:
    """What the machine has, times *factor*, in the unit in which it is given."""
    match = _NUMBER.fullmatch(factor)
    value = present.value
    if match is None or match[2] or not isinstance(value, int | float) or not math.isfinite(float(match[1])):
        raise UnitError("after x stands a number, by which the machine's own value is multiplied, as in x10 or x0.5")
    exact = Fraction(str(value)) * Fraction(str(_plain(match[1])))
    return int(exact) if exact.denominator == 1 else float(exact), present.unit


def _plain(text: str) -> Scalar:
    return float(text) if re.search(r"[.eEni]", text) else int(text)


def _apply(
    problems: Problems, machine: Machine, chosen: dict[str, tuple[Any, Quantity]], settings: tuple[str, ...]
) -> Machine:
    values = machine.values()
    provenance = dict(machine.provenance)
    band = machine.band_pct
    for path, (value, quantity) in chosen.items():
        section, _, leaf = path.rpartition(".")
        provenance[path] = quantity
        if section:
            values[section][leaf] = value
        else:
            band = value
    order = _order(values["dispatch"]["sm_order"], values["limits"]["sms"])
    if order != machine.dispatch.sm_order:
        provenance["dispatch.sm_order"] = _quantity(order, "id")
    values["dispatch"]["sm_order"] = order
    check_values(problems, values)
    problems.raise_if_any()
    parts = {section: kind(**values[section]) for section, kind in SECTIONS.items()}
    overrides = machine.overrides + settings
    base = machine.base or machine
    return replace(machine, band_pct=band, provenance=provenance, overrides=overrides, base=base, **parts)


def _order(order: Sequence[int], sms: int) -> tuple[int, ...]:
    """*order* made to fit *sms* SMs: ids that are gone left out, missing ones appended in ascending order."""
    kept = [sm for sm in order if sm < sms]
    return (*kept, *sorted(set(range(sms)) - set(kept)))


def _quantity(value: Value, unit: str) -> Quantity:
    return Quantity(value, unit, SOURCE, None, "extrapolated")
