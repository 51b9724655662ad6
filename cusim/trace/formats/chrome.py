"""Chrome-trace JSON for viewers such as Perfetto: written only, event by event, never whole in memory.

SMs in groups of 16 are processes and each slot of an SM is a thread, so that no two spans of a thread overlap: viewers
drop or misplace those that do. Blocks are spans, their waits are spans inside them, arrows lead from posts to the ends
of waits, kernels and counters have a process of their own.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from cusim.trace.formats.chrome_events import Scene, events_of
from cusim.trace.formats.chrome_view import chosen_rows, spans_ns, threads_of
from cusim.trace.formats.table import header_text
from cusim.trace.formats.whole import write_whole
from cusim.trace.posters import RULE, Semaphores, posters
from cusim.trace.trace import Trace

#: Name and version of what ``otherData`` holds.
SCHEMA = "cusim.chrome/1"
_LINES = 2048


@dataclass(slots=True)
class Exported:
    """What a file holds: *blocks* of *of* blocks of the trace, *waits* and *arrows*."""

    of: int
    blocks: int = 0
    waits: int = 0
    arrows: int = 0


def write_chrome(
    trace: Trace,
    path: Path | str,
    *,
    window_ns: tuple[int, int] | None = None,
    sample: int | float | None = None,
    semaphores: Semaphores | None = None,
) -> Exported:
    """Writes *trace* as Chrome-trace JSON to *path*, compressed if it ends in ``.gz``; the same trace, the same bytes.

    *window_ns* keeps the blocks that hold a slot at some instant of [start, stop); *sample* keeps that many of them (an
    int) or that part (a float up to 1), evenly spaced in time. Counters always count every block. *semaphores* says
    which tiles post to which semaphore, for arrows (:func:`cusim.trace.posters.posters`).

    Raises InputError for a window outside the trace, a sample of nothing, and a place that cannot be written or is
    full; then there is no file.
    """
    target = Path(path)
    spans = spans_ns(trace)
    rows = chosen_rows(trace, spans, window_ns, sample)
    scene = Scene(trace, rows, spans, threads_of(trace), posters(trace, semaphores), window_ns)
    done = Exported(of=trace.blocks)
    facts = _facts(scene, target, sample)

    def write(file: BinaryIO) -> None:
        if target.suffix.lower() != ".gz":
            _write_all(file, facts, _counted(events_of(scene), done))
            return
        # No file name and no time in the header: they would make every file different.
        with gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as packed:
            _write_all(packed, facts, _counted(events_of(scene), done))

    write_whole(target, write)
    return done


def _write_all(file: BinaryIO | gzip.GzipFile, facts: str, events: Iterable[str]) -> None:
    file.write(f'{{"displayTimeUnit":"ns","otherData":{facts},"traceEvents":[\n'.encode())
    lines: list[str] = []
    before = ""
    for event in events:
        lines.append(event)
        if len(lines) == _LINES:
            file.write((before + ",\n".join(lines)).encode())
            before = ",\n"
            lines.clear()
    if lines:
        file.write((before + ",\n".join(lines)).encode())
    file.write(b"\n]}\n")


def _counted(events: Iterator[str], done: Exported) -> Iterator[str]:
    for event in events:
        if event.startswith('{"ph":"X","cat":"tile"'):
            done.blocks += 1
        elif event.startswith('{"ph":"X","cat":"wait"'):
            done.waits += 1
        elif event.startswith('{"ph":"s"'):
            done.arrows += 1
        yield event


def _facts(scene: Scene, path: Path, sample: int | float | None) -> str:
    """Where the trace comes from and what was left out, as JSON: the trace's own meta, then what this file adds."""
    header = json.loads(header_text(scene.trace, path))
    meta = header.pop("meta")
    window = scene.window_ns
    blocks = np.bincount(scene.trace.tiles["kernel"], minlength=len(scene.trace.kernels))
    own = {
        "schema": SCHEMA,
        "trace_schema": header["schema"],
        "kernels": {name: int(count) for name, count in zip(scene.trace.kernels, blocks, strict=True)},
        "dependences": header["dependences"],
        "blocks": scene.trace.blocks,
        "blocks_exported": len(scene.rows),
        "window_us": None if window is None else [window[0] / 1000, window[1] / 1000],
        "sample": sample,
        "time_origin": "the run's start",
        "arrows": RULE,
    }
    return json.dumps({"kind": "unknown", **meta, **own}, ensure_ascii=True)
