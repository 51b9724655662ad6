"""``cusim export``: a run to a file that a viewer opens, and everything that is refused."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import click.testing
import pytest

Call = Callable[..., click.testing.Result]


@pytest.fixture
def trace(call: Call, pair: str) -> str:
    assert call("run", pair, "--policy", "row", "-o", "pair.npz", "-q").exit_code == 0
    return "pair.npz"


def test_run_then_export(call: Call, trace: str) -> None:
    done = call("export", trace, "--check")
    assert done.exit_code == 0, done.output
    assert done.stdout == "pair.json.gz\n"
    assert "https://ui.perfetto.dev" in done.stderr
    assert "stays local" in done.stderr
    assert "18 of 18 blocks" in done.stderr
    assert "no fault" in done.stderr
    document = json.loads(gzip.decompress(Path("pair.json.gz").read_bytes()))
    names = [event["name"] for event in document["traceEvents"] if event.get("cat") == "tile"]
    assert sorted(names)[:2] == ["down (0, 0)", "down (0, 1)"]
    assert document["otherData"]["kind"] == "predicted"
    assert document["otherData"]["program"] == "pair"


def test_arrows_need_the_policy_that_the_run_records(call: Call, trace: str) -> None:
    assert call("export", trace, "-o", "t.json", "-q").stderr == ""
    events = json.loads(Path("t.json").read_text(encoding="utf-8"))["traceEvents"]
    waits = [event for event in events if event.get("cat") == "wait"]
    assert len(waits) == len([event for event in events if event["ph"] == "s"]) > 0
    by_place = {(e["tid"], e["ts"], e["ts"] + e["dur"]): e["name"] for e in events if e.get("cat") == "tile"}
    for event in events:
        if event["ph"] in "sf":
            inside = [
                name for (tid, begin, end), name in by_place.items()
                if tid == event["tid"] and begin <= event["ts"] < end
            ]  # fmt: skip
            assert len(inside) == 1
            assert inside[0].startswith("up (" if event["ph"] == "s" else "down (")


def test_a_window_and_a_sample(call: Call, trace: str) -> None:
    done = call("export", trace, "-o", "t.json", "--window", ":5.5", "--sample", "0.5", "--check")
    assert done.exit_code == 0, done.output
    facts = json.loads(Path("t.json").read_text(encoding="utf-8"))["otherData"]
    assert facts["sample"] == 0.5
    assert facts["window_us"][0] == 0
    call("export", trace, "-o", "u.json", "--window", ":5.5", "-q")
    whole = json.loads(Path("u.json").read_text(encoding="utf-8"))["otherData"]["blocks_exported"]
    assert facts["blocks_exported"] == round(whole / 2) > 0
    assert call("export", "t.json", "--check").exit_code == 0


def test_csv_traces_too(call: Call, pair: str) -> None:
    call("run", pair, "--policy", "tile", "-o", "pair.csv", "-q")
    assert call("export", "pair.csv", "-o", "t.json", "--check").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--window", "900000:900001"), "outside the trace"),
        (("--window", "3:2"), "--window"),
        (("--window", ":"), "--window"),
        (("--window", "-1:2"), "--window"),
        (("--window", "0:x"), "--window"),
        (("--sample", "0"), "--sample"),
        (("--sample", "1.5"), "--sample"),
        (("--sample", "-2"), "--sample"),
        (("--sample", "many"), "--sample"),
        (("--format", "otf2"), "allowed: chrome"),
        (("-o", "t.txt"), "allowed: .json .json.gz"),
        (("-o", "absent/t.json"), "no directory absent"),
        (("-o", "."), "is a directory"),
    ],
)
def test_refused_by_name_with_nothing_written(call: Call, trace: str, arguments: tuple[str, ...], says: str) -> None:
    before = sorted(Path().iterdir())
    done = call("export", trace, *arguments)
    assert done.exit_code == 2
    assert says in done.stderr
    assert done.stdout == ""
    assert sorted(Path().iterdir()) == before


def test_mistakes_come_all_at_once(call: Call, trace: str) -> None:
    done = call("export", trace, "--format", "crome", "--window", "x", "--sample", "y", "-o", "t.jsn")
    assert done.exit_code == 2
    assert "4 errors" in done.stderr
    assert "did you mean chrome?" in done.stderr


@pytest.mark.parametrize(
    ("source", "content", "says"),
    [
        ("absent.npz", None, "does not exist"),
        ("t.toml", b"", "unknown suffix"),
        ("cut.npz", b"PK\x03\x04", "no numpy archive"),
        ("t.json", b"{}", "unknown suffix"),
    ],
)
def test_sources_that_are_no_trace(call: Call, source: str, content: bytes | None, says: str) -> None:
    if content is not None:
        Path(source).write_bytes(content)
    done = call("export", source)
    assert done.exit_code == 2
    assert says in done.stderr


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no /dev/full here")
def test_a_full_disk_is_named(call: Call, trace: str) -> None:
    done = call("export", trace, "-o", "/dev/full")
    assert done.exit_code == 2
    assert "No space left on device" in done.stderr
    assert Path("/dev/full").is_char_device()


def test_a_check_names_the_fault(call: Call, trace: str) -> None:
    call("export", trace, "-o", "t.json", "-q")
    text = Path("t.json").read_text(encoding="utf-8")
    Path("t.json").write_text(text.replace('"ph":"f"', '"ph":"s"', 1), encoding="utf-8")
    done = call("export", "t.json", "--check")
    assert done.exit_code == 2
    assert "has no f" in done.stderr
    assert "says nothing of a check" in call("export", "t.json", "--check", "--sample", "3").stderr
