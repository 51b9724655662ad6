"""The check of Chrome traces: every fault that a viewer would swallow is planted and found."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cusim.errors import InputError
from cusim.trace.formats import chrome_read
from cusim.trace.formats.chrome_check import check_chrome

Event = dict[str, Any]


def span(name: str, begin: Any, duration: Any, tid: int = 7) -> Event:
    return {"ph": "X", "cat": "tile", "name": name, "pid": 1, "tid": tid, "ts": begin, "dur": duration}


def count(time: Any, value: Any) -> Event:
    return {"ph": "C", "name": "SMs", "pid": 1, "tid": 0, "ts": time, "args": {"SMs": value}}


def arrow(phase: str, time: float, tid: int, number: int = 1) -> Event:
    return {"ph": phase, "cat": "post", "name": "post", "id": number, "pid": 1, "tid": tid, "ts": time}


def sound() -> list[Event]:
    return [
        *({"ph": "M", "pid": 1, "tid": tid, "name": "thread_name", "args": {"name": f"t{tid}"}} for tid in (7, 8)),
        span("a", 0, 10.5),
        span("b", 10.5, 4.25),
        span("b, waiting", 11, 2),
        span("c", 3, 20, 8),
        count(0, 1),
        count(3, 2),
        arrow("s", 10.499, 7),
        arrow("f", 12.999, 8),
    ]


def save(path: Path, events: Any, **more: Any) -> Path:
    path.write_text(json.dumps({"displayTimeUnit": "ns", "traceEvents": events, **more}), encoding="utf-8")
    return path


def test_a_sound_trace_passes(tmp_path: Path) -> None:
    found = check_chrome(save(tmp_path / "t.json", sound(), otherData={"a": [1, {"b": None}]}))
    assert (found.spans, found.threads, found.counts, found.arrows) == ({"tile": 4}, 2, 2, 1)


@pytest.mark.parametrize("piece", [1, 7, 64])
def test_the_reader_does_not_depend_on_where_pieces_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    monkeypatch.setattr(chrome_read, "_PIECE", piece)
    path = save(tmp_path / "t.json", sound(), otherData={"name": "größer"})
    assert check_chrome(path).spans == {"tile": 4}


def add(*events: Event) -> Callable[[list[Event]], None]:
    return lambda found: found.extend(events)


def change(place: int, **values: Any) -> Callable[[list[Event]], None]:
    return lambda found: found[place].update(values)


def drop(place: int, key: str | None = None) -> Callable[[list[Event]], None]:
    return lambda found: found.pop(place) if key is None else found[place].pop(key)


@pytest.mark.parametrize(
    ("plant", "says"),
    [
        (change(3, ts=10.4), "pid 1 tid 7 at 10.400 us.*overlaps a span of this thread that ends at 10.500"),
        (change(4, dur=9), "at 11.000 us.*overlaps a span of this thread that ends at 14.750"),
        (change(2, ts=-1), r"traceEvents\[2\]\.ts = \"-1\".*must be 0 or more"),
        (change(2, dur=-0.5), r"traceEvents\[2\]\.dur.*must be 0 or more"),
        (change(2, dur=0.0005), r"dur.*three decimals at most"),
        (change(2, ts="0"), r"ts.*must be a number of microseconds"),
        (change(2, ts=float("nan")), r"ts.*must be a number of microseconds"),
        (drop(2, "dur"), r"traceEvents\[2\]\.dur.*must be a number"),
        (drop(2, "tid"), r"traceEvents\[2\]\.tid.*must be a whole number"),
        (change(2, pid="1"), r"traceEvents\[2\]\.pid.*must be a whole number"),
        (change(2, name=""), r"traceEvents\[2\]\.name.*not empty"),
        (change(2, ph="Z"), r"ph = \"Z\".*allowed: X M C s f"),
        (drop(0), "pid 1 tid 7.*holds spans and has no thread_name"),
        (change(0, args={}), "thread_name must hold name"),
        (change(7, ts=-0.0, args={}), r"traceEvents\[7\]\.args.*must hold numbers"),
        (change(6, ts=4), "counter SMs runs backwards"),
        (change(6, args={"SMs": "1"}), "must hold numbers"),
        (drop(9), "arrow 1 .*has no f"),
        (drop(8), "arrow 1 .*has no s"),
        (add(arrow("s", 1, 7)), "an earlier s has this id"),
        (change(8, ts=13.5), "arrow 1 .*runs backwards, from 13.500 to 12.999"),
        (change(9, name="other"), "its ends differ in cat or name"),
        (change(9, ts=25), "arrow 1, its f .*at 25.000 us lies in no span of pid 1 tid 8"),
        (change(9, ts=23), "lies in no span"),  # a span is no longer open at its end
        (change(9, tid=9), "pid 1 tid 9 holds no span"),
        (drop(8, "id"), r"traceEvents\[8\]\.id.*must be a whole number or a text"),
        (lambda found: found.append(3), r"traceEvents\[10\].*must be an object"),
    ],
)
def test_every_planted_fault_is_named(tmp_path: Path, plant: Callable[[list[Event]], None], says: str) -> None:
    events = sound()
    plant(events)
    path = save(tmp_path / "t.json", events)
    with pytest.raises(InputError, match=says) as caught:
        check_chrome(path)
    assert caught.value.source == str(path)


def test_spans_that_touch_or_have_no_length_do_not_overlap(tmp_path: Path) -> None:
    events = sound()
    events += [span("zero", 10.5, 0), span("at the end", 14.75, 0), arrow("s", 14.75, 7, 2), arrow("f", 14.75, 7, 2)]
    assert check_chrome(save(tmp_path / "t.json", events)).spans == {"tile": 6}


def test_many_faults_are_counted(tmp_path: Path) -> None:
    events = [span(f"s{i}", i, 1.5) for i in range(40)]
    with pytest.raises(InputError, match=r"and .*9 more mistakes"):
        check_chrome(save(tmp_path / "t.json", events))


@pytest.mark.parametrize("packed", [False, True])
def test_cut_off_anywhere_is_refused(tmp_path: Path, packed: bool) -> None:
    whole = save(tmp_path / "whole.json", sound()).read_bytes()
    whole = gzip.compress(whole) if packed else whole
    path = tmp_path / "t.json"
    for length in range(0, len(whole), 37):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"t\.json"):
            check_chrome(path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{}", "expected|no JSON"),
        ('{"a": 1}', "traceEvents.*is missing"),
        ("[]", "expected one of {"),
        ('{"traceEvents": []} x', "goes on after"),
        ('{"traceEvents": [], "displayTimeUnit": "us"}', 'displayTimeUnit = "us".*allowed: ns ms'),
        ("\xff", "not UTF-8"),
    ],
)
def test_what_is_no_trace(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=says):
        check_chrome(path)
    with pytest.raises(InputError, match="does not exist"):
        check_chrome(tmp_path / "absent.json")
