"""Whatever a trace holds, a file gives it back floored to whole nanoseconds; whatever a file holds, no traceback."""

import contextlib
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cusim.errors import InputError
from cusim.trace.bounds import RANGES
from cusim.trace.formats import floored, read_trace, write_trace
from cusim.trace.trace import EVENT_COLUMNS, NONE, TILE_COLUMNS, WAIT_COLUMNS, Trace, column_table

TIMES = st.integers(0, 2**62 - 2**10)
WHOLE = st.integers(-(2**63) + 1, 2**63 - 1)
PLACES = st.tuples(*(st.integers(*RANGES[name]) for name in TILE_COLUMNS if name in RANGES))
OPTIONAL = st.one_of(st.just(NONE), TIMES)
LEAVES = st.one_of(
    st.none(), st.booleans(), WHOLE, st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=9)
)
META = st.dictionaries(st.text(max_size=9), st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3)), max_size=4)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    kernels = tuple(draw(st.lists(st.text(max_size=6), min_size=1, max_size=3)))
    kernel = st.integers(0, len(kernels) - 1)
    rows = []
    for _ in range(draw(st.integers(0, 5))):
        life = sorted(draw(st.lists(TIMES, min_size=4, max_size=4)))
        rows.append((draw(kernel), *draw(PLACES), *life, draw(OPTIONAL), draw(TIMES)))
    waits = []
    for _ in range(draw(st.integers(0, 3)) if rows else 0):
        begin, end = sorted((draw(TIMES), draw(TIMES)))
        waits.append(
            (
                draw(st.integers(0, len(rows) - 1)),
                begin,
                end,
                draw(st.integers(NONE, 0)),
                draw(st.integers(*RANGES["semaphore"])),
            )
        )
    events = [(draw(kernel), *(draw(OPTIONAL) for _ in range(4))) for _ in range(draw(st.integers(0, 2)))]
    return Trace(
        kernels,
        column_table(rows, TILE_COLUMNS),
        column_table(events, EVENT_COLUMNS),
        column_table(waits, WAIT_COLUMNS),
        ("a>b",),
        draw(META),
    )


@pytest.mark.parametrize("suffix", [".npz", ".csv"])
@given(trace=traces())
def test_a_round_trip_only_floors(suffix: str, trace: Trace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"t{suffix}"
        write_trace(trace, path)
        back = read_trace(path)
        assert back == floored(trace)
        assert floored(back) == back


@pytest.mark.parametrize("suffix", [".npz", ".csv"])
@given(trace=traces(), data=st.data())
def test_a_damaged_file_is_read_or_refused(suffix: str, trace: Trace, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"t{suffix}"
        write_trace(trace, path)
        raw = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 4))):
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
        path.write_bytes(bytes(raw))
        # Any other exception than InputError is the traceback that nobody should see.
        with contextlib.suppress(InputError):
            assert read_trace(path).tables
