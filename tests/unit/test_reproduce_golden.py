"""Which of cuSync's claims agree, kept as found; the file says with which machines and from when."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cusim.reproduce import reproduce
from cusim.reproduce.lab import Lab

GOLDEN: dict[str, Any] = json.loads(
    (Path(__file__).resolve().parents[1] / "golden" / "reproduce_cusync.json").read_text(encoding="utf-8")
)


def test_claims_agree_or_differ_as_they_did() -> None:
    lab = Lab()
    found = {claim.name: claim.verdict for claim in reproduce("cusync", lab)}
    expected = {name: verdict for verdict, names in GOLDEN["verdicts"].items() for name in names}
    changed = {name: (expected.get(name), found.get(name)) for name in expected | found}
    changed = {name: pair for name, pair in changed.items() if pair[0] != pair[1]}
    digests = {name: lab.machine(name).digest for name in GOLDEN["machines"]}
    presets = "the same presets" if digests == GOLDEN["machines"] else f"other presets: {digests}"
    assert not changed, f"(was, is) with {presets}: {changed}"


def test_the_golden_file_says_where_it_comes_from() -> None:
    assert GOLDEN["source"]
    assert set(GOLDEN["machines"]) == {"a100", "v100"}
