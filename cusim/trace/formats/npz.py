"""Traces as numpy archives: ``schema``, a JSON ``header``, one int64 vector a column (``tiles.end_ns`` ...)."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from cusim.errors import InputError, Problems, did_you_mean, refuse
from cusim.files import MOST_DATA_BYTES, open_file
from cusim.trace.columns import TABLES, column_key
from cusim.trace.formats.table import SCHEMA, header_of, header_text, to_ns, trace_of
from cusim.trace.formats.whole import write_whole
from cusim.trace.trace import Trace

_KEYS = {f"{label}.{column_key(name, '_ns')}": (label, name) for label, columns in TABLES.items() for name in columns}
#: What numpy and zipfile raise for an archive that is damaged or holds something else.
_DAMAGE = (
    OSError,
    ValueError,
    EOFError,
    KeyError,
    NotImplementedError,
    RuntimeError,
    MemoryError,
    zlib.error,
    zipfile.BadZipFile,
)


def write_npz(trace: Trace, path: Path) -> None:
    """Writes *trace* as a compressed numpy archive; the same trace gives the same bytes."""
    arrays: dict[str, NDArray[np.generic]] = {
        "schema": np.array(SCHEMA),
        "header": np.array(header_text(trace, path)),
    }
    for key, (label, name) in _KEYS.items():
        arrays[key] = to_ns(name, trace.tables[label][name])

    def write(file: BinaryIO) -> None:
        np.savez_compressed(file, allow_pickle=False, **arrays)

    write_whole(path, write)


def read_npz(path: Path) -> Trace:
    """The trace in a numpy archive; raises InputError for a file that is not such an archive."""
    arrays = _arrays(path)
    header = header_of(_text(arrays, "header", path), path)
    problems = Problems(str(path))
    for key in _KEYS:
        if key not in arrays:
            problems.add(key, None, "is missing")
        elif arrays[key].dtype != np.int64 or arrays[key].ndim != 1:
            problems.add(key, _described(arrays[key]), "must be a vector of int64")
    for key in sorted(set(arrays) - set(_KEYS) - {"schema", "header"}):
        problems.add(key, None, f"is not known: {did_you_mean(key, _KEYS)}")
    problems.raise_if_any()
    tables: dict[str, dict[str, NDArray[np.int64]]] = {label: {} for label in TABLES}
    for key, (label, name) in _KEYS.items():
        tables[label][name] = np.ascontiguousarray(arrays[key], dtype=np.int64)
    return trace_of(path, header, tables)


def _arrays(path: Path) -> dict[str, NDArray[np.generic]]:
    try:
        with open_file(path, MOST_DATA_BYTES) as file:
            if not zipfile.is_zipfile(file):
                raise refuse(str(path), "file", None, "is no numpy archive: cut off, or not written by cusim")
            unpacked = sum(entry.file_size for entry in zipfile.ZipFile(file).infolist())
            if unpacked > MOST_DATA_BYTES:
                raise refuse(
                    str(path), "file", None, f"holds {unpacked} bytes once unpacked, at most {MOST_DATA_BYTES}"
                )
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                arrays = {key: np.asarray(archive[key]) for key in archive.files}
    except FileNotFoundError:
        raise refuse(str(path), "file", None, "does not exist") from None
    except InputError:
        raise
    except _DAMAGE as error:
        if isinstance(error, OSError) and error.strerror:
            raise refuse(str(path), "file", None, f"cannot be read: {error.strerror}") from None
        why = "holds pickled objects, which are never loaded" if "allow_pickle" in str(error) else "is damaged"
        raise refuse(str(path), "file", None, f"{why}: must be a numpy archive of {SCHEMA}") from None
    schema = _text(arrays, "schema", path)
    if schema != SCHEMA:
        raise refuse(str(path), "schema", schema, f'must be "{SCHEMA}"')
    return arrays


def _text(arrays: dict[str, NDArray[np.generic]], key: str, path: Path) -> str:
    if key not in arrays:
        raise refuse(str(path), key, None, f"is missing: not a file of {SCHEMA}")
    if arrays[key].ndim != 0 or arrays[key].dtype.kind != "U":
        raise refuse(str(path), key, _described(arrays[key]), "must be a single text")
    return str(arrays[key])


def _described(array: NDArray[np.generic]) -> str:
    shape = "x".join(map(str, array.shape)) or "scalar"
    nan = ", with NaN" if array.dtype.kind == "f" and np.isnan(np.asarray(array, dtype=np.float64)).any() else ""
    return f"{array.dtype} {shape}{nan}"
