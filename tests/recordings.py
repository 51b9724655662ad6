"""Small recordings for tests: rows of single kernels and chains, and files of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import cusim
from cusim.recording.rows import Row, write_recording
from cusim.validate.recorded import predict_rows

META = {"gpu": "NVIDIA H200", "date": "2026-12-01"}
SINGLE = Row(
    "single", "calibrate", "gemm-256x512x256", 256, "128x128x64", "1", "stream", "row", "default", "wait-first", 0,
    9000, 8900, 9100, (8900, 9000, 9100), 1,
)  # fmt: skip
CHAIN = replace(SINGLE, group="chain", label="dev", workload="gpt3-mlp", tile="128x256x64")


def timed(row: Row, *samples_ns: int, **changed: Any) -> Row:
    """The row with these samples, their median as its total, and other fields changed."""
    ordered = sorted(samples_ns)
    middle = ordered[len(ordered) // 2]
    times = {"total_ns": middle, "low_ns": ordered[0], "high_ns": ordered[-1], "samples_ns": tuple(samples_ns)}
    return replace(row, **times, **changed)


def written(path: Path, rows: Sequence[Row], **meta: Any) -> str:
    """Writes a recording and returns its path."""
    write_recording(path, rows, {**META, **meta})
    return str(path)


def chain_rows(factor: float = 1.0, ms: Sequence[int] = (128, 256), label: str = "dev") -> list[Row]:
    """Chains in two orders and three policies, measured to be *factor* times what the h200 preset predicts."""
    rows = [
        replace(CHAIN, m=m, policy=policy, order=order, label=label)
        for m in ms
        for policy in ("stream", "row", "tile")
        for order in ("row", "group:2")
    ]
    predicted = predict_rows(rows, cusim.load_machine("h200"), workers=1)
    times = [round((ps or 0) * factor / 1000) for ps in predicted]
    return [timed(row, ns - 20, ns, ns + 20) for row, ns in zip(rows, times, strict=True)]
