"""Which rows of a comparison matter: the reference, the best policy, and whether it is recommended."""

from __future__ import annotations

from cusim.policies.plan import LAUNCHES
from cusim.report.result import CAN_DEADLOCK, IF_ARRIVAL, Report, Row
from cusim.report.shape import option_form

#: Rows this close in time, in percent of the faster, are taken as equal; then the safer and plainer one is better.
NEAR_PCT = 1.0


def reference_row(rows: tuple[Row, ...]) -> Row | None:
    """The fastest stream row at the tiles that were asked for: the first of equals."""
    streams = (r for r in rows if not r.overlapped and not r.strongest and r.total_ns is not None)
    return min(streams, key=total_of, default=None)


def strongest_row(rows: tuple[Row, ...]) -> Row | None:
    """The row of stream order at its own best tile, order and split-K, where it was looked for."""
    return next((row for row in rows if row.strongest), None)


def best_row(report: Report) -> Row | None:
    """The fastest overlapped row that finished and whose verdict is not that it can hang.

    Where rows are within a percent: the safer, then the one without warnings of its flags, with the fewest flags and
    the plainest launch. What rests on the order of arrival counts as able to hang where *dispatch* does not keep it.
    """
    refused = (CAN_DEADLOCK,) if report.dispatch == "arrival" else (CAN_DEADLOCK, IF_ARRIVAL)
    usable = [r for r in report.rows if r.overlapped and r.total_ns is not None and r.deadlock not in refused]
    if not usable:
        return None
    fastest = min(map(total_of, usable))
    return min((row for row in usable if total_of(row) <= fastest * (1 + NEAR_PCT / 100)), key=_preference)


def _preference(row: Row) -> tuple[bool, bool, int, int, int]:
    flags = len(set(option_form(row.flags)) & set("WRTA"))
    return row.deadlock == IF_ARRIVAL, bool(row.warnings), flags, LAUNCHES.index(row.launch), total_of(row)


def recommended_row(report: Report) -> Row | None:
    """The best row, if it gains more than the band of the machine, on the strongest stream order too."""
    best, band = best_row(report), report.machine.band_pct
    if best is None or (best.gain_pct or 0.0) <= band:
        return None
    return best if best.best_gain_pct is None or best.best_gain_pct > band else None


def alike_by(reference: Row | None, best: Row | None) -> str:
    """The options that give stream order the tiles and splits of the best policy; none where it has them."""
    if reference is None or best is None or (reference.tile, reference.split_k) == (best.tile, best.split_k):
        return ""
    split = f"--split-k {option_form(best.split_k)}"
    return split if reference.tile == best.tile else f"--tile {option_form(best.tile)} {split}"


def differ(rows: tuple[Row, ...]) -> bool:
    """True when rows run different tiles or splits, so that their times differ for more than one reason."""
    return len({(row.tile, row.split_k) for row in rows if not row.strongest}) > 1


def total_of(row: Row) -> int:
    """The total of a row that finished, in ns."""
    assert row.total_ns is not None
    return row.total_ns
