"""The claims as one JSON document (schema ``cusim.reproduce/1``)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from cusim.report.json import machine_json
from cusim.report.version import cusim_version
from cusim.reproduce.claim import DIFFERS, FAILED, FIGURE_ONLY, NOT_ATTEMPTED, SAME, Claim
from cusim.reproduce.lab import Lab
from cusim.reproduce.registry import Paper

SCHEMA = "cusim.reproduce/1"
VERDICTS = (SAME, DIFFERS, FIGURE_ONLY, NOT_ATTEMPTED, FAILED)


def summary(claims: Sequence[Claim]) -> dict[str, int]:
    """How many claims have each verdict, all verdicts named."""
    found = Counter(claim.verdict for claim in claims)
    return {verdict: found[verdict] for verdict in VERDICTS}


def document(paper: Paper, claims: Sequence[Claim], lab: Lab) -> dict[str, Any]:
    """The paper, its claims, how many of each verdict, and the machines that they were computed on."""
    return {
        "schema": SCHEMA,
        "paper": {"name": paper.name, "title": paper.title, "cite": paper.cite},
        "claims": [asdict(claim) for claim in claims],
        "summary": summary(claims),
        "provenance": {
            "cusim_version": cusim_version(),
            "kind": "predicted",
            "spread": "none: the same input gives the same bytes",
            "machines": [machine_json(machine) for machine in lab.machines],
        },
    }


def json_text(paper: Paper, claims: Sequence[Claim], lab: Lab) -> str:
    """The document as text, indented, with a final newline; never NaN, which JSON lacks."""
    return json.dumps(document(paper, claims, lab), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
