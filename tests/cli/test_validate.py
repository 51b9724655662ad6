"""``cusim validate``: its document, its forms, and what it refuses."""

import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import click.testing
import pytest

Call = Callable[..., click.testing.Result]
FIGURES = {
    "mape_pct", "median_pct", "worst_pct", "bias_pct", "speedup_err_pts", "sign_right_pct", "rank_score", "top1_pct",
    "regret_pct",
}  # fmt: skip
RIVALS = ["no-gain", "always-row", "best-fixed", "sum-of-kernels", "ceil-wave", "roofline"]


@pytest.fixture
def few(tmp_path: Path) -> str:
    """A file of four sizes of the shipped A100 set."""
    text = (resources.files("cusim") / "validate" / "published" / "gpt3_mlp_a100.csv").read_text(encoding="utf-8")
    first, titles, *lines = text.splitlines()
    kept = [line for line in lines if line.split(",")[0] in ("512", "768", "1280", "1536")]
    (tmp_path / "few.csv").write_text("\n".join((first, titles, *kept)) + "\n", encoding="utf-8")
    return "few.csv"


def document(call: Call, *args: str) -> dict[str, Any]:
    done = call("validate", *args, "--json", "-q")
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_document(call: Call, few: str) -> None:
    found = document(call, few)
    assert found["schema"] == "cusim.validate/1"
    assert {name: list(tables) for name, tables in found["tables"].items()} == {
        "anchored": ["a100_unchanged", "a100_changed"],
        "cold": ["a100"],
    }
    for tables in found["tables"].values():
        for table in tables.values():
            assert set(table["summary"]) >= FIGURES | {"n", "decided_pairs", "tied_pairs", "empty_shapes"}
            assert list(table["rivals"]) == RIVALS
            assert all(set(rival) == set(table["summary"]) for rival in table["rivals"].values())
            assert {"rows", "by_policy", "aims", "held_out", "above_bound"} <= set(table)
    assert found["machines"]["a100"]["digest"]
    assert found["published"]["a100"]["licence"] == "MIT"
    assert found["context"]["a100"][0]["streamk_ns"] == 718_440


def test_rows_of_the_document(call: Call, few: str) -> None:
    rows = document(call, few)["tables"]["anchored"]["a100_unchanged"]["rows"]
    assert [(row["m"], row["policy"]) for row in rows] == [
        (m, policy) for m in (512, 1536) for policy in ("stream", "row", "tile")
    ]
    for row in rows:
        assert (row["error_pct"] is None) == row["given"] == (row["policy"] == "stream")
        whole = ("measured_ns", "predicted_ns", "stdev_ns", "bound_ns")
        assert all(isinstance(row[name], int) for name in whole)
    assert rows[0]["measured_ns"] == rows[0]["predicted_ns"] == 743_080
    assert [row["below_bound"] for row in rows] == [False, False, False, False, True, True]


def test_a_prediction_that_is_told_other_times_scores_otherwise(call: Call, few: str, tmp_path: Path) -> None:
    before = document(call, few)["tables"]["anchored"]["a100_unchanged"]["summary"]
    path = tmp_path / few
    path.write_text(path.read_text(encoding="utf-8").replace("512,row,1,752.36", "512,row,1,376.18"), encoding="utf-8")
    after = document(call, few)["tables"]["anchored"]["a100_unchanged"]["summary"]
    assert after["worst_pct"] > 90 > before["worst_pct"]


def test_the_tables_name_what_they_hold(call: Call, few: str) -> None:
    done = call("validate", few)
    assert done.exit_code == 0, done.output
    for word in ("a100_unchanged", "no-gain", "roofline", "missed", "same campaign", "not scored", "streamk"):
        assert word in done.stdout
    assert "missed" in done.stderr
    assert "rows: cold a100" not in done.stdout
    assert "rows: cold a100" in call("validate", few, "--rows", "-q").stdout


@pytest.mark.parametrize(("name", "starts"), [("v.md", "**a100"), ("v.json", "{"), ("v.txt", "a100")])
def test_a_file_is_written_whole(call: Call, few: str, tmp_path: Path, name: str, starts: str) -> None:
    done = call("validate", few, "-o", name)
    assert done.exit_code == 0, done.output
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(starts)
    assert f"wrote {name}" in done.stderr


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((), "published/gpt3-mlp"),
        (("published/gtp3-mlp",), "did you mean published/gpt3-mlp?"),
        (("none.csv",), "cannot be read"),
        (("other.csv",), "this looks like a report of Nsight Compute"),
        (("published/gpt3-mlp", "-o", "v.csv"), "unknown suffix"),
        (("published/gpt3-mlp", "-o", "nowhere/v.md"), "no directory"),
    ],
)
def test_bad_input_is_exit_code_2(call: Call, tmp_path: Path, args: tuple[str, ...], says: str) -> None:
    (tmp_path / "other.csv").write_text('"ID","Process ID","Kernel Name","Section Name"\n', encoding="utf-8")
    done = call("validate", *args)
    assert done.exit_code == 2
    assert says in done.stderr
    assert done.stdout == ""
