"""The machine room: what a GPU and its host are, presets, what-if settings, occupancy."""

from cusim.machine.calibration import Calibration, Used, file_digest
from cusim.machine.load import load_machine, machine_from_toml, machine_names
from cusim.machine.machine import SCHEMA, Machine, leaf_paths, leaves
from cusim.machine.occupancy import Occupancy, occupancy, resource_share, why_no_block
from cusim.machine.override import with_overrides
from cusim.machine.parse import machine_from_json
from cusim.machine.quantity import Quantity
from cusim.machine.sections import SECTIONS, Block, Dispatch, Launch, Limits, Rates, Sync

__all__ = [
    "SCHEMA",
    "SECTIONS",
    "Block",
    "Calibration",
    "Dispatch",
    "Launch",
    "Limits",
    "Machine",
    "Occupancy",
    "Quantity",
    "Rates",
    "Sync",
    "Used",
    "file_digest",
    "leaf_paths",
    "leaves",
    "load_machine",
    "machine_from_json",
    "machine_from_toml",
    "machine_names",
    "occupancy",
    "resource_share",
    "why_no_block",
    "with_overrides",
]
