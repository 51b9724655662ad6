"""What a trace file may hold at most: far more than any GPU does, and little enough to be drawn and summed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from cusim.errors import Problems
from cusim.trace.columns import NONE, TIME_COLUMNS, Table, column_key

#: Times of a file, in nanoseconds either way from the run's start: their differences fit 64 bits in picoseconds.
MOST_NS = 2**62 // 1000
_INDEX = (0, 2**31 - 1)
_OPTIONAL = (NONE, 2**31 - 1)
#: Least and greatest value of the columns that hold no times; those that index a list are checked against it.
RANGES: Mapping[str, tuple[int, int]] = {
    "r": _INDEX, "c": _INDEX, "z": _INDEX, "ticket": _OPTIONAL, "block": _OPTIONAL, "semaphore": _OPTIONAL,
    "epoch": (-(2**31), 2**32 - 1),
    "sm": (0, 4095),
    "lane": (NONE, 4095),
}  # fmt: skip
#: The same for counts in the meta that say how large the GPU is.
_COUNTS = {"sms": 4096, "warps_per_sm": 1024, "blocks_per_sm": 1024, "warps_per_block": 1024}
_MOST_META = 2**63 - 1


def check_columns(problems: Problems, tables: Mapping[str, Table]) -> None:
    """Records the first value out of range of every column of a file's *tables*, whose times are in nanoseconds."""
    for label, table in tables.items():
        for name, column in table.items():
            least, most = (-MOST_NS, MOST_NS) if name in TIME_COLUMNS else RANGES.get(name, (None, None))
            if least is None or most is None:
                continue
            rows = np.flatnonzero((column < least) | (column > most))
            if len(rows):
                given = int(column[rows[0]])
                why = f"must be at most {most}" if given > most else f"must be {least} or more"
                problems.add(f"{label}.{column_key(name, '_ns')}[{rows[0]}]", given, why)


def check_meta(problems: Problems, meta: Mapping[str, Any]) -> None:
    """Records numbers of the *meta* that are not finite, or whole and too large, however deep they stand."""
    left = [(f"meta.{key}", value, _COUNTS.get(key, _MOST_META)) for key, value in meta.items()]
    while left:
        key, value, most = left.pop()
        if isinstance(value, Mapping):
            left += [(f"{key}.{name}", inner, most) for name, inner in value.items()]
        elif isinstance(value, list):
            left += [(f"{key}[{place}]", inner, most) for place, inner in enumerate(value)]
        elif isinstance(value, float) and not math.isfinite(value):
            problems.add(key, value, "must be a finite number")
        elif isinstance(value, int) and abs(value) > most:
            problems.add(key, value, f"must be at most {most}")
