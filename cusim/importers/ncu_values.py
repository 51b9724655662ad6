"""Values as Nsight Compute prints them: numbers with thousands separators, units that are scaled, sizes as triples."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TypeAlias

_PLAIN = re.compile(r"\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_GROUPED = re.compile(r"[1-9]\d{0,2}(,\d{3})+(\.\d+)?", re.ASCII)
_DECIMAL_COMMA = re.compile(r"\d+([. \u00a0\u202f]\d{3})*,\d+", re.ASCII)
_TRIPLE = re.compile(r"\(?\s*(\d{1,10})\s*,\s*(\d{1,10})\s*,\s*(\d{1,10})\s*\)?", re.ASCII)

Scales: TypeAlias = dict[str, int]
#: Nanoseconds in a unit of time; older versions spell units out.
NANOSECONDS: Scales = {
    "ns": 1, "nsecond": 1,
    "us": 10**3, "usecond": 10**3,
    "ms": 10**6, "msecond": 10**6,
    "s": 10**9, "second": 10**9,
}  # fmt: skip
#: Bytes in a unit of shared memory. Nsight Compute's Kbyte is 1000 bytes.
BYTES: Scales = {
    "byte/block": 1, "Kbyte/block": 10**3, "Mbyte/block": 10**6,
    "byte": 1, "Kbyte": 10**3, "Mbyte": 10**6,
}  # fmt: skip
#: Plain counts; the unit says of what.
COUNTS: Scales = dict.fromkeys(("", "register/thread", "register", "thread", "block", "SM", "#"), 1)


class BadValueError(ValueError):
    """A value that cannot be read; the text says why, in words for the user."""


def number(text: str) -> Decimal:
    """A number, with or without separators between its thousands; BadValueError for anything else."""
    text = text.strip()
    if _PLAIN.fullmatch(text):
        return Decimal(text)
    if _GROUPED.fullmatch(text):
        return Decimal(text.replace(",", ""))
    if _DECIMAL_COMMA.fullmatch(text):
        raise BadValueError("has a decimal comma, which cannot be told from a separator; run ncu with LC_ALL=C")
    raise BadValueError("must be a number, such as 1234.5 or 1,234.5")


def scaled(text: str, unit: str, scales: Scales) -> tuple[Decimal, Decimal]:
    """A value in the unit that *scales* counts in, and the size of its last printed digit there."""
    if unit not in scales:
        named = [name or "none" for name in scales]
        raise BadValueError(f"unit {unit or 'none'!r} is not known; allowed: {' '.join(named)}")
    value = number(text)
    exponent = value.as_tuple().exponent
    digits = exponent if isinstance(exponent, int) else 0
    return value * scales[unit], Decimal(scales[unit]).scaleb(min(digits, 0))


def count_of(text: str, unit: str) -> int:
    """A whole number without a scale."""
    value, _ = scaled(text, unit, COUNTS)
    if value % 1:
        raise BadValueError("must be a whole number")
    return int(value)


def nanoseconds_of(text: str, unit: str) -> int:
    """A time, rounded to whole nanoseconds."""
    value, _ = scaled(text, unit, NANOSECONDS)
    return int(value.to_integral_value())


def bytes_of(text: str, unit: str) -> int:
    """A size in bytes. Of all sizes that would be printed so, the one that the highest power of two divides.

    ``33.79 Kbyte`` stands for 33,785 to 33,795 bytes: 33,792 (33 KiB) is what a kernel asks for.
    """
    value, step = scaled(text, unit, BYTES)
    if step <= 1:
        if value % 1:
            raise BadValueError("must be a whole number of bytes")
        return int(value)
    low, high = int(value - step / 2 + Decimal("0.5")), int(value + step / 2)
    for power in reversed(range(24)):
        unit_bytes = 1 << power
        rounded = -(-max(low, 0) // unit_bytes) * unit_bytes
        if rounded <= high:
            return rounded
    return int(value)


def triple_of(text: str) -> tuple[int, int, int]:
    """Sizes along x, y and z, as in ``(64, 18, 1)``."""
    found = _TRIPLE.fullmatch(text.strip())
    if found is None:
        raise BadValueError("must be three sizes, such as (64, 18, 1)")
    x, y, z = (int(part) for part in found.groups())
    return x, y, z
