"""The claims as people read them: one line a claim, then why some differ, then how many of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cusim.report.table import aligned, markdown
from cusim.report.text import Line
from cusim.reproduce.claim import DIFFERS, FAILED, Claim, Value
from cusim.reproduce.document import summary
from cusim.reproduce.registry import Paper

_TITLES = ("where", "claim", "unit", "paper", "ours", "band", "rival", "status")
_NUMBERS = (False, False, False, True, True, True, True, False)
_ROLES = {DIFFERS: "bad", FAILED: "bad"}
_RIVAL = "rival: what a closed form or a constant says; band: of ours."


def text_lines(paper: Paper, claims: Sequence[Claim]) -> list[Line]:
    """The whole answer, line by line; a terminal may colour a line by its role."""
    numbers = reasons(claims)
    rows = aligned(_TITLES, [_cells(claim, numbers) for claim in claims], _NUMBERS)
    lines = [Line(_headline(paper), "head"), Line(""), Line(rows[0], "title")]
    lines += [Line(row, _ROLES.get(claim.verdict, "")) for row, claim in zip(rows[1:], claims, strict=True)]
    lines += [Line(""), *(Line(f"[{number}] {why}") for why, number in numbers.items())]
    return [*lines, Line(""), Line(_RIVAL), Line(total(claims), "verdict")]


def markdown_lines(paper: Paper, claims: Sequence[Claim]) -> list[str]:
    """The same answer as markdown."""
    numbers = reasons(claims)
    rows = markdown(_TITLES, [_cells(claim, numbers) for claim in claims], _NUMBERS)
    notes = [f"{number}. {why}" for why, number in numbers.items()]
    return [f"**{_headline(paper)}**", "", *rows, "", *notes, "", _RIVAL, "", f"**{total(claims)}**"]


def list_lines(papers: Mapping[str, Paper]) -> list[Line]:
    """Which papers there are."""
    rows = [[name, str(len(paper.questions)), f"{paper.title} ({paper.cite})"] for name, paper in papers.items()]
    table = aligned(("paper", "claims", "title"), rows, (False, True, False))
    return [Line(table[0], "title"), *map(Line, table[1:]), Line(""), Line("cusim reproduce PAPER runs its claims.")]


def reasons(claims: Sequence[Claim]) -> dict[str, int]:
    """What is to be said of the claims, numbered; each text once."""
    texts = [text for claim in claims if (text := _reason(claim))]
    return {text: number for number, text in enumerate(dict.fromkeys(texts), 1)}


def total(claims: Sequence[Claim]) -> str:
    """``70 claims: 40 same, 25 differ ...``; verdicts that none has are left out."""
    words = {DIFFERS: "differ"}
    found = [f"{count} {words.get(verdict, verdict)}" for verdict, count in summary(claims).items() if count]
    return f"{len(claims)} claims: {', '.join(found)}."


def _headline(paper: Paper) -> str:
    return f"{paper.short}: {paper.title} ({paper.cite})"


def _reason(claim: Claim) -> str:
    """Why a claim differs, and what is to be known of ours even where it does not."""
    return ". ".join(part for part in (claim.why, claim.note) if part)


def _cells(claim: Claim, numbers: Mapping[str, int]) -> list[str]:
    reason = _reason(claim)
    status = f"{claim.verdict} [{numbers[reason]}]" if reason else claim.verdict
    band = "" if claim.low is None or claim.low == claim.high else f"{_cell(claim.low)} to {_cell(claim.high)}"
    values = (claim.paper, _cell(claim.ours), band, _cell(claim.baseline))
    return [claim.where, claim.claim, claim.unit, *values, status]


def _cell(value: Value | None) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else f"{value:g}"
