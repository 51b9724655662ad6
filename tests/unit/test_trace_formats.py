"""Trace files: round trips, and everything that a damaged or foreign file says."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cusim.errors import InputError
from cusim.trace.formats import floored, read_trace, write_trace
from cusim.trace.trace import EVENT_COLUMNS, NONE, TILE_COLUMNS, WAIT_COLUMNS, Trace, column_table

FORMATS = (".npz", ".csv")


@pytest.fixture
def fan_in() -> Trace:
    """Three kernels, the third reading both others, with grids of 4x2, 2x2 and 1x2 tiles of unequal height."""
    rows, waits = [], []
    for kernel, (height, start) in enumerate(((4, 0), (2, 0), (1, 61_500))):
        for ticket in range(height * 2):
            begin = start + 1_234 * ticket
            wait = 3_999 if kernel == 2 else 0
            end = begin + 500 + wait + 20_001
            posted = end + 77 if kernel < 2 else NONE
            place = (kernel, ticket // 2, ticket % 2, 0, ticket, 0, ticket, ticket + 8 * kernel, 0)
            rows.append((*place, begin, begin + 500, begin + 500 + wait, end, posted, wait))
            waits += [(len(rows) - 1, begin + 500, begin + 500 + wait, kernel - 2, 0)] if wait else []
    events = [(0, 0, 1_500, 1_900, 40_000), (1, 10, 1_501, 1_999, 30_000), (2, NONE, 60_001, 60_777, 90_000)]
    return Trace(
        ("a", "b, with #1", 'c "both"'),
        column_table(rows, TILE_COLUMNS),
        column_table(events, EVENT_COLUMNS),
        column_table(waits, WAIT_COLUMNS),
        ("a>c", "b>c"),
        {"kind": "predicted", "total_ps": 99_999, "machine": {"name": "h200", "sms": 132}, "samples": [1, 2.5]},
    )


@pytest.mark.parametrize("suffix", FORMATS)
def test_round_trip_floors_to_whole_nanoseconds(fan_in: Trace, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t{suffix}"
    write_trace(fan_in, path)
    back = read_trace(path)
    assert back == floored(fan_in)
    assert back != fan_in
    assert back.tiles["end"].tolist() == [end // 1000 * 1000 for end in fan_in.tiles["end"].tolist()]
    assert back.tiles["posted"].tolist()[-1] == NONE
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", FORMATS)
def test_same_trace_same_bytes(fan_in: Trace, tmp_path: Path, suffix: str) -> None:
    one, other = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    write_trace(fan_in, one)
    write_trace(fan_in, other)
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("suffix", FORMATS)
def test_cut_off_anywhere_is_refused(fan_in: Trace, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t{suffix}"
    write_trace(fan_in, path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"t\.(npz|csv)"):
            read_trace(path)


def test_csv_is_what_a_reader_of_tables_expects(fan_in: Trace, tmp_path: Path) -> None:
    write_trace(fan_in, tmp_path / "t.csv")
    comment, _, table = (tmp_path / "t.csv").read_text(encoding="utf-8").partition("\n")
    assert comment.startswith("# cusim.trace/1 {")
    assert json.loads(comment.removeprefix("# cusim.trace/1 "))["meta"]["total_ps"] == 99_999
    rows = list(csv.DictReader(io.StringIO(table)))
    assert len(rows) == fan_in.blocks
    assert [rows[0]["name"], rows[8]["name"]] == ["a", "b, with #1"]
    assert rows[1]["placed_ns"] == "1"


def change_npz(path: Path, **changes: np.ndarray | None) -> None:
    with np.load(path) as archive:
        arrays = {**archive}
    for key, value in changes.items():
        arrays.pop(key, None)
        if value is not None:
            arrays[key] = value
    np.savez(path, **arrays)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("schema", np.array("cusim.trace/9"), 'schema = "cusim.trace/9"'),
        ("schema", None, "not a file of cusim.trace/1"),
        ("header", np.array("{"), "header.*is not JSON"),
        ("header", np.array(["a", "b"]), "must be a single text"),
        ("tiles.end_ns", np.full(14, np.nan), "tiles.end_ns.*with NaN.*must be a vector of int64"),
        ("tiles.end_ns", np.zeros(14, np.int32), "tiles.end_ns.*int32.*must be a vector of int64"),
        ("tiles.end_ns", None, "tiles.end_ns.*is missing"),
        ("tiles.end", np.zeros(14, np.int64), "tiles.end .*did you mean tiles.end_ns"),
        ("tiles.end_ns", np.zeros(14, np.int64), r"tiles.end_ns\[.*must not precede first_load_ns"),
        ("tiles.end_ns", np.full(14, 2**62), "must be at most"),
        ("waits.end_ns", np.zeros(2, np.int64), r"waits.end_ns\[.*must not precede begin_ns"),
        ("tiles.sm", np.zeros(3, np.int64), "all columns must have one length"),
        ("tiles.kernel", np.full(14, 3), "must index the 3 kernels"),
        ("tiles.sm", np.array([{}] * 14, dtype=object), "pickled objects"),
    ],
)
def test_wrong_npz_names_file_key_and_what_is_allowed(
    fan_in: Trace, tmp_path: Path, key: str, value: np.ndarray | None, says: str
) -> None:
    path = tmp_path / "t.npz"
    write_trace(fan_in, path)
    change_npz(path, **{key: value})
    with pytest.raises(InputError, match=says) as caught:
        read_trace(path)
    assert caught.value.source == str(path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: text.replace("cusim.trace/1", "cusim.trace/2", 1), "line 1"),
        (lambda text: text.replace('"cusim.trace/1"', '"cusim.trace/2"', 1), "schema"),
        (lambda text: text.replace('"rows": 14', '"rows": 15'), "rows = 14.*that the header counts"),
        (lambda text: text.replace(",end_ns,", ",end,"), "line 2"),
        (lambda text: text.replace('"a",0,0,0,0,0', '"a",0,0,0,0,nan', 1), r'ticket\[0\] = "nan"'),
        (lambda text: text.replace('"a",0,0,0,0,0', '"a",0,0,0,0,0.5', 1), "must be a whole number"),
        (lambda text: text.replace('"a",0,0,0,0,0', '"z",0,0,0,0,0', 1), 'must be "a", as kernel 0 is named'),
        (lambda text: text.replace('"a",0,0,0,0,0', '"a",0,0,0,0', 1), "must have 16 fields"),
        (lambda text: text.replace('"meta"', '"mata"', 1), "mata .*did you mean meta"),
        (lambda text: text.replace('"kernels": ["a"', '"kernels": [7', 1), "must be a list of names"),
        (lambda text: text.replace('"tile": [12', '"tile": [true', 1), "must be a list of whole numbers"),
        (lambda text: "name,end\n1,2\n", "must begin with"),
    ],
)
def test_wrong_csv_names_file_key_and_what_is_allowed(
    fan_in: Trace, tmp_path: Path, change: Callable[[str], str], says: str
) -> None:
    path = tmp_path / "t.csv"
    write_trace(fan_in, path)
    before = path.read_text(encoding="utf-8")
    after = change(before)
    assert after != before
    path.write_text(after, encoding="utf-8")
    with pytest.raises(InputError, match=says) as caught:
        read_trace(path)
    assert caught.value.source == str(path)


@pytest.mark.parametrize("suffix", FORMATS)
def test_absent_and_foreign_files(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t{suffix}"
    with pytest.raises(InputError, match=path.name):
        read_trace(path)
    np.save(tmp_path / "array.npy", np.arange(3))
    for foreign in ((tmp_path / "array.npy").read_bytes(), b"\x80\x04K\x01.", b"\xff\xfe\x00junk", b""):
        path.write_bytes(foreign)
        with pytest.raises(InputError, match=path.name):
            read_trace(path)


def test_unknown_suffix_says_which_are_known(fan_in: Trace, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"allowed: \.csv \.npz"):
        write_trace(fan_in, tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"did you mean \.npz"):
        read_trace(tmp_path / "t.npy")


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_failed_write_leaves_the_old_file(fan_in: Trace, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t{suffix}"
    write_trace(fan_in, path)
    before = path.read_bytes()
    odd = Trace(fan_in.kernels, fan_in.tiles, fan_in.events, fan_in.waits, fan_in.dependences, {"x": {"y": object()}})
    with pytest.raises(InputError, match=r"meta\.x\.y = \"object\""):
        write_trace(odd, path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    with pytest.raises(InputError, match="cannot be written"):
        write_trace(fan_in, tmp_path / "absent" / path.name)


def test_numpy_values_in_meta_become_plain(fan_in: Trace, tmp_path: Path) -> None:
    meta = {"count": np.int64(3), "pair": (1, 2)}
    odd = Trace(fan_in.kernels, fan_in.tiles, fan_in.events, fan_in.waits, fan_in.dependences, meta)
    write_trace(odd, tmp_path / "t.npz")
    assert dict(read_trace(tmp_path / "t.npz").meta) == {"count": 3, "pair": [1, 2]}


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no /dev/full here")
@pytest.mark.parametrize("suffix", ["npz", "csv"])
def test_a_trace_sent_to_a_device_does_not_replace_it(fan_in: Trace, tmp_path: Path, suffix: str) -> None:
    place = tmp_path / f"full.{suffix}"
    place.symlink_to("/dev/full")
    with pytest.raises(InputError, match="No space left on device"):
        write_trace(fan_in, place)
    assert place.is_char_device()
