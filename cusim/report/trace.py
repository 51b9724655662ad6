"""What a trace file carries so that it can be read alone: the shape of the machine that it ran on."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from cusim.errors import Problems
from cusim.trace.metrics import MachineShape, check_shape
from cusim.trace.trace import Trace

_COUNTS = ("sms", "warps_per_sm")
_BY_KERNEL = ("blocks_per_sm", "warps_per_block")


def with_shape(trace: Trace, shape: MachineShape) -> Trace:
    """The trace with *shape* in its meta, so that a file of it can be drawn without the program."""
    added = {
        "sms": shape.sms,
        "warps_per_sm": shape.warps_per_sm,
        "blocks_per_sm": dict(shape.blocks_per_sm),
        "warps_per_block": dict(shape.warps_per_block),
    }
    return dataclasses.replace(trace, meta={**trace.meta, **added})


def shape_in(trace: Trace, source: str) -> tuple[MachineShape, tuple[str, ...]]:
    """The shape that the trace's meta holds, and what had to be guessed from its blocks where it holds none.

    Raises InputError, naming *source*, for a shape that is there and wrong.
    """
    problems = Problems(source)
    guesses: list[str] = []
    counts = {key: _count(trace, key, problems) for key in _COUNTS}
    tables = {key: _table(trace, key, problems) for key in _BY_KERNEL}
    problems.raise_if_any()
    sms = counts["sms"] or _seen_sms(trace)
    guesses += [] if counts["sms"] else [f"sms ({sms}, the SMs seen)"]
    rooms = tables["blocks_per_sm"] or _seen_lanes(trace)
    guesses += [] if tables["blocks_per_sm"] else ["blocks per SM (the lanes seen)"]
    warps = tables["warps_per_block"] or dict.fromkeys(trace.kernels, 1)
    guesses += [] if tables["warps_per_block"] else ["warps per block"]
    shape = MachineShape(sms, counts["warps_per_sm"] or 64, rooms, warps)
    check_shape(trace, shape, source)
    return shape, tuple(guesses)


def _count(trace: Trace, key: str, problems: Problems) -> int | None:
    value = trace.meta.get(key)
    if value is not None and not _positive(value):
        problems.add(f"meta.{key}", value, "must be a whole number, 1 or more")
        return None
    return value


def _table(trace: Trace, key: str, problems: Problems) -> dict[str, int] | None:
    value = trace.meta.get(key)
    if value is None:
        return None
    if not isinstance(value, Mapping) or not all(map(_positive, value.values())):
        problems.add(f"meta.{key}", None, "must hold a whole number, 1 or more, for each kernel")
        return None
    missing = [name for name in trace.kernels if name not in value]
    if missing:
        problems.add(f"meta.{key}", None, f"lacks the kernels {' '.join(missing)}")
    return dict(value)


def _positive(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _seen_sms(trace: Trace) -> int:
    return int(trace.tiles["sm"].max()) + 1 if trace.blocks else 1


def _seen_lanes(trace: Trace) -> dict[str, int]:
    """The most lanes that any block of each kernel had; 1 for a kernel of which nothing ran."""
    lanes, kernel = trace.tiles["lane"], trace.tiles["kernel"]
    return {name: int(np.max(lanes[kernel == number], initial=0)) + 1 for number, name in enumerate(trace.kernels)}
