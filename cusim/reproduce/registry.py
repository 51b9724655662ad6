"""The papers that can be reproduced, and the one way to run their claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cusim.errors import did_you_mean, refuse
from cusim.reproduce.claim import Claim, Question, answered
from cusim.reproduce.cusync_flags import flag_questions
from cusim.reproduce.cusync_safety import safety_questions
from cusim.reproduce.cusync_table4 import table4_questions
from cusim.reproduce.cusync_waves import wave_questions
from cusim.reproduce.cusync_whole import whole_questions
from cusim.reproduce.lab import Lab
from cusim.reproduce.printed import printed


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper with the question behind each of its claims, in the order of the paper."""

    name: str
    short: str
    title: str
    cite: str
    questions: tuple[Question, ...]


def _cusync() -> Paper:
    constants = printed("cusync")
    parts = (wave_questions, table4_questions, flag_questions, safety_questions, whole_questions)
    questions = tuple(question for part in parts for question in part(constants))
    return Paper("cusync", constants["short"], constants["title"], constants["cite"], questions)


#: Makers of papers by name.
PAPERS: Mapping[str, Callable[[], Paper]] = {"cusync": _cusync}


def paper_of(name: str) -> Paper:
    """The paper of that name; InputError for any other."""
    if name not in PAPERS:
        raise refuse("the command line", "paper", name, f"unknown paper; {did_you_mean(name, PAPERS)}")
    return PAPERS[name]()


def reproduce(name: str, lab: Lab | None = None) -> tuple[Claim, ...]:
    """Every claim of the paper *name*, answered by the model now; InputError for an unknown paper."""
    paper, place = paper_of(name), lab or Lab()
    return tuple(answered(question, place) for question in paper.questions)
