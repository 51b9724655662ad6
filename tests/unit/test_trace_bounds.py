"""Values that no GPU has are refused when a trace is read, by file and column, before anything is drawn or summed."""

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cusim.errors import InputError
from cusim.report.trace import shape_in
from cusim.trace.bounds import MOST_NS
from cusim.trace.formats import npz, read_trace, write_trace
from cusim.trace.metrics import MachineShape, metrics, round_ends
from cusim.trace.trace import EVENT_COLUMNS, NONE, TILE_COLUMNS, WAIT_COLUMNS, Trace, column_table

FIRST = (0, 1, 1, 0, 0, 0, 0, 3, 0, 1000, 2000, 3000, 9000, NONE, 1000)


def small(meta: dict[str, Any] | None = None, kernels: int = 1) -> Trace:
    """A block for each kernel on SM 3, and one wait."""
    return Trace(
        tuple(f"k{number}" for number in range(kernels)),
        column_table([(number, *FIRST[1:]) for number in range(kernels)], TILE_COLUMNS),
        column_table([(0, 0, 0, 1000, 9000)], EVENT_COLUMNS),
        column_table([(0, 2000, 3000, 0, 0)], WAIT_COLUMNS),
        ("a>b",),
        meta or {},
    )


def changed(folder: Path, key: str, value: int) -> Path:
    """The file of a trace of which the first value of a column is exchanged."""
    path = folder / "t.npz"
    write_trace(small(), path)
    with np.load(path) as archive:
        arrays = {**archive}
    arrays[key] = arrays[key].copy()
    arrays[key][0] = value
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("tiles.lane", 2**63 - 1, "at most 4095"),
        ("tiles.lane", 2**62, "at most 4095"),
        ("tiles.lane", -2, "-1 or more"),
        ("tiles.sm", 4096, "at most 4095"),
        ("tiles.sm", -1, "0 or more"),
        ("tiles.epoch", 2**32, "at most 4294967295"),
        ("tiles.block", 2**31, "at most 2147483647"),
        ("tiles.ticket", 2**31, "at most 2147483647"),
        ("tiles.r", -1, "0 or more"),
        ("tiles.z", 2**31, "at most 2147483647"),
        ("tiles.wait_total_ns", MOST_NS + 1, f"at most {MOST_NS}"),
        ("waits.semaphore", 2**31, "at most 2147483647"),
        ("events.enqueue_ns", -MOST_NS - 1, f"-{MOST_NS} or more"),
    ],
)
def test_a_value_out_of_range_is_named(tmp_path: Path, key: str, value: int, why: str) -> None:
    path = changed(tmp_path, key, value)
    with pytest.raises(InputError) as caught:
        read_trace(path)
    (problem,) = caught.value.problems
    assert (caught.value.source, problem.key, problem.given) == (str(path), f"{key}[0]", value)
    assert problem.why.endswith(why)


@pytest.mark.parametrize("key", ["tiles.sm", "tiles.lane"])
def test_the_largest_values_are_read(tmp_path: Path, key: str) -> None:
    assert read_trace(changed(tmp_path, key, 4095)).tiles[key.partition(".")[2]].tolist() == [4095]


@pytest.mark.parametrize(
    ("meta", "key", "why"),
    [
        ('{"clock_hz": 1e400}', "meta.clock_hz", "finite"),
        ('{"spread": [1, {"x": NaN}]}', "meta.spread[1].x", "finite"),
        ('{"total_ns": 99999999999999999999999}', "meta.total_ns", "at most"),
        ('{"sms": 1000000}', "meta.sms", "at most 4096"),
        ('{"blocks_per_sm": {"k0": 99999999999999999999999}}', "meta.blocks_per_sm.k0", "at most 1024"),
        ('{"warps_per_sm": 1025}', "meta.warps_per_sm", "at most 1024"),
    ],
)
def test_numbers_of_the_meta_are_bounded(tmp_path: Path, meta: str, key: str, why: str) -> None:
    path = tmp_path / "t.csv"
    write_trace(small({"x": 0}), path)
    path.write_text(path.read_text().replace('{"x": 0}', meta))
    with pytest.raises(InputError) as caught:
        read_trace(path)
    assert caught.value.source == str(path)
    assert [problem.key for problem in caught.value.problems] == [key]
    assert why in caught.value.problems[0].why


def test_an_archive_that_unpacks_to_too_much_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.npz"
    write_trace(small({"zeros": "0" * 10**6}), path)
    with zipfile.ZipFile(path) as archive:
        unpacked = sum(entry.file_size for entry in archive.infolist())
    monkeypatch.setattr(npz, "MOST_DATA_BYTES", unpacked)
    assert read_trace(path).blocks == 1
    monkeypatch.setattr(npz, "MOST_DATA_BYTES", unpacked - 1)
    with pytest.raises(InputError, match=f"holds {unpacked} bytes once unpacked"):
        read_trace(path)


def test_a_shape_that_does_not_fit_names_the_file() -> None:
    trace = small({"sms": 4, "blocks_per_sm": {"k0": 1}, "warps_per_block": {"k0": 1}}, kernels=1)
    assert shape_in(trace, "t.npz")[0].sms == 4
    moved = column_table([FIRST, (*FIRST[:7], 2, *FIRST[8:])], TILE_COLUMNS)
    spread = Trace(("k0",), moved, trace.events, trace.waits, trace.dependences, {"sms": 1})
    with pytest.raises(InputError, match=r"1 error in t.npz.*\n.*sms = 1 +must be at least 2"):
        shape_in(spread, "t.npz")


def test_as_many_sorts_of_blocks_as_one_likes_share_an_sm() -> None:
    """The least common multiple of these primes has 80 bits."""
    primes = (1021, 1019, 1013, 1009, 997, 991, 983, 977)
    names = [f"k{number}" for number in range(len(primes))]
    trace = small(kernels=len(primes))
    shape = MachineShape(1, 64, dict(zip(names, primes, strict=True)), dict.fromkeys(names, 1))
    held = sum(1 / prime for prime in primes)
    assert metrics(trace, shape).empty_pct == pytest.approx(100 * (1 - held), abs=1e-6)
    assert round_ends(trace, shape) == (9000,)
    # Two full rounds of the first sort: weights that are rounded down would let one block more into the first.
    starts = [0] * primes[0] + [10] * primes[0]
    blocks = [(0, *FIRST[1:9], start, start, start, start + 10, NONE, 0) for start in starts]
    full = Trace(tuple(names), column_table(blocks, TILE_COLUMNS), trace.events, trace.waits, ("a>b",))
    assert round_ends(full, shape) == (10, 20)


def test_the_meta_that_cusim_writes_is_in_range(tmp_path: Path) -> None:
    facts = {"sms": 132, "total_ns": 2**53, "seed": -1, "posts": {"a>b": ["r"]}, "none": None, "deadlock": True}
    path = tmp_path / "t.csv"
    write_trace(small(facts), path)
    assert json.loads(json.dumps(dict(read_trace(path).meta))) == facts
