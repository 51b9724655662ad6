"""What a machine was fitted on: kept in its file, in no digest, and strict when read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cusim.errors import InputError
from cusim.machine import Calibration, Used, file_digest, load_machine, machine_from_json, machine_from_toml
from cusim.machine.write import machine_to_toml

USED = Used("occasion-1.csv", "0123456789ab", ("calibrate",), 224, ("128x256x64", "192x192x64"))
PLAIN = Used('an "odd" name\x7f.csv', "ba9876543210", ("calibrate", "dev"), 3)
CALIBRATION = Calibration("2026-12-02", (USED, PLAIN))
MACHINE = replace(load_machine("h200"), state="calibrated", calibration=CALIBRATION)


def test_presets_were_fitted_on_nothing() -> None:
    assert load_machine("a100").calibration is None
    assert "calibration" not in load_machine("a100").to_json()


def test_a_calibration_comes_back_from_toml_and_json(tmp_path: Path) -> None:
    assert machine_from_toml(machine_to_toml(MACHINE), "here") == MACHINE
    assert machine_from_json(json.loads(json.dumps(MACHINE.to_json()))) == MACHINE
    (tmp_path / "mine.toml").write_text(machine_to_toml(MACHINE), encoding="utf-8")
    assert load_machine(tmp_path / "mine.toml").calibration == CALIBRATION


def test_the_digest_knows_values_only() -> None:
    assert MACHINE.digest == replace(MACHINE, calibration=None).digest


def test_it_tells_a_listed_set_from_another() -> None:
    assert CALIBRATION.lists("0123456789ab", "calibrate")
    assert not CALIBRATION.lists("0123456789ab", "dev")
    assert CALIBRATION.lists("ba9876543210", "dev")
    assert not CALIBRATION.lists("ffffffffffff", "calibrate")


def test_a_file_is_known_by_its_bytes() -> None:
    assert file_digest(b"") == "e3b0c44298fc"
    assert file_digest(b"a") != file_digest(b"b")


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        ({"date": "yesterday"}, "calibration.date"),
        ({"recordings": []}, "calibration.recordings"),
        ({"fitted": True}, "calibration.fitted"),
        ({"recordings": [{"file": "x", "digest": "0123456789AB", "labels": ["dev"], "rows": 1}]}, "12 hex digits"),
        ({"recordings": [{"file": "x", "digest": "0123456789ab", "labels": [], "rows": 1}]}, "labels"),
        ({"recordings": [{"file": "x", "digest": "0123456789ab", "labels": ["dev"], "rows": 0}]}, "1 or more"),
        ({"recordings": [{"file": "x", "digest": "0123456789ab", "label": ["dev"], "rows": 1}]}, "mean labels"),
        ({"recordings": ["occasion-1.csv"]}, r"recordings\[0\]"),
    ],
)
def test_a_calibration_that_is_off_is_refused_by_name(edit: dict[str, object], says: str) -> None:
    document = MACHINE.to_json()
    document["calibration"] = {**document["calibration"], **edit}
    with pytest.raises(InputError, match=says):
        machine_from_json(document)


def test_a_calibration_must_be_a_table() -> None:
    with pytest.raises(InputError, match="must be a table"):
        machine_from_json({**MACHINE.to_json(), "calibration": "2026-12-02"})


def test_what_a_machine_began_from_is_kept_beside_what_it_was_fitted_on() -> None:
    again = Calibration("2026-12-03", (replace(PLAIN, rows=9),))
    assert again.and_before(CALIBRATION).recordings == (replace(PLAIN, rows=9), USED)
    assert again.and_before(None) == again


def test_an_edited_copy_is_known_by_when_and_where_it_was_taken() -> None:
    taken = replace(USED, taken="2026-12-01T08:41:14Z ed9b")
    found = Calibration("2026-12-02", (taken,))
    assert found.copied("fedcba987654", taken.taken) == taken
    assert found.copied(taken.digest, taken.taken) is None  # the file itself: its labels decide
    assert found.copied("fedcba987654", "2026-12-01T08:41:14Z 1234") is None
    assert Calibration("2026-12-02", (USED,)).copied("fedcba987654", "") is None
    assert machine_from_toml(machine_to_toml(replace(MACHINE, calibration=found)), "here").calibration == found


def test_a_set_that_does_not_exist_is_refused_by_name() -> None:
    document = MACHINE.to_json()
    document["calibration"]["recordings"][0]["labels"] = ["calbrate"]
    with pytest.raises(InputError, match="calibrate"):
        machine_from_json(document)
