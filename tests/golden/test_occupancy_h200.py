"""The occupancy model against the driver's own answer on an H200, recorded with the micro-benchmarks."""

from __future__ import annotations

import json
from pathlib import Path

from cusim.machine import load_machine, occupancy

RECORDED = Path(__file__).resolve().parents[2] / "traces" / "h200" / "micro.json"


def test_every_recorded_block_shape_has_the_drivers_occupancy() -> None:
    table = json.loads(RECORDED.read_text(encoding="utf-8"))["tables"]["occupancy"]
    machine = load_machine("h200")
    assert table["columns"][:4] == ["threads", "registers", "shared_bytes", "driver_blocks"]
    differ = [row for row in table["rows"] if occupancy(machine, *row[:3]).blocks_per_sm != row[3]]
    assert len(table["rows"]) >= 2000
    assert differ == []
