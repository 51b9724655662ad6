"""What a calibrated machine was fitted on, so that nobody judges it by the same rows."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from cusim.errors import Problems, did_you_mean

#: Sets of rows that may fix numbers, and what a file of micro-benchmarks counts as.
LABELS = ("calibrate", "dev", "sealed", "micro-benchmarks")
_DIGEST = re.compile(r"[0-9a-f]{12}")
_KEYS = ("date", "recordings")
_USED_NEEDED = ("file", "digest", "labels", "rows")
_USED = (*_USED_NEEDED, "tiles", "taken")


@dataclass(frozen=True, slots=True)
class Used:
    """The rows of one recording that fixed a number: those of *labels* in *file*, *rows* of them.

    *digest* (:func:`file_digest`) finds the file again under any name. *tiles* are the tiles of these rows, as
    ``128x256x64``, and *taken* is when and on which GPU the recording was taken, which finds an edited copy of it; both
    are empty where that was not kept.
    """

    file: str
    digest: str
    labels: tuple[str, ...]
    rows: int
    tiles: tuple[str, ...] = ()
    taken: str = ""


@dataclass(frozen=True, slots=True)
class Calibration:
    """When a machine was fitted (ISO 8601) and on which recordings."""

    date: str
    recordings: tuple[Used, ...]

    def lists(self, digest: str, label: str) -> bool:
        """True when rows of *label* in the file of that digest fixed a number of the machine."""
        return any(used.digest == digest and label in used.labels for used in self.recordings)

    def copied(self, digest: str, taken: str) -> Used | None:
        """What a file of another digest is an edited copy of: what fixed a number, taken then and on that GPU."""
        same = [used for used in self.recordings if taken and used.taken == taken]
        return same[0] if same and all(used.digest != digest for used in same) else None

    def and_before(self, earlier: Calibration | None) -> Calibration:
        """This calibration of a machine that began from one of *earlier*: what was kept rests on that."""
        known = {used.digest for used in self.recordings}
        kept = () if earlier is None else tuple(used for used in earlier.recordings if used.digest not in known)
        return Calibration(self.date, (*self.recordings, *kept))

    def to_json(self) -> dict[str, Any]:
        """The calibration as :func:`calibration_from` reads it back."""
        return {"date": self.date, "recordings": [_plain(used) for used in self.recordings]}


def file_digest(data: bytes) -> str:
    """The first twelve hex digits of a file's SHA-256."""
    return hashlib.sha256(data).hexdigest()[:12]


def calibration_from(given: object, problems: Problems, key: str = "calibration") -> Calibration | None:
    """The calibration that a document holds under *key*, None where it has none; mistakes go to *problems*."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        problems.add(key, given, "must be a table with date and recordings")
        return None
    before = len(problems.found)
    _known(given, _KEYS, key, problems)
    date, recordings = given.get("date"), given.get("recordings")
    if not _is_date(date):
        problems.add(f"{key}.date", date, "must be a date such as 2026-12-01, or a date and time, as a text")
    if not isinstance(recordings, list | tuple) or not recordings:
        problems.add(f"{key}.recordings", recordings, "must be a list of what was used, not empty")
        return None
    used = [_used(item, f"{key}.recordings[{place}]", problems) for place, item in enumerate(recordings)]
    kept = tuple(item for item in used if item is not None)
    return Calibration(str(date), kept) if len(problems.found) == before else None


def _used(given: object, key: str, problems: Problems) -> Used | None:
    if not isinstance(given, Mapping):
        problems.add(key, given, 'must be { file = "..", digest = "..", labels = [".."], rows = .. }')
        return None
    before = len(problems.found)
    _known(given, _USED, key, problems)
    for name in _USED_NEEDED:
        if name not in given:
            problems.add(f"{key}.{name}", None, "missing")
    file, digest, rows = given.get("file", "?"), given.get("digest", "0" * 12), given.get("rows", 1)
    if not (isinstance(file, str) and file.strip()):
        problems.add(f"{key}.file", file, "must be the name of a recording")
    if not (isinstance(digest, str) and _DIGEST.fullmatch(digest)):
        problems.add(f"{key}.digest", digest, "must be the first 12 hex digits of the file's SHA-256")
    if type(rows) is not int or rows < 1:
        problems.add(f"{key}.rows", rows, "must be a whole number, 1 or more")
    labels = _texts(given.get("labels", ["calibrate"]), f"{key}.labels", problems, empty=False)
    for label in labels:
        if label not in LABELS:
            problems.add(f"{key}.labels", label, did_you_mean(label, LABELS))
    tiles = _texts(given.get("tiles", []), f"{key}.tiles", problems, empty=True)
    taken = given.get("taken", "")
    if not isinstance(taken, str):
        problems.add(f"{key}.taken", taken, "must be a text: when and on which GPU")
    return Used(str(file), str(digest), labels, rows, tiles, str(taken)) if len(problems.found) == before else None


def _texts(given: object, key: str, problems: Problems, *, empty: bool) -> tuple[str, ...]:
    if isinstance(given, list | tuple) and (given or empty) and all(isinstance(item, str) for item in given):
        return tuple(given)
    problems.add(key, given, "must be a list of texts" + ("" if empty else ", not empty"))
    return ()


def _known(given: Mapping[str, Any], allowed: tuple[str, ...], key: str, problems: Problems) -> None:
    for name in given:
        if name not in allowed:
            problems.add(f"{key}.{name}", given[name], f"unknown key: {did_you_mean(str(name), allowed)}")


def _is_date(given: object) -> bool:
    try:
        return isinstance(given, str) and datetime.fromisoformat(given) is not None
    except ValueError:
        return False


def _plain(used: Used) -> dict[str, Any]:
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(used).items()}
    return {name: value for name, value in plain.items() if value or name not in ("tiles", "taken")}
