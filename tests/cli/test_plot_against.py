"""`cusim plot PREDICTED --against MEASURED`: the picture of both, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result

from cusim.trace.formats import read_trace, write_trace

Call = Callable[..., Result]


@pytest.fixture
def predicted(call: Call, pair: str) -> str:
    """A predicted trace beside one that is said to be measured, ``measured.npz``, a little later in all it does."""
    assert call("run", pair, "--policy", "row", "-o", "row.npz", "-q").exit_code == 0
    trace = read_trace("row.npz")
    later = {
        name: trace.tiles[name] + 5_000_000 * (trace.tiles["kernel"] == 1)
        for name in ("placed", "ready", "first_load", "end")
    }
    measured = replace(trace, tiles={**trace.tiles, **later}, meta={**trace.meta, "kind": "measured"})
    write_trace(measured, Path("measured.npz"))
    return "row.npz"


@pytest.mark.parametrize(("output", "begins"), [("both.png", b"\x89PNG"), ("both.svg", b"<?xml")])
def test_both_are_drawn_into_one_picture(
    call: Call, predicted: str, tmp_path: Path, output: str, begins: bytes
) -> None:
    done = call("plot", predicted, "--against", "measured.npz", "-o", output)
    assert done.exit_code == 0, done.output
    assert done.stdout == f"{output}\n"
    assert (tmp_path / output).read_bytes().startswith(begins)


def test_the_picture_has_a_name_of_its_own(call: Call, predicted: str, tmp_path: Path) -> None:
    assert call("plot", predicted, "--against", "measured.npz").stdout == "row-against-measured.png\n"
    assert (tmp_path / "row-against-measured.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("measured.npz", "--against", "row.npz"), ["TRACE", "be a predicted trace", "--against", "be a measured"]),
        (("row.npz", "--against", "measured.npz", "--sm", "0:4", "--kind", "time"), ["--sm", "--kind"]),
        (("row.npz", "--against", "absent.npz"), ["absent.npz", "does not exist"]),
        (("row.npz", "--against", "measured.npz", "-o", "both.pdf"), ["unknown suffix", ".png .svg"]),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_refused_all_at_once(
    call: Call, predicted: str, tmp_path: Path, args: tuple[str, ...], says: list[str]
) -> None:
    done = call("plot", *args)
    assert done.exit_code == 2
    assert not [word for word in says if word not in done.stderr]
    assert not list(tmp_path.glob("*against*"))


def test_another_plan_is_named_with_both_files(call: Call, pair: str, predicted: str) -> None:
    assert call("run", pair, "--policy", "tile", "-o", "tile.npz", "-q").exit_code == 0
    done = call("plot", "tile.npz", "--against", "measured.npz")
    assert done.exit_code == 2
    assert "tile.npz against measured.npz" in done.stderr
    assert "predicted was another plan: tile" in done.stderr
