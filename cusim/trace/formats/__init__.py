"""Trace files: one entry point for reading and one for writing, the format chosen by the file's suffix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cusim.errors import did_you_mean, refuse
from cusim.trace.formats.csv import read_csv, write_csv
from cusim.trace.formats.npz import read_npz, write_npz
from cusim.trace.formats.table import SCHEMA, floored
from cusim.trace.formats.whole import write_whole
from cusim.trace.trace import Trace

__all__ = ["SCHEMA", "floored", "read_trace", "write_trace", "write_whole"]

_READERS: dict[str, Callable[[Path], Trace]] = {".npz": read_npz, ".csv": read_csv}
_WRITERS: dict[str, Callable[[Trace, Path], None]] = {".npz": write_npz, ".csv": write_csv}


def write_trace(trace: Trace, path: Path | str) -> None:
    """Writes *trace* to *path* (``.npz`` or ``.csv``), whole or not at all; times as integer ns, floored.

    Raises InputError for another suffix, a place that cannot be written, or meta that JSON cannot hold.
    """
    target = Path(path)
    _WRITERS[_suffix(target)](trace, target)


def read_trace(path: Path | str) -> Trace:
    """The trace that *path* (``.npz`` or ``.csv``) holds, its times in picoseconds.

    Raises InputError, with all that is wrong, for a file that is absent, cut off, foreign or inconsistent.
    """
    source = Path(path)
    return _READERS[_suffix(source)](source)


def _suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in _READERS:
        raise refuse(str(path), "suffix", path.suffix, did_you_mean(suffix, _READERS))
    return suffix
