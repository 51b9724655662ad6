"""Metrics against traces that can be worked out by hand."""

import pytest

from cusim.errors import InputError
from cusim.trace.metrics import MachineShape, metrics, round_ends, tails
from cusim.trace.trace import EVENT_COLUMNS, NONE, TILE_COLUMNS, WAIT_COLUMNS, Trace, column_table


def block(
    kernel: int, sm: int, placed: int, end: int, *, wait: int = 0, posted: int = NONE, epoch: int = 0
) -> tuple[int, ...]:
    return (kernel, 0, 0, 0, 0, epoch, 0, sm, 0, placed, placed, placed + wait, end, posted, wait)


def trace(*blocks: tuple[int, ...], kernels: tuple[str, ...] = ("a", "b")) -> Trace:
    rows = column_table(list(blocks), TILE_COLUMNS)
    return Trace(kernels, rows, column_table([], EVENT_COLUMNS), column_table([], WAIT_COLUMNS))


def shape(sms: int = 4, a: int = 1, b: int = 1, warps: int = 8) -> MachineShape:
    return MachineShape(sms, 16, {"a": a, "b": b}, {"a": warps, "b": warps})


def fig_1(stream: bool) -> Trace:
    """cuSync Fig. 1: two kernels of six tiles on four SMs, a tile 100 ps long."""
    if stream:
        starts = [0, 0, 0, 0, 100, 100, 200, 200, 200, 200, 300, 300]
        sms = [0, 1, 2, 3, 0, 1, 0, 1, 2, 3, 0, 1]
    else:
        starts = [0, 0, 0, 0, 100, 100, 100, 100, 200, 200, 200, 200]
        sms = [0, 1, 2, 3] * 3
    return trace(*(block(place // 6, sms[place], starts[place], starts[place] + 100) for place in range(12)))


def test_fig_1_has_four_rounds_in_stream_order_and_three_with_tiles() -> None:
    assert round_ends(fig_1(stream=True), shape()) == (100, 200, 300, 400)
    assert round_ends(fig_1(stream=False), shape()) == (100, 200, 300)


def test_fig_1_utilisation() -> None:
    stream, tile = metrics(fig_1(stream=True), shape()), metrics(fig_1(stream=False), shape())
    assert (stream.working_pct, stream.waiting_pct, stream.empty_pct) == (75.0, 0.0, 25.0)
    assert (tile.working_pct, tile.empty_pct) == (100.0, 0.0)
    assert stream.sms_in_use == 3.0
    assert [kernel.waves for kernel in stream.kernels] == [1.5, 1.5]
    assert (stream.kernels[1].start_ps, stream.kernels[1].end_ps) == (200, 400)


def test_waiting_is_no_use() -> None:
    found = metrics(trace(block(0, 0, 0, 100), block(1, 1, 0, 100, wait=60)), shape(sms=2))
    assert (found.working_pct, found.waiting_pct, found.empty_pct) == (70.0, 30.0, 0.0)


def test_a_block_is_resident_until_it_has_posted() -> None:
    late = metrics(trace(block(0, 0, 0, 80, posted=100), block(0, 1, 0, 50, posted=20)), shape(sms=2))
    assert late.span_ps == 100
    assert late.working_pct == 75.0


def test_a_block_weighs_one_over_those_that_fit() -> None:
    found = metrics(trace(block(0, 0, 0, 100)), shape(sms=1, a=4))
    assert found.working_pct == 25.0
    assert found.achieved_occupancy == 0.5
    assert found.sms_in_use == 1.0


def test_an_sm_is_never_more_than_full() -> None:
    # Together 1 + 1/2 of the SM: while both are there, each holds two thirds of what it asks for.
    found = metrics(trace(block(0, 0, 0, 100), block(1, 0, 0, 100, wait=100)), shape(sms=1, a=1, b=2))
    assert found.working_pct == pytest.approx(200 / 3)
    assert found.waiting_pct == pytest.approx(100 / 3)
    assert found.empty_pct == pytest.approx(0, abs=1e-9)


def test_occupancy_counts_warps() -> None:
    found = metrics(trace(block(0, 0, 0, 100), block(0, 1, 0, 50)), shape(sms=2, warps=16))
    assert found.achieved_occupancy == 0.75


def test_waves_are_of_one_epoch() -> None:
    found = metrics(trace(*(block(0, 0, 10 * n, 10 * n + 5, epoch=n) for n in range(3))), shape(sms=2))
    assert (found.kernels[0].tiles, found.kernels[0].waves) == (1, 0.5)


def test_a_kernel_that_never_ran_has_no_times() -> None:
    found = metrics(trace(block(0, 0, 0, 10)), shape()).kernels[1]
    assert (found.tiles, found.waves, found.start_ps, found.end_ps) == (0, 0.0, None, None)


def test_an_empty_trace_is_empty() -> None:
    found = metrics(trace(), shape())
    assert (found.empty_pct, found.span_ps, found.achieved_occupancy) == (100.0, 0, 0.0)
    assert tails(trace()) == round_ends(trace(), shape()) == ()
    assert metrics(trace(block(0, 0, 7, 7)), shape()).empty_pct == 100.0


def test_tails_run_from_the_last_placement_to_the_last_leave() -> None:
    found = tails(fig_1(stream=True))
    assert [(tail.kernel, tail.begin_ps, tail.end_ps) for tail in found] == [("a", 100, 200), ("b", 300, 400)]


def test_rounds_count_slots_not_sms() -> None:
    crowd = trace(*(block(0, n % 2, 0 if n < 4 else 100, 100 if n < 4 else 200) for n in range(8)))
    assert round_ends(crowd, shape(sms=2, a=2)) == (100, 200)
    assert round_ends(crowd, shape(sms=2, a=4)) == (200,)


def test_a_shape_that_does_not_fit_is_refused_with_all_reasons() -> None:
    with pytest.raises(InputError) as caught:
        metrics(fig_1(stream=True), MachineShape(3, 0, {"a": 0}, {"a": 1, "b": 1}))
    assert [problem.key for problem in caught.value.problems] == [
        "warps_per_sm",
        "sms",
        "blocks_per_sm.a",
        "blocks_per_sm.b",
    ]
