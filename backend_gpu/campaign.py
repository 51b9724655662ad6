"""Measures the cells of a designed experiment: ``python -m backend_gpu.campaign DESIGN.toml --out DIR --seconds 500``.

Kernels are compiled first, on all cores; then cells are measured in the design's order until the time is spent. What
was measured is written even when the time ran out; a cell that cannot be measured says why.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from cusim.errors import CusimError
from cusim.recording.cells import Cell, cells_of, program_of
from cusim.recording.rows import Row, write_recording

#: How a row begins that says why the GPU or CuPy failed, rather than that a cell cannot be had.
BROKEN = "failed: "


def compile_cell(cell: Cell, machine: str, arch: str) -> str:
    """Compiles a cell's kernels into the cache on disk; why not, or the empty text."""
    from backend_gpu.bind import bind
    from backend_gpu.build import build

    try:
        program, plan = program_of(cell, machine)
        for kernel in program.kernels:
            build(bind(program, plan, kernel.name, arch=arch))
    except CusimError as error:
        return str(error)
    return ""


def measure(cell: Cell, design: Mapping[str, Any], device: Any, *, check: bool) -> Row:
    """Measures one cell; its failure is a row that says why."""
    from backend_gpu.runner import Deadlock, run

    try:
        if cell.cublas:
            samples, empty = _cublas(cell, design, device), None
        else:
            program, plan = program_of(cell, design["machine"])
            result = run(program, plan, device, repeats=design["repeats"], stamped=False, check=check)
            if isinstance(result, Deadlock):
                return _row(cell, (), None, f"deadlock: {result.text}")
            samples, empty = [sample // 1000 for sample in result.total.samples], result.empty.median // 1000
    except CusimError as error:
        return _row(cell, (), None, " ".join(str(error).split()))
    except Exception as error:  # CuPy's and the driver's own: the rest of the campaign must not be lost
        return _row(cell, (), None, f"{BROKEN}{type(error).__name__}: {' '.join(str(error).split())[:200]}")
    return _row(cell, tuple(samples), empty, "")


def _cublas(cell: Cell, design: Mapping[str, Any], device: Any) -> list[int]:
    from backend_gpu.cublas import two_products

    program, _ = program_of(replace(cell, cublas=""), design["machine"])
    return two_products(program, device, repeats=design["repeats"], graph=cell.cublas == "graph")


def _row(cell: Cell, samples: tuple[int, ...], empty: int | None, refused: str) -> Row:
    low = high = total = None
    if samples:
        total = round(statistics.median(samples))
        low, high = (round(cut) for cut in _quartiles(samples))
    return Row(
        cell.group, cell.label, cell.workload, cell.m, cell.tile, cell.split_k,
        f"cublas-{cell.cublas}" if cell.cublas else cell.policy, cell.order,
        "default" if cell.flags is None else cell.flags, cell.launch, cell.occasion,
        total, low, high, samples, empty, refused,
    )  # fmt: skip


def _quartiles(samples: Sequence[int]) -> tuple[float, float]:
    cuts = statistics.quantiles(samples, n=4) if len(samples) > 1 else [samples[0]] * 3
    return cuts[0], cuts[2]


def main() -> None:
    """Compiles, measures, writes ``recording.csv`` into the folder given."""
    options = _options()
    end = time.monotonic() + options.seconds
    design = tomllib.loads(options.design.read_text(encoding="utf-8"))
    cells = cells_of(design)
    if options.groups:
        cells = [cell for cell in cells if cell.group in options.groups.split(",") and not cell.occasion]
    cells = [replace(cell, occasion=cell.occasion + options.occasion) for cell in cells]
    own = [cell for cell in cells if not cell.cublas and cell.occasion == options.occasion]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile_cell, own, itertools.repeat(design["machine"]), itertools.repeat("sm_90a"), chunksize=4))
    _say(f"compiled {len(own)} cells", end)
    from backend_gpu.cuda_device import CudaDevice

    device = CudaDevice()
    if not options.groups:
        _timelines(design, device, options.out)
    rows = _measured(cells, design, device, end)
    facts = device.facts
    meta = {
        "design": options.design.name, "cells_designed": len(cells), "gpu": facts.name, "sms": facts.sms,
        "timer_step_ns": facts.timer_step_ns, "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "kind": "measured", "repeats": design["repeats"], **facts.more,
    }  # fmt: skip
    write_recording(options.out / "recording.csv", rows, meta)
    _say(f"measured {sum(1 for row in rows if row.samples_ns)} of {len(cells)} cells", end)


def _measured(cells: Sequence[Cell], design: Mapping[str, Any], device: Any, end: float) -> list[Row]:
    """Cells in order until the time is spent or the GPU has failed; the first of each kind has its numbers checked."""
    rows: list[Row] = []
    checked: set[tuple[str, ...]] = set()
    for cell in cells:
        if time.monotonic() > end:
            break
        kind = (cell.workload if cell.gemm is None else "gemm", cell.tile, cell.split_k, cell.policy, cell.launch)
        check = not cell.cublas and kind not in checked
        checked.add(kind)
        rows.append(measure(cell, design, device, check=check))
        if len(rows) % 100 == 0:
            _say(f"{len(rows)} of {len(cells)} cells", end)
        if rows[-1].refused.startswith(BROKEN) and not device.works():
            _say("the GPU no longer answers: what was measured until then is kept", end)
            break
    return rows


def _timelines(design: Mapping[str, Any], device: Any, out: Path) -> None:
    """Traces of the runs that the design wants block by block, as ``<workload>-<m>-<policy>.npz``."""
    from backend_gpu.runner import Deadlock, run
    from cusim.trace.formats import write_trace

    for wanted in design.get("timeline", ()):
        for m, policy in itertools.product(wanted["m"], wanted["policy"]):
            cell = Cell("timeline", "dev", wanted["workload"], m, "", "1", "wait-first", policy, wanted["order"], None)
            program, plan = program_of(cell, design["machine"])
            result = run(program, plan, device, repeats=design["repeats"], check=True, label="dev")
            if not isinstance(result, Deadlock) and result.trace is not None:
                write_trace(result.trace, out / f"{cell.workload}-{m}-{policy}.npz")


def _say(text: str, end: float) -> None:
    sys.stderr.write(f"{text}, {end - time.monotonic():.0f} s left\n")
    sys.stderr.flush()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("design", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=500.0)
    parser.add_argument("--groups", default="", help="only these groups, joined by commas, and no timelines")
    parser.add_argument("--occasion", type=int, default=0, help="number of this occasion, added to each cell's own")
    return parser.parse_args()


if __name__ == "__main__":
    main()
