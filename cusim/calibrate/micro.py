"""A file of micro-benchmarks (``cusim.micro/1``): quantities with their samples, and the standard error of a median."""

from __future__ import annotations

import itertools
import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cusim.errors import Problems, refuse
from cusim.files import read_file
from cusim.machine.calibration import file_digest
from cusim.machine.machine import Machine
from cusim.validate.recordings import same_gpu

SCHEMA = "cusim.micro/1"
#: The file keeps so many decimals: what all samples agree on is known no better.
_LEAST_STEP = 0.001
_FEWEST = 3


@dataclass(frozen=True, slots=True)
class Samples:
    """One quantity: its *unit*, *how* it was measured, every sample, and the *step* in which samples come at best."""

    unit: str
    how: str
    values: tuple[float, ...]
    step: float = _LEAST_STEP

    @property
    def median(self) -> float:
        """The median, in the quantity's unit."""
        return statistics.median(self.values)

    @property
    def stderr(self) -> float | None:
        """The standard error of the median, in the quantity's unit; None of fewer than three samples.

        Half the distance between the order statistics one standard deviation (sqrt(n) / 2 ranks) to either side of the
        middle, which assumes no distribution; and no less than the steps in which the samples come.
        """
        ordered, count = sorted(self.values), len(self.values)
        if count < _FEWEST:
            return None
        reach = math.sqrt(count) / 2
        low, high = max(0, math.floor(count / 2 - reach)), min(count, math.ceil(count / 2 + reach))
        steps = [b - a for a, b in itertools.pairwise(ordered) if b > a]
        step = max(self.step, min(steps, default=self.step))
        return max((ordered[high - 1] - ordered[low]) / 2, step / math.sqrt(12))


@dataclass(frozen=True, slots=True)
class Micro:
    """A file of micro-benchmarks: *file* is its name, *digest* what finds it again, *place* the GPU and the day."""

    file: str
    digest: str
    place: str
    quantities: Mapping[str, Samples]
    tables: Mapping[str, Sequence[Sequence[Any]]]


def read_micro(path: Path, machine: Machine) -> Micro:
    """The micro-benchmarks in *path*, taken on the GPU that *machine* is; InputError with everything that is wrong."""
    try:
        data = read_file(path)
        document = json.loads(data)
    except OSError as error:
        raise refuse(str(path), "file", None, f"cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise refuse(str(path), "file", None, f"is not JSON: {error}") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        given = document.get("schema") if isinstance(document, dict) else None
        raise refuse(str(path), "schema", given, f'must be "{SCHEMA}"')
    problems = Problems(str(path))
    meta = _mapping(document, "provenance", problems)
    if not problems.found:
        _check_gpu(meta, machine, problems)
    given = _mapping(document, "quantities", problems)
    timer_ns = meta.get("timer_step_ns")
    found = {name: _samples(name, quantity, timer_ns, problems) for name, quantity in given.items()}
    tables = {name: _table(name, table, problems) for name, table in _mapping(document, "tables", problems).items()}
    problems.raise_if_any()
    parts = (meta.get("gpu"), meta.get("driver") and f"driver {meta['driver']}", str(meta.get("date", ""))[:10])
    place = ", ".join(str(part) for part in parts if part)
    return Micro(path.name, file_digest(data), place, {k: v for k, v in found.items() if v is not None}, tables)


def _check_gpu(meta: Mapping[str, Any], machine: Machine, problems: Problems) -> None:
    gpu, sms = meta.get("gpu"), meta.get("sms")
    if not isinstance(gpu, str) or not gpu.strip():
        problems.add("provenance.gpu", gpu, "must say which GPU was measured")
    elif not same_gpu(gpu, machine.gpu):
        problems.add("provenance.gpu", gpu, f"another GPU: the machine {machine.name} is a {machine.gpu}")
    elif sms is not None and sms != machine.limits.sms:
        problems.add("provenance.sms", sms, f"another GPU: the machine {machine.name} has {machine.limits.sms}")


def _mapping(document: Mapping[str, Any], key: str, problems: Problems) -> Mapping[str, Any]:
    given = document.get(key)
    if isinstance(given, Mapping):
        return given
    problems.add(key, given, "missing: an object is needed" if given is None else "must be an object")
    return {}


def _samples(name: str, given: Any, timer_ns: Any, problems: Problems) -> Samples | None:
    key = f"quantities.{name}"
    values = given.get("samples") if isinstance(given, Mapping) else None
    if not (isinstance(values, list) and values):
        problems.add(f"{key}.samples", values, "must be a list of numbers, not empty")
        return None
    wrong = [each for each in values if type(each) not in (int, float) or not math.isfinite(each)]
    if wrong:
        problems.add(f"{key}.samples", wrong[0], "must be finite numbers")
        return None
    unit = str(given.get("unit", ""))
    # Times that are all whole steps of the GPU's timer were read off it, and are no better known than a step.
    read_off = unit == "ns" and type(timer_ns) is int and timer_ns > 0 and not any(each % timer_ns for each in values)
    step = float(timer_ns) if read_off else _LEAST_STEP
    return Samples(unit, str(given.get("how", "")), tuple(map(float, values)), step)


def _table(name: str, given: Any, problems: Problems) -> Sequence[Sequence[Any]]:
    rows = given.get("rows") if isinstance(given, Mapping) else None
    if isinstance(rows, list) and all(isinstance(row, list) for row in rows):
        return rows
    problems.add(f"tables.{name}.rows", None, "must be a list of rows")
    return ()
