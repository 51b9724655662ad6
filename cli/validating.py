"""The work of ``cusim validate``: the sets, their tables, and where they are printed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from cli.output import Progress, answer, check_place, columns, note, write_text, wrote
from cusim.report.line import WIDTH, fold
from cusim.validate.document import Validation, json_text, missed
from cusim.validate.published import load_published, set_names
from cusim.validate.report import markdown_lines, text_lines
from cusim.validate.tables import tables_of

#: Forms of the document by the suffix of the file that takes it.
FORMS = {".json": "json", ".md": "md", ".txt": "text"}


def print_validation(name: str | None, given: Mapping[str, Any]) -> None:
    """Predicts every row of the set *name* and prints how far off they are."""
    if name is None:
        raise click.UsageError(f"Name a set of measured times: {' '.join(set_names())}, or a .csv file.")
    form, output, every, quiet = given["form"], given["output"], given["every_row"], given["quiet"]
    check_place(output, () if form else tuple(FORMS))
    validation = _judge(name, quiet=quiet)
    if form is None:
        answer(text_lines(validation, every_row=every, width=columns()))
    elif output is None:
        click.echo(rendered(validation, form, every), nl=False)
    if output is not None:
        write_text(output, rendered(validation, form or FORMS[output.suffix.lower()], every))
        wrote(output, quiet=quiet)
    note((f"{table.name}: {aim['title']} missed" for table, aim in missed(validation.tables)), quiet=quiet)


def rendered(validation: Validation, form: str, every_row: bool) -> str:
    """The document in one of :data:`FORMS`, with a final newline."""
    if form == "json":
        return json_text(validation)
    if form == "md":
        return "\n".join(markdown_lines(validation, every_row=every_row)) + "\n"
    return "\n".join(line.text for line in fold(text_lines(validation, every_row=every_row), WIDTH)) + "\n"


def _judge(name: str, *, quiet: bool) -> Validation:
    sets = load_published(name)
    # Each reading is predicted at most twice; what fits a setting adds a step a value.
    progress = Progress(2 * sum(len(published.readings) for published in sets), quiet=quiet)
    try:
        tables = [table for published in sets for table in tables_of(published, progress.step)]
    finally:
        progress.close()
    return Validation(name, sets, tuple(tables))
