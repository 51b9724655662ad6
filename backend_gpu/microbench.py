"""Micro-benchmarks of a GPU: what a launch, a gap, a semaphore, a dispatched block and a byte cost here.

``python -m backend_gpu.microbench --out DIR`` writes ``micro.json``. A part that fails is dropped and says why.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from backend_gpu.micro_blocks import blocks
from backend_gpu.micro_clock import clock, steps
from backend_gpu.micro_device import Bench
from backend_gpu.micro_launch import dispatch, gaps, launch_order, launches, releases
from backend_gpu.micro_memory import bandwidth, occupancies, semaphores, timer
from backend_gpu.micro_record import Findings, write_findings

#: In this order.
PARTS: tuple[Callable[[Bench], None], ...] = (
    timer, clock, steps, launches, gaps, releases, semaphores, blocks, dispatch, occupancies, bandwidth, launch_order,
)  # fmt: skip


def measure(seconds: float) -> tuple[Findings, dict[str, Any]]:
    """Every part in turn until the time is over, and where it was measured."""
    bench = Bench()
    end = time.monotonic() + seconds
    before, took = _smi(), {}
    for part in PARTS:
        began = time.monotonic()
        name = part.__name__
        if began > end:
            bench.found.dropped[name] = "no time left"
            continue
        try:
            part(bench)
        except Exception as error:  # CuPy's and the driver's own: the other parts must not be lost
            bench.found.dropped[name] = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            if not bench.device.works():
                break
        took[name] = round(time.monotonic() - began, 2)
        sys.stderr.write(f"{name}: {took[name]} s {bench.found.dropped.get(name, '')}\n")
    facts = bench.device.facts
    return bench.found, {
        "gpu": facts.name, "sms": facts.sms, "timer_step_ns": facts.timer_step_ns,
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **facts.more, "clocks_before": before,
        "clocks_after": _smi(), "part_seconds": took,
    }  # fmt: skip


def main() -> None:
    """Measures and writes ``micro.json`` into the folder given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=130.0, help="no part begins after so long")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    findings, provenance = measure(options.seconds)
    write_findings(options.out / "micro.json", findings, provenance)
    for name, quantity in findings.quantities.items():
        sys.stderr.write(f"{name}: {np.median(quantity.samples):.6g} {quantity.unit}\n")
    for name, why in findings.dropped.items():
        sys.stderr.write(f"dropped {name}: {why}\n")


def _smi() -> dict[str, str]:
    """Driver and clocks by nvidia-smi; empty without it."""
    names = ("driver_version", "clocks.sm", "clocks.mem", "clocks.max.sm", "temperature.gpu", "power.draw")
    command = ("nvidia-smi", f"--query-gpu={','.join(names)}", "--format=csv,noheader", "--id=0")
    try:
        text = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(zip(names, (part.strip() for part in text.split(",")), strict=False))


if __name__ == "__main__":
    main()
