"""What a comparison means in words: a recommendation, a tie, a loss or a deadlock, and what to mind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cusim.report.kernels import KernelRow
from cusim.report.result import DEADLOCKS, Report, Row

CAN_DEADLOCK = "can deadlock"
IF_ARRIVAL = "safe if arrival order holds"
#: Rows this close in time, in percent of the faster, are taken as equal; then the safer one is the better one.
_NEAR_PCT = 1.0
_ARRIVAL_CAVEAT = (
    "That it cannot hang rests on blocks being placed in the order in which kernels arrive, which is undocumented "
    "and was seen broken on an H200; --launch wait-all does not rely on it."
)
#: Programs of more kernels get no note on each kernel's waves.
_MOST_WAVE_NOTES = 4


def advise(report: Report) -> Report:
    """The report with every row put against the best stream row, at most one recommended, and words."""
    band = report.machine.band_pct
    reference, best = reference_row(report.rows), best_row(report.rows)
    chosen = best if best is not None and (best.gain_pct or 0.0) > band else None
    rows = tuple(
        replace(
            row,
            reference=row is reference,
            recommended=row is chosen,
            advice=row_advice(row, reference, band),
        )
        for row in report.rows
    )
    verdict = tuple(_verdict(report, reference, best))
    caveats = (_ARRIVAL_CAVEAT,) if chosen is not None and chosen.deadlock == IF_ARRIVAL else ()
    return replace(
        report, rows=rows, verdict=verdict, caveats=caveats, notes=(*report.notes, *_notes(report, reference))
    )


def reference_row(rows: tuple[Row, ...]) -> Row | None:
    """The fastest stream row: the first of equals."""
    return min((r for r in rows if not r.overlapped and r.total_ns is not None), key=_total, default=None)


def best_row(rows: tuple[Row, ...]) -> Row | None:
    """The fastest overlapped row that finished and whose verdict is not that it can hang; safer before faster
    where they are within a percent.
    """
    usable = [r for r in rows if r.overlapped and r.total_ns is not None and r.deadlock != CAN_DEADLOCK]
    if not usable:
        return None
    fastest = min(map(_total, usable))
    near = [row for row in usable if _total(row) <= fastest * (1 + _NEAR_PCT / 100)]
    return min(near, key=lambda row: (row.deadlock == IF_ARRIVAL, _total(row)))


def row_advice(row: Row, reference: Row | None, band_pct: float) -> str:
    """A few words on one row: ``reference``, what it gains or loses, or that it deadlocks."""
    if row is reference:
        return "reference"
    gain = row.gain_pct
    if row.deadlock == DEADLOCKS or gain is None or row.total_ns is None:
        return DEADLOCKS if row.deadlock == DEADLOCKS else "no reference"
    if abs(gain) <= band_pct:
        return f"tie within ±{band_pct:g} %"
    return f"gains {gain:.1f} %" if gain > 0 else f"loses {_longer(row):.1f} %"


def name_of(row: Row, *, with_shape: bool = False) -> str:
    """A row as people call it: ``row (order group:2, launch wait-first)``; tile and split-K *with_shape*."""
    parts = [f"order {row.order}"]
    parts += [f"flags {row.flags}"] if row.flags != "-" else []
    parts += [f"launch {row.launch}"] if row.overlapped else []
    parts += [f"tile {row.tile}, split-K {row.split_k}"] if with_shape else []
    return f"{row.policy} ({', '.join(parts)})"


def _verdict(report: Report, reference: Row | None, best: Row | None) -> Iterator[str]:
    for row in report.rows:
        if row.deadlock == DEADLOCKS:
            yield f"Deadlock: {name_of(row)} never finishes. {row.reason}."
    if reference is None:
        return
    shape = _differ(report.rows)
    stream = name_of(reference, with_shape=shape)
    if best is None:
        if not any(row.overlapped for row in report.rows):
            yield f"Only stream order was asked for; the best of it is {stream}."
        else:
            yield "No policy to recommend: each one deadlocks or can. Keep stream order, or try --launch wait-all."
        return
    yield _comparison(best, name_of(best, with_shape=shape), stream, report.machine.band_pct)


def _comparison(best: Row, name: str, stream: str, band: float) -> str:
    gain = best.gain_pct or 0.0
    if gain > band:
        return f"Recommended: {name} takes {gain:.1f} % less time than the best stream row, {stream}."
    if gain > 0:
        return (
            f"Tie within ±{band:g} %: the best policy, {name}, takes {gain:.1f} % less time than {stream}; "
            "no recommendation. Calibrate the machine to narrow the band."
        )
    if gain == 0:
        return f"No gain: the best policy, {name}, takes as long as {stream}. Keep stream order."
    within = f", a tie within ±{band:g} %" if -gain <= band else ""
    return (
        f"Predicted loss: even the best policy, {name}, takes {_longer(best):.1f} % more time than "
        f"{stream}{within}. Keep stream order."
    )


def _notes(report: Report, reference: Row | None) -> Iterator[str]:
    machine = report.machine
    if machine.overrides:
        yield f"what-if machine: {', '.join(machine.overrides)}; such numbers are extrapolated"
    for kernel in report.kernels:
        if kernel.cost.startswith("rescaled"):
            yield f"{kernel.name}: its measured time was {kernel.cost} by waves, so it is no measurement"
    if reference is not None and _differ(report.rows):
        yield (
            f"rows differ in tile or split-K; all are compared with the best stream row "
            f"(tile {reference.tile}, split-K {reference.split_k})"
        )


def wave_notes(report: Report) -> list[str]:
    """For each kernel whose last wave is not full, how full it is: what finer synchronisation could win back."""
    found = [text for kernel in report.kernels if (text := _wave_note(kernel)) is not None]
    return found if len(report.kernels) <= _MOST_WAVE_NOTES else []


def _wave_note(kernel: KernelRow) -> str | None:
    """Why stream order wastes SMs: how full the last wave is."""
    if kernel.waves is None or kernel.last_wave == kernel.slots:
        return None
    full = 100.0 * kernel.last_wave / kernel.slots
    return (
        f"{kernel.name}: {kernel.waves:.2f} waves; in stream order its last wave fills "
        f"{kernel.last_wave} of {kernel.slots} block slots ({full:.0f} %)"
    )


def _longer(row: Row) -> float:
    """Time beyond the best stream row's, in percent of it."""
    return 100.0 * (1.0 / row.speedup_vs_stream - 1.0) if row.speedup_vs_stream else 0.0


def _differ(rows: tuple[Row, ...]) -> bool:
    return len({(row.tile, row.split_k) for row in rows}) > 1


def _total(row: Row) -> int:
    assert row.total_ns is not None
    return row.total_ns
