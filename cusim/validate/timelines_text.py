"""Judged timelines as people read them: totals beside what they are made of, then kernels, then rounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cusim.machine.machine import Machine
from cusim.trace.compare import Spread
from cusim.validate.parts import Part, cell
from cusim.validate.timelines import LUCK_PCT, RIGHT_PCT, JudgedTimeline, over_pct, summary_of

_PS_PER_US, _NS_PER_US = 1e6, 1e3
_SPREADS = ("start", "end", "duration", "wait")
_LEGEND = (
    "errors are predicted less measured, in us, both counted from their first block's start; measured blocks come from "
    "runs that stamp them (stamped us; of it %: the error against these), whose total may differ from the others'.",
    "span: error of first start to last end, of the run or a kernel. kernels: sum of |span| over kernels. rounds: sum "
    "of |error| of the rounds, one after the other; early rounds make up for late ones, and cancels is how much of "
    "that sum the whole run does not show.",
    "start, end, duration, wait: of tiles, median / mean / 90 % of sizes.",
    "round: as many blocks as fit, in issue order of kernels and tickets, anew behind a barrier.",
)


def timeline_parts(judged: Sequence[JudgedTimeline], machine: Machine, *, every_round: bool) -> Iterator[Part]:
    """Totals, kernels and, with *every_round*, rounds of every timeline."""
    summary = summary_of(judged)
    below = [
        f"{summary['n']} timelines: totals off by {cell(summary['total_mape_pct'], 1)} % in the mean, kernels' spans "
        f"by {summary['kernel_span_mape_pct']:.1f} %, rounds by {summary['round_mape_pct']:.1f} % of the run; "
        f"{summary['cancelled_pct']:.0f} % of the rounds' errors cancel",
        *_lucky(judged),
    ]
    heading = f"timelines, predicted for {machine.name} ({machine.state}) against measured"
    yield Part(heading, _TOTALS, [_total_cells(each) for each in judged], [False, *[True] * 10], below)
    yield Part("tiles by kernel, us", _KERNELS, list(_kernel_rows(judged)), [False, False, *[True] * 6])
    if every_round:
        yield Part("tiles by round, us", _ROUNDS, list(_round_rows(judged)), [False, True, True, False, *[True] * 5])
    yield Part("How to read it", below=_LEGEND)


_TOTALS = ("timeline", "tiles", "measured us", "predicted us", "error %", "stamped us", "of it %", "span", "kernels",
           "rounds", "cancels %")  # fmt: skip
_KERNELS = ("timeline", "kernel", "tiles", "span", *_SPREADS)
_ROUNDS = ("timeline", "round", "length", "kernel", "tiles", *_SPREADS)


def _lucky(judged: Sequence[JudgedTimeline]) -> Iterator[str]:
    """Totals that are right because errors cancel, with their kernels' errors."""
    lucky = [each for each in judged if each.lucky]
    if lucky:
        yield (
            f"right by luck, {len(lucky)} of {len(judged)} totals: within {RIGHT_PCT:g} % while {LUCK_PCT:g} % or more "
            "of the rounds' errors cancel"
        )
    for each in lucky:
        kernels = ", ".join(f"{kernel.name} {_us(kernel.error_ps)}" for kernel in each.found.kernels)
        yield f"{each.name}: {kernels} us"


def _total_cells(judged: JudgedTimeline) -> list[str]:
    found = judged.found
    times = (found.measured_ns, found.predicted_ns, found.stamped_ns)
    measured, predicted, stamped = ("-" if time is None else f"{time / _NS_PER_US:.1f}" for time in times)
    sums = (f"{total / _PS_PER_US:.1f}" for total in (found.kernel_errors_ps, found.round_errors_ps))
    return [
        judged.name, str(len(found.tiles.kernel)), measured, predicted, _pct(judged.total_error_pct), stamped,
        _pct(over_pct(found.predicted_ns, found.stamped_ns)), _us(found.span.error_ps), *sums,
        f"{found.cancelled_pct:.0f}",
    ]  # fmt: skip


def _kernel_rows(judged: Sequence[JudgedTimeline]) -> Iterator[list[str]]:
    for each in judged:
        for place, (part, kernel) in enumerate(zip(each.found.by_kernel, each.found.kernels, strict=True)):
            spreads = [_spread(getattr(part, name)) for name in _SPREADS]
            yield ["" if place else each.name, part.kernel, str(part.tiles), _us(kernel.error_ps), *spreads]


def _round_rows(judged: Sequence[JudgedTimeline]) -> Iterator[list[str]]:
    for each in judged:
        before = 0
        for place, part in enumerate(each.found.by_round):
            assert part.round is not None
            again = part.round == before
            before = part.round
            length = "" if again else _us(each.found.rounds[part.round - 1].error_ps)
            spreads = [_spread(getattr(part, name)) for name in _SPREADS]
            head = ["" if place else each.name, "" if again else str(part.round), length]
            yield [*head, part.kernel, str(part.tiles), *spreads]


def _spread(spread: Spread) -> str:
    return f"{_us(spread.median_ps)} / {_us(spread.bias_ps)} / {spread.p90_abs_ps / _PS_PER_US:.1f}"


def _us(error_ps: int) -> str:
    """A signed time in us; what rounds to nothing has no sign."""
    text = f"{error_ps / _PS_PER_US:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text


def _pct(value: float | None) -> str:
    return "-" if value is None else f"{value:+.1f}"
