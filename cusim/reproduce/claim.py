"""One claim of a paper: what is printed, what the model says, and whether the two agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from cusim.reproduce.lab import Lab

Value: TypeAlias = str | int | float

SAME = "same"
#: Begins the status of a claim that differs or failed; why follows a colon.
DIFFERS = "differs"
FAILED = "failed"
FIGURE_ONLY = "figure only"
NOT_ATTEMPTED = "not attempted"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model says of a claim. *baseline* is what the simplest rival says: a closed form or a constant.

    *low* and *high* bound ours where it has a band; *status* is judged from the numbers, never written down.
    """

    status: str
    ours: Value | None = None
    baseline: Value | None = None
    low: float | None = None
    high: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A claim before it is answered: its *name*, the sentence, *where* it is printed, and the value as *printed*."""

    name: str
    claim: str
    where: str
    printed: str
    unit: str
    answer: Callable[[Lab], Answer]


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim answered. *paper* is the value as printed; the other fields are those of :class:`Answer`.

    *status* is ``same``, ``differs: why``, ``figure only``, ``not attempted`` or ``failed: error``.
    """

    name: str
    claim: str
    where: str
    unit: str
    paper: str
    ours: Value | None
    baseline: Value | None
    low: float | None
    high: float | None
    status: str
    note: str

    @property
    def verdict(self) -> str:
        """The status without its reason."""
        return self.status.partition(":")[0]

    @property
    def why(self) -> str:
        """The reason in the status; empty where there is none."""
        return self.status.partition(": ")[2]


def answered(question: Question, lab: Lab) -> Claim:
    """The claim with its answer. A question that raises is a failed claim, so that no error hides the others."""
    try:
        found = question.answer(lab)
    except Exception as error:
        text = " ".join(str(error).split())
        found = Answer(f"{FAILED}: {type(error).__name__}{f': {text}' if text else ''}")
    return Claim(
        name=question.name,
        claim=question.claim,
        where=question.where,
        unit=question.unit,
        paper=question.printed,
        ours=found.ours,
        baseline=found.baseline,
        low=found.low,
        high=found.high,
        status=found.status,
        note=found.note,
    )
