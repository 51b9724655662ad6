"""The work of ``cusim reproduce``: the list of papers, or the claims of one, and where they are printed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from cli.output import Progress, answer, check_place, write_text, wrote
from cusim.errors import Problems
from cusim.reproduce.claim import FAILED, Claim, answered
from cusim.reproduce.document import json_text
from cusim.reproduce.lab import Lab
from cusim.reproduce.registry import PAPERS, Paper, paper_of
from cusim.reproduce.text import list_lines, markdown_lines, text_lines

#: Forms of the document by the suffix of the file that takes it.
FORMS = {".json": "json", ".md": "md", ".txt": "text"}


def print_papers(form: str | None, output: Path | None) -> None:
    """Lists the papers; InputError for options that need one."""
    problems = Problems("the command line")
    for option, value in (("--json or --md", form), ("--output", output)):
        if value is not None:
            problems.add(option, None, f"needs a paper; allowed: {' '.join(PAPERS)}")
    problems.raise_if_any()
    answer(list_lines({name: make() for name, make in PAPERS.items()}))


def print_claims(name: str, form: str | None, output: Path | None, *, quiet: bool) -> bool:
    """Answers every claim and prints it; True when one failed."""
    paper = paper_of(name)
    check_place(output, () if form else tuple(FORMS))
    lab = Lab()
    claims = _answered(paper, lab, quiet=quiet)
    if form is None:
        answer(text_lines(paper, claims))
    elif output is None:
        click.echo(_rendered(paper, claims, lab, form), nl=False)
    if output is not None:
        write_text(output, _rendered(paper, claims, lab, form or FORMS[output.suffix.lower()]))
        wrote(output, quiet=quiet)
    return any(claim.verdict == FAILED for claim in claims)


def _answered(paper: Paper, lab: Lab, *, quiet: bool) -> list[Claim]:
    progress = Progress(len(paper.questions), quiet=quiet)
    found = []
    try:
        for question in paper.questions:
            progress.step(question.claim)
            found.append(answered(question, lab))
    finally:
        progress.close()
    return found


def _rendered(paper: Paper, claims: Sequence[Claim], lab: Lab, form: str) -> str:
    if form == "json":
        return json_text(paper, claims, lab)
    lines = markdown_lines(paper, claims) if form == "md" else [line.text for line in text_lines(paper, claims)]
    return "\n".join(lines) + "\n"
