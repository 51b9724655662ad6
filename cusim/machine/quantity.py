"""A number with its provenance, and the units in which a machine file may give it.

The name of a leaf decides its kind: ``post_ps`` is a time, ``smem_per_sm_bytes`` a size, ``sms`` a count. A
kind names the units that are allowed, the internal unit they are converted to, and the range that makes
sense.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal

from cusim.errors import did_you_mean

Status = Literal["measured", "published", "extrapolated"]
STATUSES: tuple[Status, ...] = ("measured", "published", "extrapolated")
Scalar = int | float
Value = int | float | str | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value as it was given, in *unit*, with the source that vouches for it.

    *stderr* is a standard error in the same unit, or None where none is known. *record* names the calibration
    record that the value was fitted from, or is None.
    """

    value: Value
    unit: str
    source: str
    stderr: float | None
    status: Status
    record: str | None = None


@dataclass(frozen=True, slots=True)
class Kind:
    """What sort of number a leaf holds: its *units* and their factors to the internal unit, and its range.

    *whole* is "exact" (must come out whole), "round" (rounded to a whole number) or "real" (a float). *least* and
    *most*, in the internal unit, keep a slip from eating all memory or running past 64 bits.
    """

    name: str
    units: Mapping[str, Scalar] = field(default_factory=dict)
    whole: Literal["exact", "round", "real"] = "exact"
    zero: bool = False
    least: Scalar | None = None
    most: Scalar | None = None

    @property
    def unit(self) -> str:
        """The internal unit: the one whose factor is 1."""
        return next((unit for unit, factor in self.units.items() if factor == 1), "")

    @property
    def dimensional(self) -> bool:
        """True for what means nothing without a unit: all but counts, fractions and per cents."""
        return "1" not in self.units

    def in_units(self, value: Scalar) -> str:
        """*value*, in the internal unit, in the largest unit that keeps it at 1 or more."""
        unit = max((u for u, factor in self.units.items() if factor <= value), key=self.units.__getitem__, default="")
        if not self.dimensional or not unit:
            return str(value)
        scaled = Fraction(str(value)) / Fraction(str(self.units[unit]))
        return f"{int(scaled) if scaled.denominator == 1 else float(scaled)} {unit}"


class UnitError(ValueError):
    """A value or unit that its kind does not allow; the text says what is allowed."""


COUNT = Kind("count", {"1": 1}, most=2**31 - 1)
TIME = Kind("time", {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}, "round", zero=True, most=10**13)
BYTES = Kind("bytes", {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}, most=2**40)
RESERVE = replace(BYTES, zero=True)
FREQUENCY = Kind("frequency", {"Hz": 1, "MHz": 10**6, "GHz": 10**9}, "round", least=10**6, most=10**12)
BANDWIDTH = Kind("bandwidth", {"B/s": 1, "GB/s": 10**9, "TB/s": 10**12}, "round", least=10**6, most=10**16)
FLOPS_PER_CLOCK = Kind("flop per clock", {"flop/clock": 1}, most=2**24)
BYTES_PER_CLOCK = Kind("bytes per clock", {"B/clock": 1}, "real", least=0.001, most=2**20)
FRACTION = Kind("fraction", {"1": 1, "%": 0.01}, "real", least=1e-6, most=1)
LOSS = Kind("fraction", {"1": 1, "%": 0.01}, "real", zero=True, most=0.99)
CLOCKS = Kind("clocks", {"clock": 1}, "real", zero=True, most=10**6)
ORDER = Kind("order of a norm", {"1": 1}, "real", least=1, most=1000)
PERCENT = Kind("percent", {"%": 1, "1": 100}, "real", zero=True, most=10_000)
WORD = Kind("word", {"word": 1})
IDS = Kind("ids", {"id": 1})

#: Counts that no GPU comes near; everything simulated grows with them.
_MOST = {
    "sms": 4096,
    "warps_per_sm": 1024,
    "threads_per_sm": 32768,
    "blocks_per_sm": 1024,
    "threads_per_block": 32768,
    "partitions": 64,
    "resident_grids": 65536,
    "hardware_queues": 4096,
}
_NAMED = {
    **{name: replace(COUNT, most=most) for name, most in _MOST.items()},
    "smem_reserve_bytes": RESERVE,
    "tensor_efficiency": FRACTION,
    "lone_block_share": FRACTION,
    "sustained_share": FRACTION,
    "clock_droop": LOSS,
    "step_clocks": CLOCKS,
    "join_clocks": CLOCKS,
    "hidden_wait_share": LOSS,
    "contention_sharpness": ORDER,
    "band_pct": PERCENT,
    "placement": WORD,
    "sm_order": IDS,
}
# Longest suffix first: "_bytes_per_s" also ends in what "_s" would, and must not be read as a size.
_SUFFIXES = (
    ("_flops_per_clock_sm", FLOPS_PER_CLOCK),
    ("_bytes_per_clock", BYTES_PER_CLOCK),
    ("_bytes_per_s", BANDWIDTH),
    ("_bytes", BYTES),
    ("_hz", FREQUENCY),
    ("_ps", TIME),
)


def kind_of(leaf: str) -> Kind:
    """The kind of the leaf called *leaf*, from its name alone; a name without a unit suffix is a count."""
    if leaf in _NAMED:
        return _NAMED[leaf]
    return next((kind for suffix, kind in _SUFFIXES if leaf.endswith(suffix)), COUNT)


def to_internal(kind: Kind, value: Scalar, unit: str) -> Scalar:
    """*value* in *unit* as a plain int or float in the internal unit of *kind*.

    Raises UnitError for an unknown unit, NaN or infinity, a value out of range, or a fraction of a whole
    thing.
    """
    if unit not in kind.units:
        raise UnitError(f"unknown unit {unit!r} for a {kind.name}: {did_you_mean(unit, kind.units)}")
    if not math.isfinite(value):
        raise UnitError("must be a finite number")
    exact = Fraction(str(value)) * Fraction(str(kind.units[unit]))
    if exact < 0 or (exact == 0 and not kind.zero):
        raise UnitError(f"must be {'0 or more' if kind.zero else 'above 0'}")
    if kind.least is not None and exact < Fraction(str(kind.least)):
        raise UnitError(f"must be at least {kind.in_units(kind.least)}")
    if kind.most is not None and exact > Fraction(str(kind.most)):
        raise UnitError(f"must be at most {kind.in_units(kind.most)}")
    if kind.whole == "real":
        return float(exact)
    if kind.whole == "exact" and exact.denominator != 1:
        raise UnitError(f"must be a whole number{'' if kind.unit == '1' else ' of ' + kind.unit}")
    return round(exact)
