"""Export to Chrome-trace JSON: what stands where, that it is exact, small in memory, and whole or absent."""

import errno
import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest

import cusim
from cusim.errors import InputError
from cusim.report.semaphores import posted_semaphores
from cusim.trace.formats import chrome, floored, read_trace, write_trace
from cusim.trace.formats.chrome import write_chrome
from cusim.trace.formats.chrome_check import check_chrome
from cusim.trace.posters import posters
from cusim.trace.trace import EVENT_COLUMNS, NONE, TILE_COLUMNS, WAIT_COLUMNS, Trace, column_table

Events = list[dict[str, Any]]


def small(*, lanes: tuple[int, ...] = (0, 1, 0), posted: tuple[int, ...] = (5_000_400, 9_000_000, NONE)) -> Trace:
    """Blocks of "a" in two slots of SM 17; one of "b" follows in the first and waits for both."""
    tiles = [
        (0, 0, 0, 0, 0, 0, 0, 17, lanes[0], 0, 100, 100, 5_000_000, posted[0], 0),
        (0, 0, 1, 0, 1, 0, 1, 17, lanes[1], 1_000, 1_100, 1_100, 8_000_000, posted[1], 0),
        (1, 0, 0, 0, 0, 0, 0, 17, lanes[2], 5_001_000, 5_001_000, 9_500_999, 20_000_000, posted[2], 4_000_999),
    ]
    events = [(0, NONE, 0, 0, 9_000_000), (1, NONE, 0, 5_001_000, 20_000_000)]
    waits = [(2, 5_500_000, 9_500_999, 0, 0)]
    meta = {"kind": "predicted", "machine": "h200", "machine_digest": "abc", "posts": {'a "x">b': ["r"]}}
    return Trace(
        ('a "x"', "b"),
        column_table(tiles, TILE_COLUMNS),
        column_table(events, EVENT_COLUMNS),
        column_table(waits, WAIT_COLUMNS),
        ('a "x">b',),
        meta,
    )


@pytest.fixture(scope="module", params=["row", "tile", "split"])
def predicted(request: pytest.FixtureRequest) -> Trace:
    split = request.param == "split"
    workload = cusim.build_workload("gpt3-mlp", "h200", m=256, split_k="2" if split else None)
    plan = cusim.build_plan(workload.program, policy="row" if split else request.param)
    return cusim.predict(workload.program, cusim.load_machine("h200"), plan).trace


def load(path: Path) -> dict[str, Any]:
    raw = path.read_bytes()
    found: dict[str, Any] = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    return found


def spans(events: Events, category: str) -> Events:
    return [event for event in events if event["ph"] == "X" and event["cat"] == category]


def ns(micros: float) -> int:
    return round(micros * 1000)


def exported(trace: Trace, path: Path, **how: Any) -> Events:
    write_chrome(trace, path, semaphores=posted_semaphores(trace), **how)
    check_chrome(path)
    events: Events = load(path)["traceEvents"]
    return events


def test_spans_say_who_ran_where_and_when(tmp_path: Path) -> None:
    events = exported(small(), tmp_path / "t.json")
    first, second, third = spans(events, "tile")
    assert [span["name"] for span in (first, second, third)] == ['a "x" (0, 0)', 'a "x" (0, 1)', "b (0, 0)"]
    assert first["tid"] == third["tid"] != second["tid"]
    assert first["pid"] == second["pid"]
    assert [(ns(span["ts"]), ns(span["dur"])) for span in (first, third)] == [(0, 5000), (5001, 14_999)]
    assert first["args"] == {
        "ticket": 0, "ready_ns": 0, "first_load_ns": 0, "posted_ns": 5000, "wait_total_ns": 0
    }  # fmt: skip
    assert third["args"]["posted_ns"] is None
    assert third["args"]["wait_total_ns"] == 4000
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert names[first["pid"], first["tid"]] == "SM 17 slot 0"
    groups = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert groups[first["pid"]] == "SM 16 to 31"


def test_a_wait_stands_in_its_block_and_an_arrow_ends_at_it(tmp_path: Path) -> None:
    events = exported(small(), tmp_path / "t.json")
    (wait,) = spans(events, "wait")
    _, producer, consumer = spans(events, "tile")
    assert wait["tid"] == consumer["tid"]
    assert (ns(wait["ts"]), ns(wait["dur"])) == (5500, 4000)
    (start,), (end,) = ([e for e in events if e["ph"] == phase] for phase in "sf")
    assert start["id"] == end["id"]
    assert (start["tid"], ns(start["ts"])) == (producer["tid"], 8999)
    assert (end["tid"], ns(end["ts"]), end["bp"]) == (wait["tid"], 9499, "e")


def test_counters_follow_the_blocks(tmp_path: Path) -> None:
    events = exported(small(), tmp_path / "t.json")
    values = {
        name: [(ns(e["ts"]), *e["args"].values()) for e in events if e["ph"] == "C" and e["name"] == name]
        for name in ("working SMs", "waiting tiles")
    }
    # The second block holds the SM until 9000; then the third waits alone until 9500.
    assert values["working SMs"] == [(0, 1), (9000, 0), (9500, 1), (20_000, 0)]
    assert values["waiting tiles"] == [(5500, 1), (9500, 0)]


def test_other_data_says_where_the_trace_comes_from(tmp_path: Path) -> None:
    write_chrome(small(), tmp_path / "t.json", sample=2)
    document = load(tmp_path / "t.json")
    facts = document["otherData"]
    assert document["displayTimeUnit"] == "ns"
    assert (facts["schema"], facts["trace_schema"]) == ("cusim.chrome/1", "cusim.trace/1")
    assert (facts["kind"], facts["machine_digest"]) == ("predicted", "abc")
    assert (facts["blocks"], facts["blocks_exported"], facts["sample"]) == (3, 2, 2)


@pytest.mark.parametrize("lanes", [(-1, -1, -1), (0, 0, 0)], ids=["unknown", "overlapping"])
def test_blocks_never_overlap_on_a_thread(tmp_path: Path, lanes: tuple[int, ...]) -> None:
    events = exported(small(lanes=lanes), tmp_path / "t.json")
    first, second, third = spans(events, "tile")
    assert first["tid"] == third["tid"] != second["tid"]


def test_predictions_pass_the_check_whole(predicted: Trace, tmp_path: Path) -> None:
    done = write_chrome(predicted, tmp_path / "t.json.gz", semaphores=posted_semaphores(predicted))
    found = check_chrome(tmp_path / "t.json.gz")
    waits = len(predicted.waits["tile"])
    assert (done.blocks, done.waits, done.arrows) == (predicted.blocks, waits, waits)
    assert found.spans == {"tile": predicted.blocks, "wait": waits, "kernel": 2}
    assert found.arrows == waits > 0


def test_an_arrow_starts_at_a_tile_that_the_wait_was_for(predicted: Trace) -> None:
    tiles, waits = predicted.tiles, predicted.waits
    source = posters(predicted, posted_semaphores(predicted))
    assert (source != NONE).all()
    for wait, row in enumerate(source.tolist()):
        consumer = int(waits["tile"][wait])
        if waits["dependence"][wait] == NONE:
            assert tiles["kernel"][row] == tiles["kernel"][consumer]
            assert tiles["z"][row] == tiles["z"][consumer] - 1
        else:
            assert tiles["kernel"][row] == 0
            # GEMM after GEMM, equal tile heights: a consumer reads the producer's row of its own number.
            assert tiles["r"][row] == tiles["r"][consumer]
        assert tiles["posted"][row] <= waits["end"][wait]
    assert len(source)


def test_without_the_policy_the_last_post_of_the_kernel_counts() -> None:
    trace = small(posted=(5_000_400, 9_600_000, NONE))
    assert posters(trace).tolist() == [0]  # the other posts after the wait's end
    assert posters(small()).tolist() == [1]
    assert posters(small(posted=(NONE, 9_600_000, NONE))).tolist() == [NONE]


def test_posts_that_cannot_be_read_are_left_out() -> None:
    trace = small()
    for posts in (None, [], {'a "x">b': "r"}, {'a "x">b': ["r +"]}, {'a "x">b': ["table(1)[c]"]}, {"z>b": ["r"]}):
        meta = {**trace.meta, "posts": posts}
        odd = Trace(trace.kernels, trace.tiles, trace.events, trace.waits, trace.dependences, meta)
        assert posted_semaphores(odd) == {}


def test_a_file_of_the_trace_gives_the_same_bytes(predicted: Trace, tmp_path: Path) -> None:
    write_trace(predicted, tmp_path / "t.npz")
    back = read_trace(tmp_path / "t.npz")
    for suffix in (".json", ".json.gz"):
        one, other = tmp_path / f"one{suffix}", tmp_path / f"other{suffix}"
        write_chrome(floored(predicted), one)
        write_chrome(back, other)
        assert one.read_bytes() == other.read_bytes()
    assert load(tmp_path / "one.json") == load(tmp_path / "one.json.gz")
    assert (tmp_path / "one.json.gz").read_bytes()[4:8] == b"\0\0\0\0"


def test_a_window_keeps_blocks_that_run_in_it(predicted: Trace, tmp_path: Path) -> None:
    spans_us = predicted.tiles["placed"] / 1e6, predicted.tiles["end"] / 1e6
    start, stop = (int(np.quantile(np.concatenate(spans_us), part) * 1000) for part in (0.4, 0.5))
    events = exported(predicted, tmp_path / "t.json", window_ns=(start, stop))
    shown = spans(events, "tile")
    assert 0 < len(shown) < predicted.blocks
    assert all(ns(e["ts"]) < stop and ns(e["ts"] + e["dur"]) >= start for e in shown)
    assert {ns(e["ts"]) for e in events if e["ph"] == "C"} <= set(range(start, stop))


@pytest.mark.parametrize(("sample", "kept"), [(1, 1), (2, 2), (99, 3), (0.5, 2), (1.0, 3), (0.01, 1)])
def test_a_sample_keeps_that_many(tmp_path: Path, sample: float, kept: int) -> None:
    assert len(spans(exported(small(), tmp_path / "t.json", sample=sample), "tile")) == kept


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"window_ns": (20_001, 30_000)}, "lies outside the trace, whose blocks run from 0.000 to 20.000 us"),
        ({"window_ns": (7, 7)}, "must be A:B with A < B"),
        ({"sample": 0}, "allowed: a number of blocks"),
        ({"sample": -3}, "allowed: a number of blocks"),
        ({"sample": 1.5}, "allowed: a number of blocks"),
        ({"sample": float("nan")}, "allowed: a number of blocks"),
        ({"sample": True}, "allowed: a number of blocks"),
    ],
)
def test_what_cannot_be_exported_leaves_no_file(tmp_path: Path, how: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        write_chrome(small(), tmp_path / "t.json", **how)
    assert not list(tmp_path.iterdir())


class FullDisk:
    """A file that takes the first bytes and then has no room."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.left = 300

    def write(self, data: bytes) -> int:
        self.left -= len(data)
        if self.left < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return self.file.write(data)

    def flush(self) -> None:
        self.file.flush()


@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    path = tmp_path / f"t{suffix}"
    path.write_bytes(b"old")
    real = chrome.write_whole

    def write_whole(target: Path, write: Any) -> None:
        real(target, lambda file: write(FullDisk(file)))

    monkeypatch.setattr(chrome, "write_whole", write_whole)
    with pytest.raises(InputError, match="No space left on device"):
        write_chrome(small(), path)
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no /dev/full here")
def test_a_device_is_written_not_replaced() -> None:
    with pytest.raises(InputError, match="No space left on device"):
        write_chrome(small(), Path("/dev/full"))
    assert Path("/dev/full").is_char_device()


def many(blocks: int) -> Trace:
    """*blocks* blocks of one kernel, round after round on 256 slots."""
    number = np.arange(blocks, dtype=np.int64)
    begin = number // 256 * 1_000_000 + number % 256
    columns = {name: np.zeros(blocks, dtype=np.int64) for name in TILE_COLUMNS}
    columns |= {"r": number, "ticket": number, "sm": number % 256, "placed": begin, "ready": begin}
    columns |= {"first_load": begin, "end": begin + 900_000, "posted": begin + 900_001}
    events = column_table([(0, NONE, 0, 0, int(begin[-1]) + 1_000_000)], EVENT_COLUMNS)
    return Trace(("k",), columns, events, column_table([], WAIT_COLUMNS))


def test_events_are_never_all_in_memory(tmp_path: Path) -> None:
    blocks = 20_000
    trace = many(blocks)
    tracemalloc.start()
    try:
        write_chrome(trace, tmp_path / "t.json")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    written = (tmp_path / "t.json").stat().st_size
    assert written > blocks * 180
    assert peak < blocks * 300  # arrays of numbers; the text alone would take more


def test_a_trace_of_nothing(tmp_path: Path) -> None:
    empty = Trace((), *(column_table([], columns) for columns in (TILE_COLUMNS, EVENT_COLUMNS, WAIT_COLUMNS)))
    assert exported(empty, tmp_path / "t.json") != []
    assert check_chrome(tmp_path / "t.json").spans == {}
    with pytest.raises(InputError, match="holds no block"):
        write_chrome(empty, tmp_path / "u.json", window_ns=(0, 1))


def test_a_kernel_whose_end_was_not_seen_ends_with_its_last_block(tmp_path: Path) -> None:
    trace = small()
    events = {name: column.copy() for name, column in trace.events.items()}
    events["done"][1] = NONE
    odd = Trace(trace.kernels, trace.tiles, events, trace.waits, trace.dependences, trace.meta)
    _, last = spans(exported(odd, tmp_path / "t.json"), "kernel")
    assert ns(last["ts"] + last["dur"]) == 20_000
