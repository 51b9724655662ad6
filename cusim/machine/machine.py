"""The machine: what a GPU and its host are, every number with its source (design §5)."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from cusim.machine.calibration import Calibration
from cusim.machine.quantity import Quantity
from cusim.machine.sections import SECTIONS, Block, Dispatch, Launch, Limits, Rates, Sync

SCHEMA = "cusim.machine/2"
State = Literal["preset", "anchored", "calibrated"]
STATES: tuple[State, ...] = ("preset", "anchored", "calibrated")


@dataclass(frozen=True, slots=True)
class Machine:
    """A GPU with its host, ready for the engine.

    *band_pct* is the error band, in percent of a predicted time, that recommendations obey. *provenance*
    maps "section.leaf" (and "band_pct") to the Quantity behind each number; *overrides* lists the what-if
    settings in force, *base* is the machine without them (None where there are none). *calibration* lists the
    recordings that fixed its numbers, None for a preset.
    """

    name: str
    gpu: str
    arch: str
    state: State
    band_pct: float
    limits: Limits
    rates: Rates
    block: Block
    sync: Sync
    launch: Launch
    dispatch: Dispatch
    provenance: Mapping[str, Quantity] = field(hash=False, repr=False)
    overrides: tuple[str, ...] = ()
    base: Machine | None = field(default=None, hash=False, repr=False, compare=False)
    calibration: Calibration | None = None

    @property
    def digest(self) -> str:
        """Twelve hex digits that change with any value; the name, sources, errors and calibration don't count."""
        values = {"gpu": self.gpu, "arch": self.arch, "band_pct": self.band_pct, **self.values()}
        text = json.dumps(values, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def values(self) -> dict[str, dict[str, Any]]:
        """The plain numbers of each section, in internal units."""
        return {name: dataclasses.asdict(getattr(self, name)) for name in SECTIONS}

    def to_json(self) -> dict[str, Any]:
        """The machine as JSON (cusim.machine/2): value, unit, source, stderr, status, record of each leaf."""
        document: dict[str, Any] = {"schema": SCHEMA, "name": self.name, "gpu": self.gpu, "arch": self.arch}
        document |= {"state": self.state, "digest": self.digest, "overrides": list(self.overrides)}
        if self.calibration is not None:
            document["calibration"] = self.calibration.to_json()
        document["band_pct"] = _leaf_json(self.provenance["band_pct"])
        for section in SECTIONS:
            document[section] = {leaf: _leaf_json(self.provenance[f"{section}.{leaf}"]) for leaf in leaves(section)}
        return document


def leaves(section: str) -> tuple[str, ...]:
    """The leaf names of *section*, in order."""
    return tuple(f.name for f in dataclasses.fields(SECTIONS[section]))


def leaf_paths() -> tuple[str, ...]:
    """Every leaf of a machine as "section.leaf", and "band_pct"."""
    return ("band_pct", *(f"{section}.{leaf}" for section in SECTIONS for leaf in leaves(section)))


def _leaf_json(quantity: Quantity) -> dict[str, Any]:
    leaf = dataclasses.asdict(quantity)
    if isinstance(quantity.value, tuple):
        leaf["value"] = list(quantity.value)
    return leaf
