"""A machine judged on recordings: the tables, what they rest on, and what stands beside them unjudged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cusim.machine.machine import Machine
from cusim.recording.cells import cell_of
from cusim.validate.judged import BASELINE, judged_cells, scored_of, streamed
from cusim.validate.occasions import Pool, Pooled, pool
from cusim.validate.recorded import Watch, bare, outcome_of, spread
from cusim.validate.recorded_tables import RecordedTable, recorded_tables
from cusim.validate.recordings import Recording, Taken, seen_tiles, split
from cusim.validate.scores import Errors, errors


@dataclass(frozen=True)
class RecordedValidation:
    """Everything of one run.

    *pool* holds the judged cells and their noise; *fitted*, by file, the errors of calibrate rows that fixed the
    machine's numbers: shown, not judged. *refused* counts rows without a time by what the recording says of them,
    *unpredicted* measured cells that the model has no prediction for, by its reason. *by_cublas* are cells that cuBLAS
    ran. *seen* are the tiles that count as seen, *seen_from* says why.
    """

    machine: Machine
    recordings: tuple[Recording, ...]
    pool: Pool
    tables: tuple[RecordedTable, ...]
    fitted: Mapping[str, Errors]
    refused: Mapping[str, int]
    unpredicted: Mapping[str, int]
    by_cublas: tuple[Pooled, ...]
    seen: frozenset[str]
    seen_from: str


def validate_recordings(
    recordings: Sequence[Recording], machine: Machine, workers: int | None = None, watch: Watch = lambda _: None
) -> RecordedValidation:
    """Predicts every measured cell and scores it; InputError where the machine was fitted on dev or sealed rows."""
    judged, fitted = split(recordings, machine)
    seen, seen_from = seen_tiles(recordings, machine)
    found = pool(judged)
    by_cublas = tuple(pooled for pooled in found.cells if pooled.cell.cublas)
    rows = judged_cells([pooled for pooled in found.cells if not pooled.cell.cublas], machine, workers, watch)
    return RecordedValidation(
        machine=machine,
        recordings=tuple(recordings),
        pool=found,
        tables=tuple(recorded_tables(rows, machine, seen)),
        fitted=_in_sample(fitted, machine, workers, watch),
        refused=_reasons([row.row.refused or "no samples" for row in (*judged, *fitted) if not row.row.samples_ns]),
        unpredicted=_reasons([row.outcome.reason for row in rows if row.outcome.total_ps is None]),
        by_cublas=by_cublas,
        seen=seen,
        seen_from=seen_from,
    )


def predictions_of(recordings: Sequence[Recording]) -> int:
    """How often *watch* is called at most: once a distinct measured cell, and once for the kernels of each alone."""
    rows = [row for recording in recordings for row in recording.rows if row.samples_ns]
    cells = {cell for row in rows if not (cell := bare(cell_of(row))).cublas}
    return len(cells) + len({streamed(cell) for cell in cells})


def _in_sample(fitted: Sequence[Taken], machine: Machine, workers: int | None, watch: Watch) -> dict[str, Errors]:
    found = {}
    for name in dict.fromkeys(str(item.recording.path) for item in fitted):
        cells = pool([item for item in fitted if str(item.recording.path) == name]).cells
        outcomes = spread(outcome_of, [pooled.cell for pooled in cells], machine, workers, watch)
        rows = [scored_of(pooled, outcome.total_ps) for pooled, outcome in zip(cells, outcomes, strict=True)]
        found[name] = errors(rows, BASELINE)
    return found


def _reasons(reasons: Sequence[str]) -> dict[str, int]:
    """The reasons with how many there are of each, the most frequent first."""
    return dict(Counter(reasons).most_common())
