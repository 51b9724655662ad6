"""Timelines compared tile by tile: planted faults are found where they are, with their sign and size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cusim.errors import InputError
from cusim.trace.align import aligned
from cusim.trace.compare import Comparison, Spread, compare_traces
from cusim.trace.metrics import MachineShape
from cusim.trace.rounds import issue_rounds
from cusim.trace.trace import EVENT_COLUMNS, NONE, TILE_COLUMNS, WAIT_COLUMNS, Trace, column_table

US = 1_000_000
SMS = 4


def chain(
    tiles: Mapping[str, int], micros: Mapping[str, int], *, zero: int = 0, barrier: bool = True, **meta: Any
) -> Trace:
    """Kernels of so many tiles on four SMs, each tile so many us long; without *barrier*, slots are filled at once."""
    free = [zero * US] * SMS
    rows: list[tuple[int, ...]] = []
    for number, (name, count) in enumerate(tiles.items()):
        free = [max(free)] * SMS if barrier else free
        for ticket in range(count):
            sm = free.index(min(free))
            begin, end = free[sm], free[sm] + micros[name] * US
            rows.append(
                (number, ticket // 2, ticket % 2, 0, ticket, 0, ticket, sm, 0, begin, begin, begin, end, NONE, 0)
            )
            free[sm] = end
    empty = column_table([], EVENT_COLUMNS), column_table([], WAIT_COLUMNS)
    return Trace(tuple(tiles), column_table(rows, TILE_COLUMNS), *empty, (), {"kind": "predicted", **meta})


def shape_of(trace: Trace, slots: int = 1) -> MachineShape:
    return MachineShape(SMS, 64, dict.fromkeys(trace.kernels, slots), dict.fromkeys(trace.kernels, 8))


def compared(predicted: Trace, measured: Trace) -> Comparison:
    return compare_traces(predicted, measured, shape_of(predicted))


def moved(trace: Trace, rows: Sequence[int], **by_us: int) -> Trace:
    """The trace with the columns named moved by so many us in some rows."""
    tiles = {name: column.copy() for name, column in trace.tiles.items()}
    for name, micros in by_us.items():
        tiles[name][list(rows)] += micros * US
    return replace(trace, tiles=tiles)


TILES = {"up": 6, "down": 10}
BASE = chain(TILES, {"up": 20, "down": 10})


def test_identical_runs_have_no_error_wherever_their_clocks_begin() -> None:
    for other in (BASE, chain(TILES, {"up": 20, "down": 10}, zero=70)):
        found = compared(BASE, other)
        for name in ("start", "end", "duration", "wait"):
            assert not getattr(found.tiles, name).any()
        assert {part.end for part in (*found.by_kernel, *found.by_round)} == {Spread(0, 0, 0)}
        assert found.span.error_ps == found.kernel_errors_ps == found.round_errors_ps == 0
        assert found.cancelled_pct == 0


def test_a_late_tile_is_found_with_its_sign() -> None:
    late = moved(BASE, [9], placed=3, ready=3, first_load=3, end=3)
    tiles = compared(late, BASE).tiles
    assert np.flatnonzero(tiles.start).tolist() == np.flatnonzero(tiles.end).tolist() == [9]
    assert tiles.start[9] == tiles.end[9] == 3 * US
    assert not tiles.duration.any()
    assert compared(BASE, late).tiles.start[9] == -3 * US


def test_a_longer_tile_and_its_wait_are_found() -> None:
    tiles = compared(moved(BASE, [15], end=2, wait_total=2), BASE).tiles
    assert (tiles.start[15], tiles.end[15], tiles.duration[15], tiles.wait[15]) == (0, 2 * US, 2 * US, 2 * US)
    assert tiles.measured_end[15] == 70 * US


def test_kernels_and_rounds_sum_their_tiles_up() -> None:
    down = list(range(6, 16))
    found = compared(moved(moved(BASE, down, end=4), [6], end=10), BASE)
    up, then = found.by_kernel
    assert (up.kernel, up.tiles, up.duration) == ("up", 6, Spread(0, 0, 0))
    assert then.duration.median_ps == 4 * US
    assert then.duration.bias_ps == 5 * US
    assert 4 * US < then.duration.p90_abs_ps < 14 * US
    assert [(part.kernel, part.round, part.tiles) for part in found.by_round] == [
        ("up", 1, 4), ("up", 2, 2), ("down", 3, 4), ("down", 4, 4), ("down", 5, 2),
    ]  # fmt: skip


def test_tiles_match_by_name_whatever_the_order_of_rows_and_kernels() -> None:
    turned = np.arange(BASE.blocks)[::-1]
    tiles = {name: column[turned] for name, column in BASE.tiles.items()}
    tiles["kernel"] = 1 - tiles["kernel"]
    assert not compared(BASE, replace(BASE, kernels=("down", "up"), tiles=tiles)).tiles.start.any()


def test_kernels_in_the_wrong_order_are_found() -> None:
    grids, micros = {"a": 4, "b": 4}, {"a": 30, "b": 10}
    found = compared(chain({"b": 4, "a": 4}, micros), chain(grids, micros))
    errors = {part.kernel: (part.start.median_ps // US, part.end.median_ps // US) for part in found.by_kernel}
    assert errors == {"a": (10, 10), "b": (-30, -30)}
    assert found.span.error_ps == 0


def test_errors_that_cancel_show() -> None:
    found = compared(
        chain({"a": 4, "b": 4}, {"a": 30, "b": 10}, total_ns=40_000),
        chain({"a": 4, "b": 4}, {"a": 20, "b": 20}, total_ns=40_000),
    )
    assert found.predicted_ns == found.measured_ns
    assert found.span.error_ps == 0
    assert [each.error_ps for each in found.kernels] == [10 * US, -10 * US]
    assert found.kernel_errors_ps == found.round_errors_ps == 20 * US
    assert found.cancelled_pct == 100


def test_errors_of_one_sign_do_not_cancel() -> None:
    slower = chain(TILES, {"up": 22, "down": 11})
    found = compared(slower, BASE)
    assert found.kernel_errors_ps == found.round_errors_ps == found.span.error_ps == 7 * US
    assert found.cancelled_pct == 0


@pytest.mark.parametrize("seed", range(20))
def test_errors_of_rounds_sum_to_the_error_of_the_span(seed: int) -> None:
    random = np.random.default_rng(seed)
    traces = [
        chain(
            {"a": 7, "b": 9, "c": 3},
            {name: int(random.integers(1, 40)) for name in "abc"},
            barrier=bool(random.integers(2)),
        )
        for _ in range(2)
    ]
    found = compared(*traces)
    assert sum(each.error_ps for each in found.rounds) == found.span.error_ps
    assert found.round_errors_ps >= abs(found.span.error_ps)
    assert 0 <= found.cancelled_pct <= 100


def test_rounds_count_through_kernels_unless_a_barrier_lies_between() -> None:
    stream = issue_rounds(BASE, shape_of(BASE)).tolist()
    assert stream == [1, 1, 1, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5]
    whole = chain(TILES, {"up": 20, "down": 10}, barrier=False)
    assert issue_rounds(whole, shape_of(whole)).tolist() == [1] * 4 + [2] * 4 + [3] * 4 + [4] * 4
    mixed = MachineShape(SMS, 64, {"up": 1, "down": 2}, {"up": 8, "down": 8})
    assert issue_rounds(whole, mixed).tolist() == [1] * 4 + [2] * 6 + [3] * 6


def test_a_round_follows_the_ticket_not_the_time() -> None:
    swapped = moved(moved(BASE, [0], placed=20, ready=20, first_load=20, end=20), [4], placed=-20, ready=-20)
    assert issue_rounds(swapped, shape_of(BASE)).tolist() == issue_rounds(BASE, shape_of(BASE)).tolist()


def test_stamped_and_unstamped_totals_are_both_kept() -> None:
    measured = replace(
        BASE, meta={"kind": "measured", "total_ns": 70_000, "stamped_samples_ns": [73_000, 71_000, 72_000]}
    )
    found = compared(replace(BASE, meta={"total_ns": 75_000}), measured)
    assert (found.predicted_ns, found.measured_ns, found.stamped_ns) == (75_000, 70_000, 72_000)
    assert compared(BASE, BASE).stamped_ns is None


def test_another_program_and_plan_are_refused_together() -> None:
    ours = replace(BASE, meta={"program_digest": "a", "plan": "row", "plan_digest": "b"})
    theirs = replace(BASE, meta={"program_digest": "c", "plan": "tile", "plan_digest": "d", "deadlock": True})
    with pytest.raises(InputError) as refused:
        compared(ours, theirs)
    assert [problem.key for problem in refused.value.problems] == ["program", "plan", "measured"]
    assert "row, b" in str(refused.value)
    assert "tile, d" in str(refused.value)


def test_other_kernels_and_tiles_are_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"kernels = \"up left\".*predicted were up down"):
        compared(BASE, replace(BASE, kernels=("up", "left")))
    with pytest.raises(InputError, match=r"2 of them are only predicted: down\[4, 0, 0\], down\[4, 1, 0\]"):
        compared(BASE, chain({"up": 6, "down": 8}, {"up": 20, "down": 10}))
    with pytest.raises(InputError, match=r"4 of them are only measured: .* \.\.\."):
        compared(BASE, chain({"up": 6, "down": 14}, {"up": 20, "down": 10}))


def test_several_runs_in_one_trace_and_an_empty_one_are_refused() -> None:
    twice = {name: np.concatenate([column, column]) for name, column in BASE.tiles.items()}
    with pytest.raises(InputError, match="measured has tiles more than once"):
        compared(BASE, replace(BASE, tiles=twice))
    nothing = chain({"up": 0}, {"up": 1})
    with pytest.raises(InputError, match="there are none"):
        compared(nothing, nothing)


def test_aligned_times_begin_with_the_first_block_and_keep_what_was_not_posted() -> None:
    late = aligned(chain(TILES, {"up": 20, "down": 10}, zero=70))
    assert late.tiles["placed"].min() == 0
    assert late.tiles["end"].max() == 70 * US
    assert set(late.tiles["posted"].tolist()) == {NONE}
    assert late.span_ps == BASE.span_ps
