"""Two timelines of one program and plan, tile by tile: where a prediction is early or late, and what cancels."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from cusim.errors import Problems
from cusim.trace.align import aligned
from cusim.trace.columns import Column
from cusim.trace.metrics import MachineShape, resident
from cusim.trace.rounds import issue_rounds
from cusim.trace.trace import Trace

_PS_PER_NS = 1000
_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Spread:
    """Signed errors in ps, predicted less measured: their median, their mean (*bias*), and the 90th percentile of
    their sizes.
    """

    median_ps: int
    bias_ps: int
    p90_abs_ps: int


@dataclass(frozen=True, eq=False)
class TileErrors:
    """One entry a tile, in the predicted trace's order; errors are predicted less measured, in ps.

    *start* is the block's placement and *end* its leave, each counted from the first block's start of its own run;
    *duration* is the time between the two, of which *wait* is what the block stood still. *measured_end* is when the
    measured block left, *round* the round of issue (:func:`cusim.trace.rounds.issue_rounds` of the prediction).
    """

    kernel: Column
    r: Column
    c: Column
    z: Column
    round: Column
    start: Column
    end: Column
    duration: Column
    wait: Column
    measured_end: Column


@dataclass(frozen=True, slots=True)
class Part:
    """The errors of one kernel, or of one kernel in one round (*round* is None for all of them)."""

    kernel: str
    round: int | None
    tiles: int
    start: Spread
    end: Spread
    duration: Spread
    wait: Spread


@dataclass(frozen=True, slots=True)
class Lengths:
    """How long something lasts as predicted and as measured, in ps: a kernel's span, a round, the whole run."""

    name: str
    predicted_ps: int
    measured_ps: int

    @property
    def error_ps(self) -> int:
        """Predicted less measured."""
        return self.predicted_ps - self.measured_ps


@dataclass(frozen=True, slots=True)
class Comparison:
    """A predicted trace held against a measured one.

    *span* is first block's start to last block's leave of the two runs; *kernels* the same of each kernel. *rounds*
    cut the run at the moments at which each round of issue is over, so their errors sum to the error of the span.
    *predicted_ns*, *measured_ns* and *stamped_ns* are totals from event to event: the predicted one, the median of the
    unstamped runs and that of the stamped ones, which the measured blocks come from; None where meta has none.
    """

    tiles: TileErrors
    by_kernel: tuple[Part, ...]
    by_round: tuple[Part, ...]
    span: Lengths
    kernels: tuple[Lengths, ...]
    rounds: tuple[Lengths, ...]
    predicted_ns: int | None
    measured_ns: int | None
    stamped_ns: int | None

    @property
    def kernel_errors_ps(self) -> int:
        """Sum of the sizes of the errors of the kernels' spans."""
        return sum(abs(each.error_ps) for each in self.kernels)

    @property
    def round_errors_ps(self) -> int:
        """Sum of the sizes of the errors of the rounds: no less than the size of the span's error."""
        return sum(abs(each.error_ps) for each in self.rounds)

    @property
    def cancelled_pct(self) -> float:
        """How much of the rounds' errors does not show in the span, since early rounds make up for late ones."""
        return 100 * (1 - abs(self.span.error_ps) / self.round_errors_ps) if self.round_errors_ps else 0.0


def compare_traces(predicted: Trace, measured: Trace, shape: MachineShape) -> Comparison:
    """*predicted* against *measured* on a machine of *shape*, tiles matched by kernel name and (r, c, z).

    Raises InputError, with all that differs, where the two are not of one program and plan, or not of the same tiles.
    """
    _check_alike(predicted, measured)
    ours, theirs = aligned(predicted), aligned(measured)
    place = _matching(predicted, measured)
    our_spans, their_spans = resident(ours), resident(theirs)[place]
    tiles = TileErrors(
        **{name: ours.tiles[name] for name in ("kernel", "r", "c", "z")},
        round=issue_rounds(predicted, shape),
        start=our_spans[:, 0] - their_spans[:, 0],
        end=our_spans[:, 1] - their_spans[:, 1],
        duration=(our_spans[:, 1] - our_spans[:, 0]) - (their_spans[:, 1] - their_spans[:, 0]),
        wait=ours.tiles["wait_total"] - theirs.tiles["wait_total"][place],
        measured_end=their_spans[:, 1],
    )
    numbers = range(len(ours.kernels))
    kernels = [tiles.kernel == number for number in numbers]
    last = [[0, *(_ends(spans[:, 1], tiles.round))] for spans in (our_spans, their_spans)]
    return Comparison(
        tiles=tiles,
        by_kernel=tuple(_part(tiles, name, None, rows) for name, rows in zip(ours.kernels, kernels, strict=True)),
        by_round=tuple(_by_round(tiles, ours.kernels)),
        span=Lengths("run", int(our_spans[:, 1].max()), int(their_spans[:, 1].max())),
        kernels=tuple(
            Lengths(name, _span(our_spans[rows]), _span(their_spans[rows]))
            for name, rows in zip(ours.kernels, kernels, strict=True)
        ),
        rounds=tuple(
            Lengths(f"round {number}", *(each[number] - each[number - 1] for each in last))
            for number in range(1, len(last[0]))
        ),
        predicted_ns=_whole(predicted.meta.get("total_ns")),
        measured_ns=_whole(measured.meta.get("total_ns")),
        stamped_ns=_median(measured.meta.get("stamped_samples_ns")),
    )


def _check_alike(predicted: Trace, measured: Trace) -> None:
    problems = Problems("predicted against measured")
    for what in ("program", "plan"):
        ours, theirs = (trace.meta.get(f"{what}_digest") for trace in (predicted, measured))
        if ours is not None and theirs is not None and ours != theirs:
            names = [f"{trace.meta.get(what, '?')}, {trace.meta[f'{what}_digest']}" for trace in (predicted, measured)]
            problems.add(what, names[1], f"measured; predicted was another {what}: {names[0]}")
    for trace, what in ((predicted, "predicted"), (measured, "measured")):
        if trace.meta.get("deadlock") is True:
            problems.add(what, None, "stood still in a deadlock; only runs that end can be compared")
    if sorted(predicted.kernels) != sorted(measured.kernels):
        problems.add("kernels", " ".join(measured.kernels), f"measured; predicted were {' '.join(predicted.kernels)}")
    problems.raise_if_any()
    ours, theirs = (
        _tile_names(trace, what, problems) for trace, what in ((predicted, "predicted"), (measured, "measured"))
    )
    for only, what in ((ours - theirs, "predicted"), (theirs - ours, "measured")):
        if only:
            shown = ", ".join(f"{name}[{r}, {c}, {z}]" for name, r, c, z in sorted(only)[:_EXAMPLES])
            problems.add(
                "tiles", None, f"{len(only)} of them are only {what}: {shown}{' ...' * (len(only) > _EXAMPLES)}"
            )
    if not ours and not theirs:
        problems.add("tiles", None, "there are none")
    problems.raise_if_any()


def _tile_names(trace: Trace, what: str, problems: Problems) -> set[tuple[str, int, int, int]]:
    columns = (trace.tiles[name].tolist() for name in ("kernel", "r", "c", "z"))
    names = [(trace.kernels[kernel], r, c, z) for kernel, r, c, z in zip(*columns, strict=True)]
    found = set(names)
    if len(found) < len(names):
        problems.add("tiles", None, f"{what} has tiles more than once: compare one run at a time")
    return found


def _matching(predicted: Trace, measured: Trace) -> Column:
    """For each predicted tile the row of the measured one."""
    number = np.array([predicted.kernels.index(name) for name in measured.kernels], np.int64)
    keys = [[trace.tiles[name] for name in ("z", "c", "r")] for trace in (predicted, measured)]
    ours = np.lexsort((*keys[0], predicted.tiles["kernel"]))
    theirs = np.lexsort((*keys[1], number[measured.tiles["kernel"]]))
    place = np.empty_like(ours)
    place[ours] = theirs
    return place


def _by_round(tiles: TileErrors, names: tuple[str, ...]) -> Iterator[Part]:
    for number in range(1, int(tiles.round.max()) + 1):
        for kernel, name in enumerate(names):
            rows = (tiles.round == number) & (tiles.kernel == kernel)
            if rows.any():
                yield _part(tiles, name, number, rows)


def _part(tiles: TileErrors, kernel: str, number: int | None, rows: Any) -> Part:
    spreads = (_spread(getattr(tiles, name)[rows]) for name in ("start", "end", "duration", "wait"))
    return Part(kernel, number, int(rows.sum()), *spreads)


def _spread(errors: Column) -> Spread:
    if not len(errors):
        return Spread(0, 0, 0)
    figures = (np.median(errors), np.mean(errors), np.percentile(np.abs(errors), 90))
    return Spread(*(round(float(figure)) for figure in figures))


def _ends(ends: Column, rounds: Column) -> list[int]:
    """When each round is over: it and all before it have left."""
    last = [int(ends[rounds == number].max()) for number in range(1, int(rounds.max()) + 1)]
    return [int(end) for end in np.maximum.accumulate(last)]


def _span(spans: Any) -> int:
    return int(spans[:, 1].max() - spans[:, 0].min()) if len(spans) else 0


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def _median(samples: Any) -> int | None:
    return round(statistics.median(samples)) if samples else None
