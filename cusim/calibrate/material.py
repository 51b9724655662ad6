"""What a machine is fitted on: the rows of recordings, by set, once nothing is wrong with any of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cusim.errors import Problems
from cusim.machine.calibration import Used
from cusim.machine.machine import Machine
from cusim.recording.cells import cell_of
from cusim.recording.rows import Row
from cusim.validate.recordings import CALIBRATE, Recording, load_recordings

DEV, SEALED = "dev", "sealed"


@dataclass(frozen=True, slots=True)
class Material:
    """Rows that fix parameters, and *dev* rows that only set the error band; sealed ones are left where they are.

    *used* says for each recording which rows fixed parameters, and *warnings* tells what was left out.
    """

    calibrate: tuple[Row, ...]
    dev: tuple[Row, ...]
    used: tuple[Used, ...]
    warnings: tuple[str, ...]

    @property
    def record(self) -> str:
        """The digests of the recordings that fixed parameters, joined."""
        return "+".join(each.digest for each in self.used)


def gather(places: Sequence[Path], machine: Machine) -> Material:
    """The rows of the recordings at *places* (files, or folders of them), made on the GPU that *machine* is.

    Raises InputError with everything that is wrong in any of them: a file that cannot be read, another schema or GPU, a
    time that is none, the same recording twice, no row labelled calibrate.
    """
    recordings = load_recordings([str(place) for place in places], machine)
    problems = Problems("the recordings")
    if not any(row.label == CALIBRATE and _timed(row) for recording in recordings for row in recording.rows):
        problems.add("label", None, f"no row is labelled {CALIBRATE}: there is nothing to fit a machine to")
    problems.raise_if_any()
    return _material(recordings)


def _material(recordings: Sequence[Recording]) -> Material:
    calibrate, dev, used, warnings = list[Row](), list[Row](), list[Used](), list[str]()
    for recording in recordings:
        counts = Counter(row.label for row in recording.rows)
        mine = [row for row in recording.rows if row.label == CALIBRATE and _timed(row)]
        calibrate += mine
        dev += [row for row in recording.rows if row.label == DEV and _timed(row) and not cell_of(row).cublas]
        if mine:
            tiles = tuple(sorted({row.tile for row in mine}))
            used.append(Used(recording.name, recording.digest, (CALIBRATE,), len(mine), tiles, recording.taken))
        if sealed := counts[SEALED]:
            warnings.append(f"{recording.path}: {sealed} sealed rows were ignored: they judge a model once, at the end")
        if untimed := counts[CALIBRATE] - len(mine):
            warnings.append(f"{recording.path}: {untimed} calibrate rows have no time and were left out")
    return Material(tuple(calibrate), tuple(dev), tuple(used), tuple(warnings))


def _timed(row: Row) -> bool:
    return row.total_ns is not None
