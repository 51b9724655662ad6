"""Machines for tests whose words and limits must not move when a shipped machine learns something."""

from __future__ import annotations

from dataclasses import replace

from cusim.machine import Machine, load_machine

BAND_PCT = 15.0


def uncalibrated() -> Machine:
    """The shipped H200's numbers as a preset: a band of ±15 %, and no recording behind it."""
    machine = load_machine("h200")
    band = replace(machine.provenance["band_pct"], value=BAND_PCT, status="extrapolated", record=None)
    provenance = {**machine.provenance, "band_pct": band}
    return replace(machine, state="preset", band_pct=BAND_PCT, provenance=provenance, calibration=None)
