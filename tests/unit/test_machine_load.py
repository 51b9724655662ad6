"""Reading machine files: strict, and everything that is wrong at once."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from cusim.errors import InputError
from cusim.machine import load_machine, machine_from_json, machine_from_toml, machine_names, with_overrides
from cusim.machine.write import machine_to_toml


def toml(name: str) -> str:
    return (resources.files("cusim") / "machines" / f"{name}.toml").read_text(encoding="utf-8")


def document() -> dict[str, Any]:
    return load_machine("a100").to_json()


def problems(document: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InputError) as caught:
        machine_from_json(document, "mine.toml")
    assert caught.value.source == "mine.toml"
    return {problem.key: problem.why for problem in caught.value.problems}


def test_names_are_not_case_sensitive() -> None:
    assert load_machine("H200") is load_machine("h200")


def test_an_unknown_name_says_which_there_are() -> None:
    with pytest.raises(InputError, match=r"did you mean h200\?  allowed: a100 h100 h200 v100"):
        load_machine("h20")


def test_a_toml_and_a_json_file_load_alike(tmp_path: Path) -> None:
    as_toml, as_json = tmp_path / "mine.toml", tmp_path / "mine.json"
    as_toml.write_text(toml("a100"), encoding="utf-8")
    as_json.write_text(json.dumps(document()), encoding="utf-8")
    assert load_machine(as_toml) == load_machine(str(as_json)) == load_machine("a100")


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("absent.toml", None, "cannot be read: No such file"),
        ("bad.toml", b"name = ", "is not TOML"),
        ("bad.json", b"{", "is not JSON"),
        ("list.json", b"[]", "must be a JSON object"),
        ("digits.toml", b"a = 1" + b"0" * 5000, "is not TOML"),
        ("digits.json", b"1" + b"0" * 5000, "is not JSON"),
        ("deep.toml", b"a = " + b"[" * 10**5, "is not TOML"),
        ("deep.json", b"[" * 10**5, "is not JSON"),
        ("latin.toml", b"# \xe9", "not a UTF-8 text"),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path: Path, name: str, content: bytes | None, told: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=told):
        load_machine(path)


def test_all_mistakes_are_told_at_once() -> None:
    given = document()
    given["state"] = "guess"
    given["colour"] = "green"
    del given["limits"]["sms"]
    given["limits"]["smss"] = given["limits"]["warps_per_sm"]
    given["rates"]["clock_hz"]["unit"] = "KHz"
    given["rates"]["tensor_efficiency"]["value"] = 1.2
    given["block"]["load_ps"]["value"] = "331"
    given["block"]["ticket_ps"]["value"] = True
    del given["sync"]["post_ps"]["source"]
    given["sync"]["poll_ps"]["status"] = "mesured"
    given["sync"]["visible_ps"]["error"] = 3
    given["launch"]["gap_ps"]["value"] = float("nan")
    given["launch"]["event_ps"]["stderr"] = -1
    given["dispatch"]["placement"]["value"] = "random"
    given["dispatch"]["block_ps"] = 700
    found = problems(given)
    assert set(found) == {
        "state", "colour", "limits.sms", "limits.smss", "rates.clock_hz.unit",
        "rates.tensor_efficiency.value", "block.load_ps.value", "block.ticket_ps.value",
        "sync.post_ps.source", "sync.poll_ps.status", "sync.visible_ps.error",
        "launch.gap_ps.value", "launch.event_ps.stderr", "dispatch.placement.value", "dispatch.block_ps",
    }  # fmt: skip
    assert "did you mean sms?" in found["limits.smss"]
    assert "allowed: GHz Hz MHz" in found["rates.clock_hz.unit"]
    assert "did you mean measured?" in found["sync.poll_ps.status"]
    assert "allowed: most-room order" in found["dispatch.placement.value"]
    assert found["sync.post_ps.source"] == "missing"


@pytest.mark.parametrize("schema", ["cusim.machine/9", "cusim.program/1", 1])
def test_a_file_of_another_schema_is_one_mistake(schema: object) -> None:
    assert problems({"schema": schema, "kernel": [{"name": "up"}]}) == {"schema": 'must be "cusim.machine/2"'}


@pytest.mark.parametrize("name", machine_names())
def test_what_is_written_as_toml_reads_back_equal(name: str, tmp_path: Path) -> None:
    preset = load_machine(name)
    settings = ["sms=7", "post_ps=x1.5", "sm_order=ascending", "tensor_efficiency=50%"]
    for machine in (preset, with_overrides(preset, settings)):
        path = tmp_path / "mine.toml"
        path.write_text(machine_to_toml(machine), encoding="utf-8")
        back = load_machine(path)
        assert back == machine
        assert (back.digest, dict(back.provenance)) == (machine.digest, dict(machine.provenance))


def test_an_empty_file_names_every_part() -> None:
    with pytest.raises(InputError) as caught:
        machine_from_toml("", "empty.toml")
    keys = {problem.key for problem in caught.value.problems}
    assert keys == {
        "schema", "name", "gpu", "arch", "state", "band_pct",
        "limits", "rates", "block", "sync", "launch", "dispatch",
    }  # fmt: skip


def test_numbers_that_contradict_each_other() -> None:
    given = document()
    given["limits"]["warps_per_sm"]["value"] = 65
    given["limits"]["smem_per_block_bytes"]["value"] = 164
    given["limits"]["threads_per_block"]["value"] = 4096
    order = given["dispatch"]["sm_order"]["value"]
    order[:3] = [5, 108, 7]
    found = problems(given)
    assert found["limits.warps_per_sm"] == "at most threads_per_sm / 32 = 64"
    assert "at most smem_per_sm_bytes - smem_reserve_bytes = 166912" in found["limits.smem_per_block_bytes"]
    assert "at most threads_per_sm = 2048" in found["limits.threads_per_block"]
    assert "missing 0 1 2, no such SM 108, 2 given twice" in found["dispatch.sm_order"]


def test_an_ascending_order_needs_no_list() -> None:
    given = document()
    given["dispatch"]["sm_order"]["value"] = "ascending"
    assert machine_from_json(given) == load_machine("a100")
