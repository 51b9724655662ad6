"""`cusim show A --diff B`: two machines leaf by leaf, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

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
    text = call("show", "h200", "--toml").stdout
    edited = text.replace(
        'event_ps = { value = 1.66, unit = "us"', 'event_ps = { value = 1660, unit = "ns", stderr = 9'
    )
    assert edited != text
    (tmp_path / "mine.toml").write_text(edited, encoding="utf-8")
    shown = call("show", "h200", "--diff", "mine.toml").stdout
    assert "No number differs." in shown
    assert "1 equal number has another error or status: launch.event_ps." in shown
