"""How far predictions are from recorded rows: by tile on what was fitted, and as a band on what was not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cusim.recording.rows import Row

#: The error band covers this part of the dev rows.
BAND_PERCENTILE = 90
_PS_PER_NS = 1000


@dataclass(frozen=True, slots=True)
class TileErrors:
    """Errors in percent of the measured time over the *rows* of one tile, with the machine before and after the fit.

    *bias_pct* is the mean of the signed errors (above 0: predicted longer), *worst_pct* the largest size of one.
    """

    tile: str
    rows: int
    before_mape_pct: float
    mape_pct: float
    bias_pct: float
    worst_pct: float


@dataclass(frozen=True, slots=True)
class DevErrors:
    """Errors in percent over the *rows* of the dev set that the model predicts: the mean size, and a percentile."""

    rows: int
    mape_pct: float
    percentile_pct: float

    @property
    def band_pct(self) -> int:
        """The percentile as a band, rounded up to a whole percent."""
        return max(1, math.ceil(self.percentile_pct - 1e-9))


def errors_pct(rows: Sequence[Row], predicted_ps: Sequence[int | None]) -> list[float]:
    """The signed error of each row in percent; rows without a time or a prediction are left out."""
    return [
        100.0 * (predicted / (row.total_ns * _PS_PER_NS) - 1.0)
        for row, predicted in zip(rows, predicted_ps, strict=True)
        if predicted is not None and row.total_ns
    ]


def by_tile(rows: Sequence[Row], before_ps: Sequence[int | None], after_ps: Sequence[int | None]) -> list[TileErrors]:
    """The errors of each tile, and of all of them last (*tile* ``all``)."""
    tiles = sorted({row.tile for row in rows}, key=lambda tile: [int(part) for part in tile.split("x")])
    groups = [(tile, [place for place, row in enumerate(rows) if row.tile == tile]) for tile in tiles]
    groups += [("all", list(range(len(rows))))]
    found = []
    for tile, places in groups:
        mine = [rows[place] for place in places]
        before = np.abs(errors_pct(mine, [before_ps[place] for place in places]))
        after = np.array(errors_pct(mine, [after_ps[place] for place in places]))
        sizes = np.abs(after)
        numbers = (before.mean(), sizes.mean(), after.mean(), sizes.max())
        found.append(TileErrors(tile, len(mine), *(float(number) for number in numbers)))
    return found


def dev_errors(rows: Sequence[Row], predicted_ps: Sequence[int | None]) -> DevErrors | None:
    """The errors over the dev rows; None where none of them is predicted."""
    sizes = np.abs(errors_pct(rows, predicted_ps))
    if not len(sizes):
        return None
    return DevErrors(len(sizes), float(sizes.mean()), float(np.percentile(sizes, BAND_PERCENTILE)))
