"""Forms of a comparison: which one the options ask for, and the text of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cusim.errors import Problems, did_you_mean

if TYPE_CHECKING:
    from cusim.report.result import Report

#: Forms of the document by the suffix of the file that takes it.
FORMS = {".json": "json", ".csv": "csv", ".md": "md", ".txt": "text"}
_OPTIONS = ("json", "csv", "md")


def form_of(given: Mapping[str, Any], problems: Problems) -> str | None:
    """The form that ``--json``, ``--csv``, ``--md`` or the suffix of ``--output`` asks for; None for the table.

    Two forms at once, in whatever way they are asked for, are recorded as a mistake.
    """
    asked = [form for form in _OPTIONS if given[form]]
    output: Path | None = given["output"]
    if len(asked) > 1:
        problems.add(" ".join(f"--{form}" for form in asked), None, "one form at a time")
        return None
    if output is None:
        return asked[0] if asked else None
    by_suffix = FORMS.get(output.suffix.lower())
    if not asked and by_suffix is None:
        problems.add("--output", str(output), f"unknown suffix: {did_you_mean(output.suffix.lower(), FORMS)}")
    if asked and by_suffix not in (None, asked[0]):
        problems.add("--output", str(output), f"its suffix says {by_suffix}, the option --{asked[0]}; leave one out")
    return asked[0] if asked else by_suffix


def rendered(reports: Sequence[Report], form: str, time_unit: str) -> str:
    """The document in one of :data:`FORMS`, with a final newline."""
    from cusim.report.csv import csv_text
    from cusim.report.json import json_text
    from cusim.report.line import WIDTH, fold
    from cusim.report.text import markdown_lines, text_lines

    if form == "json":
        return json_text(reports)
    if form == "csv":
        return csv_text(reports)
    if form == "md":
        return "\n".join(markdown_lines(reports, time_unit)) + "\n"
    return "\n".join(line.text for line in fold(text_lines(reports, time_unit), WIDTH)) + "\n"
