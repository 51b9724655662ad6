"""`cusim validate --timelines`: measured traces held against the prediction of the same program and plan."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Call = Callable[..., Result]
NAMES = ("gpt3-mlp-512-row", "gpt3-mlp-512-stream", "llama-mlp-1024-stream")


@pytest.fixture
def folder(root: Path, tmp_path: Path) -> str:
    """Three of the recorded timelines."""
    (tmp_path / "mine").mkdir()
    for name in NAMES:
        (tmp_path / "mine" / f"{name}.npz").symlink_to(root / "traces" / "h200" / "timelines" / f"{name}.npz")
    return "mine"


def judged(call: Call, *args: str) -> Result:
    return call("validate", "--machine", "h200", "--timelines", *args)


def test_tables_by_timeline_and_kernel_and_with_rows_by_round(call: Call, folder: str) -> None:
    done = judged(call, folder)
    assert done.exit_code == 0, done.output
    assert [line.split()[0] for line in done.stdout.splitlines()[2:5]] == list(NAMES)
    assert "3 timelines: totals off by" in done.stdout
    assert "tiles by kernel, us" in done.stdout
    assert "tiles by round, us" not in done.stdout
    assert "tiles by round, us" in judged(call, folder, "--rows").stdout


def test_the_forms_agree(call: Call, folder: str, tmp_path: Path) -> None:
    done = judged(call, folder, "--json", "-q")
    whole = json.loads(done.stdout)
    assert whole["schema"] == "cusim.timelines/1"
    assert [each["name"] for each in whole["timelines"]] == list(NAMES)
    assert judged(call, folder, "-o", "out.json", "-q").exit_code == 0
    assert (tmp_path / "out.json").read_text(encoding="utf-8") == done.stdout
    markdown = judged(call, folder, "--md", "-q").stdout
    for each in whole["timelines"]:
        assert f"| {each['name']} | {sum(kernel['tiles'] for kernel in each['kernels'])} |" in markdown
        assert f"{each['measured_ns'] / 1000:.1f}" in markdown


def test_a_what_if_changes_what_is_predicted(call: Call, folder: str) -> None:
    place = f"{folder}/{NAMES[1]}.npz"
    plain, slow = (
        json.loads(judged(call, place, "--json", "-q", *more).stdout)["timelines"][0]
        for more in ((), ("--set", "gap_ps=x20"))
    )
    assert slow["predicted_ns"] > plain["predicted_ns"]
    assert slow["measured_ns"] == plain["measured_ns"]
    assert slow["rounds"][1]["kernels"][0]["start_error"]["median_ns"] > 10_000


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--timelines", "mine"), "needs the machine to be judged"),
        (("--machine", "h200", "--timelines", "mine", "rows.csv"), "judged by itself"),
        (("--machine", "h200", "--timelines", "absent"), "absent"),
        (("--machine", "h200", "--timelines", "."), "holds no .npz file"),
        (("--machine", "a100", "--timelines", "mine"), "machine a100 is A100"),
    ],
)
def test_what_cannot_be_judged_is_refused(call: Call, folder: str, args: tuple[str, ...], says: str) -> None:
    done = call("validate", *args)
    assert done.exit_code == 2
    assert says in done.stderr
    assert not done.stdout
