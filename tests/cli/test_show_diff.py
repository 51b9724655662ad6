"""`cusim show A --diff B`: two machines leaf by leaf, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from cusim.machine import load_machine

Call = Callable[..., Result]


def test_diff_as_json(call: Call, tmp_path: Path) -> None:
    found = json.loads(call("show", "h200", "--diff", "a100", "--json").stdout)
    assert [machine["name"] for machine in found["machines"]] == ["h200", "a100"]
    sms = next(row for row in found["rows"] if row["path"] == "limits.sms")
    assert (sms["left"]["value"], sms["right"]["value"]) == (132, 108)
    assert sms["change_pct"] == pytest.approx(-18.182)
    assert json.loads(call("show", "h200", "--json").stdout)["limits"]["sms"]["value"] == 132
    assert call("show", "gpt3-mlp", "--json").exit_code == 2


def test_diff_names_what_is_only_known_better(call: Call, tmp_path: Path) -> None:
    document = load_machine("h200").to_json()
    event = document["launch"]["event_ps"]
    document["launch"]["event_ps"] = {**event, "value": event["value"] * 1000, "unit": "ns", "stderr": 9}
    assert event["unit"] == "us"
    (tmp_path / "mine.json").write_text(json.dumps(document), encoding="utf-8")
    shown = call("show", "h200", "--diff", "mine.json").stdout
    assert "No number differs." in shown
    assert "1 equal number has another error or status: launch.event_ps." in shown
