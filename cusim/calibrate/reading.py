"""What micro-benchmarks say of a machine: each leaf that a quantity, or several, give by themselves."""

from __future__ import annotations

import fnmatch
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cusim.calibrate.fixed import Fixed, value_of
from cusim.calibrate.micro import Samples
from cusim.calibrate.parameters import ORDER_LEAF, READ, SM_ORDER, TENSOR_CLOCK, TENSOR_LEAVES, Read
from cusim.calibrate.pool import Pool
from cusim.engine.shared import DROOP_ORDER
from cusim.errors import Problems
from cusim.machine.machine import Machine
from cusim.machine.quantity import kind_of

#: A reading further than this part off the line says that the clock follows another law.
_CROOKED = 0.01


@dataclass(frozen=True, slots=True)
class Readings:
    """The leaves that a file of micro-benchmarks fixes, and *warnings* about those that it fixes badly or not."""

    fixed: tuple[Fixed, ...]
    warnings: tuple[str, ...]


def readings(pool: Pool, machine: Machine) -> Readings:
    """Every leaf that *pool* fixes. Raises InputError for a quantity that has another unit or makes no sense."""
    problems, warnings = Problems(pool.said), list[str]()
    known: dict[str, Fixed] = {}
    for read in READ:
        if (found := _read(read, pool, machine, known, problems, warnings)) is not None:
            known[read.path] = found
    fixed = list(known.values())
    fixed += _tensor_clock(pool, machine, problems, warnings)
    fixed += _sm_order(pool, machine, problems, warnings)
    problems.raise_if_any()
    return Readings(tuple(fixed), tuple(warnings))


def _read(
    read: Read, pool: Pool, machine: Machine, known: Mapping[str, Fixed], problems: Problems, warnings: list[str]
) -> Fixed | None:
    pattern = read.quantities.format(sms=machine.limits.sms)
    measured = pool.samples(fnmatch.filter(pool.names, pattern))
    if not measured:
        warnings.append(f"{read.path} is not measured: {pool.said} has no {pattern}; it keeps what it had")
        return None
    found = [_internal(name, samples, read.path, problems) for name, samples in measured]
    parts = [part for part in found if part is not None]
    if len(parts) < len(measured):
        return None
    value, stderr = _together(parts)
    by = pattern
    source = f"{read.meaning}: {_medians(measured)}; {_origin(pool)}"
    if not read.less:
        if stderr is None:
            warnings.append(f"{read.path}: too few samples of {by} for a standard error")
        return Fixed(read.path, value, stderr, by, source, pool.record)
    return _rest_of_sum(read, Fixed(read.path, value, stderr, by, source, pool.record), machine, known, warnings)


def _rest_of_sum(
    read: Read, whole: Fixed, machine: Machine, known: Mapping[str, Fixed], warnings: list[str]
) -> Fixed | None:
    """What is left of a measured sum; where the other part was not read, neither part has a standard error."""
    part = known.get(read.less)
    taken = value_of(machine, read.less) if part is None else part.value
    assert not isinstance(whole.value, tuple)
    assert not isinstance(taken, tuple)
    rest = whole.value - taken
    if rest <= 0:
        warnings.append(f"{read.path} keeps what it had: {whole.by} is no more than {read.less} alone")
        return None
    by = f"{whole.by} less {read.less}"
    if part is None:
        warnings.append(f"{read.path}: {whole.by} fixes only the sum with {read.less}, which keeps its value")
        told = f"{whole.source}; only the sum with {read.less} is measured"
        return replace(whole, value=rest, stderr=None, by=by, source=told, status="extrapolated")
    stderr = None if whole.stderr is None or part.stderr is None else math.hypot(whole.stderr, part.stderr)
    return replace(whole, value=rest, stderr=stderr, by=by, source=f"{whole.source}; less {read.less}")


def _internal(name: str, samples: Samples, path: str, problems: Problems) -> tuple[float, float | None] | None:
    """Median and standard error of a quantity in the internal unit of the leaf at *path*; None after a mistake."""
    kind, median = kind_of(path.rpartition(".")[2]), samples.median
    key = f"quantities.{name}"
    if samples.unit not in kind.units:
        problems.add(f"{key}.unit", samples.unit, f"{path} is a {kind.name}: {' '.join(kind.units)}")
        return None
    factor = kind.units[samples.unit]
    value = median * factor
    if value <= 0 or (kind.least is not None and value < kind.least) or (kind.most is not None and value > kind.most):
        problems.add(f"{key}.samples", f"{median:g} {samples.unit}", f"the median makes no sense as {path}")
        return None
    return value, None if samples.stderr is None else samples.stderr * factor


def _together(parts: Sequence[tuple[float, float | None]]) -> tuple[float, float | None]:
    """The mean of several medians; they differ by more than noise where the case matters, so the error spans them."""
    medians = [median for median, _ in parts]
    errors = [stderr for _, stderr in parts if stderr is not None]
    value = math.fsum(medians) / len(medians)
    if len(errors) < len(parts):
        return value, None
    return value, max(math.hypot(*errors) / len(parts), (max(medians) - min(medians)) / 2)


def _medians(measured: Sequence[tuple[str, Samples]]) -> str:
    return ", ".join(f"{name} {each.median:.6g} {each.unit} (n = {len(each.values)})" for name, each in measured)


def _origin(pool: Pool) -> str:
    return f"micro-benchmarks {pool.said} ({pool.place})"


def _tensor_clock(pool: Pool, machine: Machine, problems: Problems, warnings: list[str]) -> list[Fixed]:
    """The clock under tensor work as a straight line over the engine's power of the busy share, by least squares."""
    counts = {name: name.removeprefix(TENSOR_CLOCK) for name in pool.names if name.startswith(TENSOR_CLOCK)}
    names = sorted(
        (name for name, count in counts.items() if count.isdecimal()), key=lambda name: int(counts[name][:9])
    )
    beyond = [name for name in names if not 1 <= int(counts[name][:9]) <= machine.limits.sms]
    for name in beyond:
        problems.add(f"quantities.{name}", None, f"so many SMs cannot be busy: 1 to {machine.limits.sms}")
    names = [name for name in names if name not in beyond]
    measured = pool.samples(names)
    found = [_internal(name, samples, TENSOR_LEAVES[0], problems) for name, samples in measured]
    points = [(int(counts[name]), part[0]) for (name, _), part in zip(measured, found, strict=True) if part is not None]
    if not names or len(points) < len(measured):
        return []
    if len(names) < 2:
        warnings.append(f"{TENSOR_CLOCK}* was measured with one number of SMs busy: a clock and its droop need two")
        return []
    clocks = np.array([clock for _, clock in points])
    # Work done at once, as the engine counts it: SMs that run slower do less of it.
    shares = np.array([count / machine.limits.sms for count, _ in points]) * clocks / clocks.max()
    design = np.stack([np.ones_like(shares), shares**DROOP_ORDER], axis=1)
    (clock, slope), *_ = np.linalg.lstsq(design, clocks, rcond=None)
    droop = -slope / clock
    residuals = clocks - design @ np.array([clock, slope])
    errors = _line_errors(design, residuals, clock, slope)
    source = f"clock of n SMs that run their tensor cores, a line over (n / SMs)^{DROOP_ORDER}: {_medians(measured)}; "
    source += _origin(pool)
    by = f"{TENSOR_CLOCK}* ({len(points)} points)"
    worst = float(np.abs(residuals / clocks).max())
    if worst > _CROOKED:
        warnings.append(f"{TENSOR_LEAVES[1]}: the line over (n / SMs)^{DROOP_ORDER} misses a reading by "
                        f"{100 * worst:.1f} %")  # fmt: skip
    if droop < 0:
        warnings.append(f"{TENSOR_LEAVES[1]}: {by} does not fall with busy SMs; it is taken as none")
        droop = 0.0
    if errors is None:
        warnings.append(f"{' and '.join(TENSOR_LEAVES)}: two points are a line, and leave no standard error")
    values = zip(TENSOR_LEAVES, (float(clock), float(droop)), errors or (None, None), strict=True)
    return [Fixed(path, value, stderr, by, source, pool.record) for path, value, stderr in values]


def _line_errors(design: np.ndarray, residuals: np.ndarray, clock: float, slope: float) -> tuple[float, float] | None:
    """Standard errors of the clock and of the droop, -slope / clock; None where the line has no point to spare."""
    spare = len(residuals) - 2
    if not spare:
        return None
    covariance = np.linalg.inv(design.T @ design) * float(residuals @ residuals) / spare
    gradient = np.array([slope / clock**2, -1.0 / clock])
    return float(np.sqrt(covariance[0, 0])), float(np.sqrt(gradient @ covariance @ gradient))


def _sm_order(pool: Pool, machine: Machine, problems: Problems, warnings: list[str]) -> list[Fixed]:
    """The order of SMs that most runs had; it differs from run to run, so it has no error, only a share."""
    rows = pool.rows(SM_ORDER)
    if not rows:
        warnings.append(f"{ORDER_LEAF} is not measured: {pool.said} has no table {SM_ORDER}; it keeps what it had")
        return []
    (order, seen), *_ = Counter(tuple(row) for row in rows).most_common(1)
    if any(type(sm) is not int for sm in order) or sorted(order) != list(range(machine.limits.sms)):
        problems.add(f"tables.{SM_ORDER}", f"{len(order)} ids", f"must name each of the {machine.limits.sms} SMs once")
        return []
    by = f"{SM_ORDER}, {seen} of {len(rows)} runs"
    if 2 * seen <= len(rows):
        warnings.append(f"{ORDER_LEAF}: the order of SMs differs from run to run; the most frequent had {seen} of "
                        f"{len(rows)}")  # fmt: skip
    source = f"SM of block 0, 1, ... of a first wave, one block an SM, the order of {seen} of {len(rows)} runs; "
    source += _origin(pool)
    return [Fixed(ORDER_LEAF, order, None, by, source, pool.record)]
