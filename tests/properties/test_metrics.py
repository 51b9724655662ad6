"""Utilisation never passes 100 %, shares always sum to 100, and interval arithmetic agrees with counting instants."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cusim.trace.intervals import covered, intersection, lanes, shares, stretches, union
from cusim.trace.metrics import MachineShape, metrics, resident, round_ends, tails
from cusim.trace.trace import EVENT_COLUMNS, NONE, TILE_COLUMNS, WAIT_COLUMNS, Trace, column_table

TIMES = st.integers(0, 60)
SPANS = st.lists(st.tuples(TIMES, TIMES).map(sorted), max_size=12).map(
    lambda pairs: np.array(pairs, dtype=np.int64).reshape(-1, 2)
)


def instants(spans: np.ndarray) -> set[int]:
    return {instant for begin, end in spans.tolist() for instant in range(begin, end)}


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Any blocks at all on few SMs, more of them at once than would fit, with waits longer than they last."""
    rows = []
    for _ in range(draw(st.integers(0, 14))):
        placed, ready, load, end = sorted(draw(st.lists(st.integers(0, 10**9), min_size=4, max_size=4)))
        posted = draw(st.one_of(st.just(NONE), st.integers(0, 10**9 + 50)))
        kernel, sm = draw(st.integers(0, 2)), draw(st.integers(0, 3))
        rows.append((kernel, 0, 0, 0, 0, 0, 0, sm, 0, placed, ready, load, end, posted, draw(st.integers(0, 10**9))))
    tables = (column_table(rows, TILE_COLUMNS), column_table([], EVENT_COLUMNS), column_table([], WAIT_COLUMNS))
    return Trace(("a", "b", "c"), *tables)


@st.composite
def shapes(draw: st.DrawFn) -> MachineShape:
    fits = {name: draw(st.integers(1, 32)) for name in "abc"}
    return MachineShape(draw(st.integers(4, 9)), 64, fits, {name: draw(st.integers(1, 64)) for name in "abc"})


@given(traces(), shapes())
def test_shares_sum_to_100_and_none_passes_it(trace: Trace, shape: MachineShape) -> None:
    found = metrics(trace, shape)
    parts = (found.working_pct, found.waiting_pct, found.empty_pct)
    assert abs(sum(parts) - 100) <= 1e-9
    assert all(0 <= part <= 100 for part in parts)
    assert 0 <= found.achieved_occupancy <= 1
    assert 0 <= found.sms_in_use <= 4


@given(traces(), shapes())
def test_resident_time_is_within_the_time_that_sms_hold_blocks(trace: Trace, shape: MachineShape) -> None:
    found = metrics(trace, shape)
    in_use_pct = 100 * found.sms_in_use / shape.sms
    assert found.working_pct + found.waiting_pct <= in_use_pct + 1e-9


@given(traces(), shapes())
def test_rounds_and_tails_lie_within_the_run(trace: Trace, shape: MachineShape) -> None:
    ends, found = round_ends(trace, shape), metrics(trace, shape)
    assert list(ends) == sorted(ends)
    assert not trace.blocks or ends[-1] == found.end_ps
    assert all(found.start_ps <= tail.begin_ps <= tail.end_ps <= found.end_ps for tail in tails(trace))


@given(traces())
def test_lanes_never_hold_two_blocks_at_once(trace: Trace) -> None:
    spans, sm = resident(trace), trace.tiles["sm"]
    lane = lanes(sm, spans)
    for place in {*zip(sm.tolist(), lane.tolist(), strict=True)}:
        mine = spans[(sm == place[0]) & (lane == place[1])]
        assert covered(mine) == (mine[:, 1] - mine[:, 0]).sum()


@given(SPANS, SPANS)
def test_unions_and_intersections_hold_the_instants_that_they_should(left: np.ndarray, right: np.ndarray) -> None:
    assert instants(union(left)) == instants(left)
    assert covered(left) == len(instants(left))
    assert instants(intersection(left, right)) == instants(left) & instants(right)
    assert (np.diff(union(left).ravel()) > 0).all()


@given(SPANS)
def test_no_interval_reaches_into_the_next_stretch(spans: np.ndarray) -> None:
    number = stretches(spans)
    for one, first in zip(spans.tolist(), number.tolist(), strict=True):
        for other, second in zip(spans.tolist(), number.tolist(), strict=True):
            assert first >= second or one[1] <= other[0]


@given(SPANS, st.data())
def test_shares_agree_with_counting_instants(spans: np.ndarray, data: st.DataObject) -> None:
    count, full = len(spans), 6
    groups = np.array(data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)), np.int64)
    weights = np.array(data.draw(st.lists(st.integers(1, 6), min_size=count, max_size=count)), np.int64)
    held = shares(groups, spans, weights, full)
    for place in range(count):
        there = [groups == groups[place]][0]
        counted = 0.0
        for instant in range(*spans[place].tolist()):
            present = there & (spans[:, 0] <= instant) & (instant < spans[:, 1])
            counted += weights[place] / max(full, int(weights[present].sum()))
        assert abs(held[place] - counted) < 1e-9
