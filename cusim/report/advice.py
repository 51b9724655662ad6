"""What a comparison means in words: a recommendation, a tie, a loss or a deadlock, and what to mind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cusim.machine.unused import unused_notes
from cusim.report.choice import (
    NEAR_PCT,
    alike_by,
    best_row,
    differ,
    recommended_row,
    reference_row,
    strongest_row,
    total_of,
)
from cusim.report.kernels import KernelRow
from cusim.report.result import DEADLOCKS, IF_ARRIVAL, SAFE, STREAM_BEST, Report, Row
from cusim.report.shape import option_form

ARRIVAL_CAVEAT = (
    "That it cannot hang rests on blocks being placed in the order in which kernels arrive, which is undocumented "
    "and was seen broken on an H200; "
)
#: Programs of more kernels get no note on each kernel's waves.
_MOST_WAVE_NOTES = 4


def advise(report: Report, held: Row | None = None) -> Report:
    """The report with every row put against the best stream row, at most one recommended, and words.

    *held* is the recommended plan under launch ``wait-all``.
    """
    band = report.machine.band_pct
    reference, best, chosen = reference_row(report.rows), best_row(report), recommended_row(report)
    rows = tuple(
        replace(
            row,
            reference=row is reference,
            recommended=row is chosen,
            advice=row_advice(row, reference, band),
        )
        for row in report.rows
    )
    return replace(
        report,
        rows=rows,
        held=held,
        unlike=alike_by(reference, best),
        verdict=tuple(_verdict(report, reference, best)),
        caveats=(ARRIVAL_CAVEAT + _held(chosen, held),) if chosen is not None and chosen.deadlock == IF_ARRIVAL else (),
        notes=(*report.notes, *_notes(report, reference)),
    )


def row_advice(row: Row, reference: Row | None, band_pct: float) -> str:
    """A few words on one row: ``reference``, what it gains or loses, or that it deadlocks."""
    if row is reference:
        return "reference"
    gain = row.gain_pct
    if row.deadlock == DEADLOCKS or gain is None or row.total_ns is None:
        return DEADLOCKS if row.deadlock == DEADLOCKS else "no reference"
    if abs(gain) <= band_pct:
        return f"tie within ±{band_pct:g} %"
    if gain < 0:
        return f"loses {_longer(row):.1f} %"
    tied = not row.strongest and row.best_gain_pct is not None and row.best_gain_pct <= band_pct
    return f"gains {gain:.1f} %" + (f", not beyond the band on {STREAM_BEST}" if tied else "")


def name_of(row: Row, *, with_shape: bool = False) -> str:
    """A row as people call it: ``row (order group:2, launch wait-first)``; tile and split-K *with_shape*."""
    parts = [f"order {row.order}"]
    parts += [f"flags {row.flags}"] if row.flags != "-" else []
    parts += [f"launch {row.launch}"] if row.launch != "stream" else []
    parts += [f"tile {option_form(row.tile)}, split-K {option_form(row.split_k)}"] if with_shape else []
    return f"{row.policy} ({', '.join(parts)})"


def _verdict(report: Report, reference: Row | None, best: Row | None) -> Iterator[str]:
    for row in report.rows:
        if row.deadlock == DEADLOCKS:
            yield f"Deadlock: {name_of(row)} never finishes. {row.reason}."
    if reference is None:
        return
    shape = differ(report.rows)
    stream = name_of(reference, with_shape=shape)
    if best is None:
        if not any(row.overlapped for row in report.rows):
            yield f"Only stream order was asked for; the best of it is {stream}."
        else:
            yield "No policy to recommend: each one deadlocks or can. Keep stream order, or try --launch wait-all."
        return
    alike = alike_by(reference, best)
    band = report.machine.band_pct
    yield _comparison(best, name_of(best, with_shape=shape), stream, band, even=not alike)
    yield from _rival(strongest_row(report.rows), best, band)
    if alike:
        yield (
            f"These two differ in {_difference(reference, best)}, so this is not the policy's doing alone; "
            f"{alike} compares like with like."
        )


def _comparison(best: Row, name: str, stream: str, band: float, *, even: bool) -> str:
    gain = best.gain_pct or 0.0
    if gain > band:
        return _gain(best, gain, name, stream, band)
    if gain > 0:
        return (
            f"Tie within ±{band:g} %: the best policy, {name}, takes {gain:.1f} % less time than {stream}; "
            "no recommendation. Calibrate the machine to narrow the band."
        )
    if gain == 0:
        return f"No gain: the best policy, {name}, takes as long as {stream}. Keep stream order."
    within = f", a tie within ±{band:g} %" if -gain <= band else ""
    return (
        f"Predicted loss: {'even ' if even else ''}the best policy, {name}, takes {_longer(best):.1f} % more time "
        f"than {stream}{within}. Keep stream order."
    )


def _gain(best: Row, gain: float, name: str, stream: str, band: float) -> str:
    """A gain beyond the band, and whether it is one on the strongest stream order too."""
    less = f"{name} takes {gain:.1f} % less time than the best stream plan, {stream}"
    left = best.best_gain_pct
    if left is None:
        return f"Recommended: {less}."
    if left > band:
        return f"Recommended: {less}, and {left:.1f} % less than {STREAM_BEST}."
    if left < -band:
        return f"No recommendation: {less}, but {-left:.1f} % more than stream order at a better tile ({STREAM_BEST})."
    part = "most" if left <= gain / 2 else "part"
    there = f"the gain is {left:.1f} %" if left >= 0 else f"it is a loss of {-left:.1f} %"
    return (
        f"Tie with {STREAM_BEST}: {less}, but {part} of that gain is also had by stream order at a better tile or "
        f"split-K; there {there}, within ±{band:g} %. No recommendation."
    )


def _rival(strongest: Row | None, best: Row, band: float) -> Iterator[str]:
    """That a better tile is worth more than any policy, where no policy gains."""
    if strongest is not None and (best.gain_pct or 0.0) <= band < (strongest.gain_pct or 0.0):
        yield (
            f"Stream order at a better tile or split-K ({STREAM_BEST}) takes {strongest.gain_pct:.1f} % less time than "
            "at this one."
        )


def _held(chosen: Row, held: Row | None) -> str:
    """What launch ``wait-all`` would cost the recommended plan, which it makes safe."""
    if held is None or held.total_ns is None or held.deadlock != SAFE:
        return "--launch wait-all does not rely on it."
    more = 100.0 * (held.total_ns / total_of(chosen) - 1)
    cost = "" if more <= NEAR_PCT else f", {more:.1f} % more,"
    return f"--launch wait-all takes {held.total_ns / 1e3:.1f} us{cost} and is safe by construction."


def _difference(reference: Row, best: Row) -> str:
    pairs = (("tile", reference.tile, best.tile), ("split-K", reference.split_k, best.split_k))
    return " and ".join(f"{name} ({option_form(a)} and {option_form(b)})" for name, a, b in pairs if a != b)


def _notes(report: Report, reference: Row | None) -> Iterator[str]:
    machine = report.machine
    if machine.overrides:
        yield f"what-if machine: {', '.join(machine.overrides)}; such numbers are extrapolated"
    yield from unused_notes(machine)
    for kernel in report.kernels:
        if kernel.cost.startswith("rescaled"):
            yield f"{kernel.name}: its measured time was {kernel.cost}, so it is no measurement here"
    if reference is not None and differ(report.rows):
        yield (
            f"rows differ in tile or split-K; all are compared with the best stream plan "
            f"(tile {option_form(reference.tile)}, split-K {option_form(reference.split_k)})"
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
