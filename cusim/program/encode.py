"""Programs as plain JSON values (schema ``cusim.program/1``): expressions as text, times in whole nanoseconds."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from cusim.program.buffer import Access, Buffer
from cusim.program.kernel import Cost, Gemm, Kernel, Measured

SCHEMA = "cusim.program/1"


def parts_to_json(name: str, seed: int, buffers: tuple[Buffer, ...], kernels: tuple[Kernel, ...]) -> dict[str, Any]:
    """The parts of a program as one JSON object; every field of every part is written, also where it is a default."""
    return {
        "schema": SCHEMA,
        "name": name,
        "seed": seed,
        "buffers": [asdict(buffer) for buffer in buffers],
        "kernels": [_kernel(kernel) for kernel in kernels],
    }


def _kernel(kernel: Kernel) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "grid": list(kernel.grid),
        "tile": list(kernel.tile),
        "block": asdict(kernel.block),
        "cost": _cost(kernel.cost),
        "reads": [_access(access) for access in kernel.reads],
        "writes": [_access(access) for access in kernel.writes],
        "steps": kernel.steps,
        "reduce": kernel.reduce,
        "stages": kernel.stages,
        "persistent": kernel.persistent,
    }


def _access(access: Access) -> dict[str, Any]:
    return {
        "buffer": access.buffer,
        "rows": [str(bound) for bound in access.rows],
        "cols": [str(bound) for bound in access.cols],
        "mode": access.mode,
        "at_k": access.at_k,
    }


def _cost(cost: Cost) -> dict[str, Any]:
    """The cost with its kind; a measured time is floored to whole nanoseconds."""
    if isinstance(cost, Measured):
        work = None if cost.work is None else _cost(cost.work)
        return {
            "kind": "measured",
            "time_ns": cost.time_ps // 1000,
            "measured_on": cost.measured_on,
            "work": work,
        }
    return {"kind": "gemm" if isinstance(cost, Gemm) else "stream", **asdict(cost)}
