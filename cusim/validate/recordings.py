"""Recordings that a machine is to be judged on: whole, of the machine's own GPU, and not what fixed its numbers."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cusim.errors import InputError, Problems
from cusim.files import read_file
from cusim.machine.calibration import file_digest
from cusim.machine.machine import Machine
from cusim.recording.cells import Cell, cell_of
from cusim.recording.rows import SCHEMA, SETS, Row, read_recording
from cusim.validate.recorded import bare

CALIBRATE = "calibrate"
_WORDS = re.compile(r"[\s-]+")


@dataclass(frozen=True)
class Recording:
    """One file of measured rows; *digest* is its SHA-256's first twelve hex digits, *meta* what its first line says."""

    path: Path
    digest: str
    rows: tuple[Row, ...]
    meta: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The file's name without its folder."""
        return self.path.name

    @property
    def taken(self) -> str:
        """When and on which GPU it was measured; empty where its first line does not say both."""
        date, uuid = self.meta.get("date"), self.meta.get("uuid")
        return f"{date} {uuid}" if date and uuid else ""


@dataclass(frozen=True, slots=True)
class Taken:
    """A row and the recording that it stands in."""

    recording: Recording
    row: Row

    @property
    def occasion(self) -> str:
        """When it was measured: the file, and the occasion in it."""
        return f"{self.recording.path}#{self.row.occasion}"


def is_recording(place: str) -> bool:
    """True for a folder, and for a file that begins as recordings do."""
    path = Path(place)
    if path.is_dir():
        return True
    try:
        with path.open("rb") as file:
            return file.read(len(SCHEMA)).startswith(b"# cusim.recording")
    except (OSError, ValueError):
        return False


def load_recordings(places: Sequence[str], machine: Machine) -> tuple[Recording, ...]:
    """The recordings in these files and folders (every .csv), in order.

    Raises InputError with everything that is wrong in any of them: a file that cannot be read or is of another schema,
    a time that is none, the same file or cell twice, another GPU than *machine*'s, nothing recorded.
    """
    problems = Problems("the recordings")
    found: list[Recording] = []
    for path in _files(places, problems):
        recording = _read(path, problems)
        if recording is None:
            continue
        same = next((other for other in found if other.digest == recording.digest), None)
        if same is not None:
            problems.add(str(path), None, f"holds the same bytes as {same.path}; give it once")
            continue
        _check(recording, machine, problems)
        found.append(recording)
    problems.raise_if_any()
    return tuple(found)


def split(recordings: Sequence[Recording], machine: Machine) -> tuple[list[Taken], list[Taken]]:
    """Rows to be judged, and ``calibrate`` rows that fixed the machine's numbers and are only shown.

    Raises InputError naming each recording whose dev or sealed rows the machine's provenance lists: a machine is not
    judged on what it was fitted on.
    """
    problems = Problems(f"machine {machine.name}")
    judged: list[Taken] = []
    fitted: list[Taken] = []
    for recording in recordings:
        listed = [label for label in SETS if _lists(machine, recording, label)]
        copy = machine.calibration and machine.calibration.copied(recording.digest, recording.taken)
        if copy:
            why = f"an edited copy of {copy.file} ({copy.digest}), on which the machine was calibrated: give that file"
            problems.add(str(recording.path), None, why)
        for label in listed:
            if label != CALIBRATE:
                why = f"the machine's calibration lists it, by digest {recording.digest}: it cannot be judged on it"
                problems.add(f"{recording.path}: {label} rows", None, why)
        for row in recording.rows:
            (fitted if row.label in listed else judged).append(Taken(recording, row))
    problems.raise_if_any()
    return judged, fitted


def seen_tiles(recordings: Sequence[Recording], machine: Machine) -> tuple[frozenset[str], str]:
    """Tiles that calibration saw, and in words how that is known: from the machine's provenance, else from the
    ``calibrate`` rows given.
    """
    if machine.calibration is not None:
        kept = {tile for used in machine.calibration.recordings for tile in used.tiles}
        listed = {row.tile for r in recordings for row in r.rows if _lists(machine, r, row.label)}
        if kept | listed:
            return frozenset(kept | listed), "that the machine was calibrated on"
    return frozenset(row.tile for r in recordings for row in r.rows if row.label == CALIBRATE), "of the calibrate rows"


def _lists(machine: Machine, recording: Recording, label: str) -> bool:
    return machine.calibration is not None and machine.calibration.lists(recording.digest, label)


def _files(places: Sequence[str], problems: Problems) -> Iterator[Path]:
    for place in places:
        path = Path(place)
        if not path.is_dir():
            yield path
            continue
        found = sorted(path.glob("*.csv"))
        if not found:
            problems.add(place, None, "this folder has no .csv file")
        yield from found


def _read(path: Path, problems: Problems) -> Recording | None:
    try:
        data = read_file(path)
        rows, meta = read_recording(path)
    except InputError as error:
        problems.extend(error, f"{path}: ")
    except OSError as error:
        problems.add(str(path), None, f"cannot be read: {error.strerror or error}")
    else:
        return Recording(path, file_digest(data), tuple(rows), meta)
    return None


def _check(recording: Recording, machine: Machine, problems: Problems) -> None:
    path, gpu = recording.path, recording.meta.get("gpu")
    if not isinstance(gpu, str) or not gpu:
        problems.add(f"{path}: gpu", gpu, "the first line must say which GPU was measured")
    elif not same_gpu(gpu, machine.gpu):
        problems.add(f"{path}: gpu", gpu, f"machine {machine.name} is {machine.gpu}: judge it on recordings of its own")
    if (sms := recording.meta.get("sms", machine.limits.sms)) != machine.limits.sms and not machine.overrides:
        problems.add(f"{path}: sms", sms, f"machine {machine.name} has {machine.limits.sms}")
    if (kind := recording.meta.get("kind", "measured")) != "measured":
        problems.add(f"{path}: kind", kind, "must be measured: models are held against what a GPU took")
    if not any(row.samples_ns for row in recording.rows):
        problems.add(str(path), None, "no row of it was measured")
    places: dict[tuple[Cell, str, int], int] = {}
    for place, row in enumerate(recording.rows):
        key = f"{path}: row[{place}]"
        _check_times(row, key, problems)
        try:
            cell = bare(cell_of(row))
        except ValueError as error:
            problems.add(key, None, str(error))
            continue
        first = places.setdefault((cell, row.label, row.occasion), place)
        if first != place and row.samples_ns:
            problems.add(key, None, f"the same cell, set and occasion as row[{first}]")


def _check_times(row: Row, key: str, problems: Problems) -> None:
    if bool(row.samples_ns) != (row.total_ns is not None):
        why = "must be given where there are samples, and only there"
        problems.add(f"{key}.total_ns", row.total_ns, why)
    elif row.samples_ns and row.total_ns != round(statistics.median(row.samples_ns)):
        why = f"must be the median of its samples, {round(statistics.median(row.samples_ns))}"
        problems.add(f"{key}.total_ns", row.total_ns, why)
    for name, times in (("total_ns", (row.total_ns,)), ("samples_ns", row.samples_ns)):
        if 0 in times:
            problems.add(f"{key}.{name}", 0, "must be above 0")


def same_gpu(recorded: str, gpu: str) -> bool:
    """True when a driver's name of a GPU (``NVIDIA H200``) is of the machine's (``H200``), word by word."""
    words = {word.lower() for word in _WORDS.split(recorded)}
    return {word.lower() for word in _WORDS.split(gpu)} <= words
