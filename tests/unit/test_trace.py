"""Traces refuse what could not have happened, and are equal when they say the same."""

import dataclasses

import numpy as np
import pytest

from cusim.errors import InputError
from cusim.trace.trace import EVENT_COLUMNS, NONE, TILE_COLUMNS, WAIT_COLUMNS, Trace, column_table


def row(kernel: int = 0, sm: int = 0, placed: int = 0, ready: int = 1, end: int = 10, posted: int = 12) -> tuple:
    return (kernel, 0, 0, 0, 0, 0, 0, sm, 0, placed, ready, ready, end, posted, 0)


def trace(rows: list[tuple], waits: tuple = (), kernels: tuple[str, ...] = ("up", "down")) -> Trace:
    return Trace(
        kernels,
        column_table(rows, TILE_COLUMNS),
        column_table([], EVENT_COLUMNS),
        column_table(list(waits), WAIT_COLUMNS),
        ("up>down",),
    )


def test_span_is_first_start_to_the_last_end_or_post() -> None:
    assert trace([row(placed=5, ready=6), row(placed=3, ready=4, end=40, posted=90)]).span_ps == 87
    assert trace([row(placed=5, ready=6), row(placed=3, ready=4, end=40, posted=-1)]).span_ps == 37
    assert trace([]).span_ps == 0


def test_equal_when_everything_is() -> None:
    one, other = trace([row()]), trace([row()])
    assert one == other
    assert one != trace([row(end=11)])
    assert one != dataclasses.replace(other, meta={"kind": "measured"})
    assert one != "trace"


@pytest.mark.parametrize(
    ("rows", "waits", "says"),
    [
        ([row(ready=20)], (), "must not precede first_load"),
        ([row(placed=-5)], (), "times count from the run's start"),
        ([row(posted=-2)], (), "or -1 for none"),
        ([row(kernel=2)], (), "must index the 2 kernels"),
        ([row()], ((1, 0, 1, 0, 0),), "must index the 1 tiles"),
        ([row()], ((0, 5, 4, 0, 0),), "must not precede begin"),
        ([row()], ((0, 4, 5, 1, 0),), "must index the 1 dependences"),
    ],
)
def test_what_cannot_be_is_refused(rows: list[tuple], waits: tuple, says: str) -> None:
    with pytest.raises(InputError, match=says):
        trace(rows, waits)


def test_none_is_allowed_where_nothing_happened() -> None:
    kept = trace([row(posted=NONE)], ((0, 4, 5, NONE, NONE),))
    assert kept.tiles["posted"].tolist() == [NONE]


def test_all_mistakes_come_at_once() -> None:
    with pytest.raises(InputError) as caught:
        trace([row(ready=20), row(kernel=9)], ((7, 0, 1, 0, 0),))
    assert len(caught.value.problems) == 3


def test_columns_must_be_all_there_int64_and_even() -> None:
    good = trace([row()])
    short = {name: column for name, column in good.tiles.items() if name != "sm"}
    for tiles, says in (
        (short, "columns must be exactly"),
        ({**good.tiles, "sm": np.zeros(1, np.int32)}, "vector of int64"),
        ({**good.tiles, "end": np.zeros(1)}, "vector of int64"),
        ({**good.tiles, "sm": np.zeros(2, np.int64)}, "one length"),
    ):
        with pytest.raises(InputError, match=says):
            dataclasses.replace(good, tiles=tiles)
