"""The same cell on several occasions: one time, and how far it comes out again.

An occasion is one run of a campaign. Samples of one occasion lie close together, since clock, temperature and placement
hardly change within a second; the next occasion is another draw. Noise is made of both.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cusim.recording.cells import Cell, cell_of
from cusim.recording.rows import Row
from cusim.validate.recorded import bare
from cusim.validate.recordings import Taken

_PS_PER_NS = 1000


@dataclass(frozen=True, slots=True)
class Pooled:
    """A cell of one set: *occasions* holds the median of each, in ps; *row* is the first of its rows.

    *measured_ps* is the mean of the occasions. *noise_ps* is the standard deviation of one occasion's median: the
    samples' own spread over the root of their number, and the spread between occasions, added as variances.
    """

    cell: Cell
    label: str
    row: Row
    occasions: Mapping[str, int]
    measured_ps: int
    noise_ps: int


@dataclass(frozen=True, slots=True)
class Pool:
    """Every measured cell, and the noise that they share.

    *between_pct* is the standard deviation of one occasion's median about a cell's mean, in percent, pooled over the
    *repeated* cells that have more than one occasion; None where there is none, so that noise is within alone. It
    holds the drift of the whole machine from one occasion to the next too, *drift_pct*: by occasion, the median over
    repeated cells of its time over the cell's mean, less one.
    """

    cells: tuple[Pooled, ...]
    between_pct: float | None
    repeated: int
    drift_pct: Mapping[str, float]


def pool(taken: Iterable[Taken]) -> Pool:
    """Pools measured rows by set and cell, in the order in which cells first come; those without samples stay out."""
    rows: dict[tuple[str, Cell], list[Taken]] = {}
    for item in taken:
        if item.row.samples_ns:
            rows.setdefault((item.row.label, bare(cell_of(item.row))), []).append(item)
    medians = {key: {item.occasion: _median_ps(item.row) for item in items} for key, items in rows.items()}
    between = between_share(list(medians.values()))
    cells = []
    for (label, cell), items in rows.items():
        occasions = medians[label, cell]
        measured = statistics.fmean(occasions.values())
        within = within_ps([item.row.samples_ns for item in items])
        count = statistics.fmean(len(item.row.samples_ns) for item in items)
        noise = (within**2 / count + ((between or 0.0) * measured) ** 2) ** 0.5
        cells.append(Pooled(cell, label, items[0].row, occasions, round(measured), round(noise)))
    repeated = sum(len(times) > 1 for times in medians.values())
    percent = None if between is None else 100.0 * between
    return Pool(tuple(cells), percent, repeated, _drift(list(medians.values())))


def within_ps(samples_ns: Sequence[Sequence[int]]) -> float:
    """The standard deviation of samples about their own occasion's mean, pooled over occasions, in ps."""
    freedom = sum(len(samples) - 1 for samples in samples_ns)
    squares = sum(_squares([float(sample) for sample in samples]) for samples in samples_ns)
    return _PS_PER_NS * (squares / freedom) ** 0.5 if freedom else 0.0


def between_share(cells: Sequence[Mapping[str, int]]) -> float | None:
    """The standard deviation of occasions about their cell's mean, as a share of it, pooled over cells."""
    shares = [[time / statistics.fmean(times.values()) for time in times.values()] for times in cells]
    freedom = sum(len(found) - 1 for found in shares)
    return (sum(map(_squares, shares)) / freedom) ** 0.5 if freedom else None


def _drift(cells: Sequence[Mapping[str, int]]) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for times in cells:
        for occasion, time in times.items() if len(times) > 1 else ():
            found.setdefault(occasion, []).append(100.0 * (time / statistics.fmean(times.values()) - 1.0))
    return {occasion: statistics.median(ratios) for occasion, ratios in found.items()}


def _median_ps(row: Row) -> int:
    assert row.total_ns is not None
    return row.total_ns * _PS_PER_NS


def _squares(values: Sequence[float]) -> float:
    mean = statistics.fmean(values)
    return sum((value - mean) ** 2 for value in values)
