"""The scores of the published set, figure by figure: any change of the model shows here.

They are written anew on purpose only, after looking at what changed: ``python tests/golden/test_validate_published.py``
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cusim.validate.document import Validation, document
from cusim.validate.published import load_published
from cusim.validate.tables import tables_of

GOLDEN = Path(__file__).with_name("validate_published.json")
NAME = "published/gpt3-mlp"


def scores() -> dict[str, Any]:
    """Summaries, policies, aims and left-out errors of all tables, and the machines that they rest on."""
    sets = load_published(NAME)
    found = document(Validation(NAME, sets, tuple(table for published in sets for table in tables_of(published))))
    kept = ("summary", "by_policy", "held_out", "above_bound")
    return {
        "provenance": {"set": NAME, "cusim": found["provenance"]["cusim"]},
        "machines": {
            name: {"digest": machine["digest"], "settings": [f"{s['key']}={s['value']}" for s in machine["settings"]]}
            for name, machine in found["machines"].items()
        },
        "tables": {
            prediction: {
                name: {
                    **{key: table[key] for key in kept},
                    "aims": {aim["metric"]: aim["met"] for aim in table["aims"]},
                    "rivals": {
                        rival: {key: figures[key] for key in ("mape_pct", "rank_score", "top1_pct", "regret_pct")}
                        for rival, figures in table["rivals"].items()
                    },
                }
                for name, table in tables.items()
            }
            for prediction, tables in found["tables"].items()
        },
    }


def test_scores_are_the_recorded_ones() -> None:
    recorded = json.loads(GOLDEN.read_text(encoding="utf-8"))
    # The version says when the figures were recorded, not whether they still hold.
    now = {**json.loads(json.dumps(scores())), "provenance": recorded["provenance"]}
    assert now == recorded


def test_the_record_says_where_it_comes_from() -> None:
    recorded = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert recorded["provenance"]["set"] == NAME
    assert set(recorded["machines"]) == {"v100", "a100"}
    assert recorded["tables"]["anchored"]["v100"]["summary"]["n"] == 39


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(scores(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
