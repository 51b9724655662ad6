"""cuSync's whole models and its figures: what this version does not reproduce, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from cusim.reproduce.claim import FIGURE_ONLY, NOT_ATTEMPTED, Answer, Question
from cusim.reproduce.lab import Lab


def whole_questions(paper: Mapping[str, Any]) -> Iterator[Question]:
    """One question a model, and one for the figures without numbers."""
    figures = paper["figures"]
    text = "MLP, attention and convolutions against StreamSync: bars"
    yield Question("figures", text, figures["where"], "bars", "", partial(_figure, figures["note"]))
    for row in paper["headline"]:
        text = f"{row['model']} inference, end to end: time saved, up to"
        answer = partial(_missing, row["missing"])
        yield Question(f"whole.{row['model']}", text, row["where"], row["percent"], "%", answer)


def _figure(note: str, lab: Lab) -> Answer:
    return Answer(FIGURE_ONLY, note=note)


def _missing(missing: str, lab: Lab) -> Answer:
    return Answer(NOT_ATTEMPTED, note=f"not in this version: {missing}")
