"""The work of ``cusim validate``: published sets or recordings, their tables, and where they are printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.output import Progress, answer, check_place, columns, note, write_text, wrote
from cusim.report.line import WIDTH, Line, fold

if TYPE_CHECKING:
    from cusim.machine.machine import Machine

#: Forms of the document by the suffix of the file that takes it.
FORMS = {".json": "json", ".md": "md", ".txt": "text"}


@dataclass(frozen=True, slots=True)
class Rendering:
    """A validation in each of :data:`FORMS`: lines for a width, markdown lines, a JSON text; *notes* go to stderr."""

    text: Callable[[int], Sequence[Line]]
    markdown: Callable[[], Sequence[str]]
    json: Callable[[], str]
    notes: Sequence[str]
    gate_missed: bool = False

    def as_file(self, form: str) -> str:
        """The document in one form, with a final newline."""
        if form == "json":
            return self.json()
        lines = self.markdown() if form == "md" else [line.text for line in fold(self.text(WIDTH), WIDTH)]
        return "\n".join(lines) + "\n"


def print_validation(names: Sequence[str], given: Mapping[str, Any]) -> bool:
    """Predicts every row of what *names* hold and prints how far off they are; True when a gate is missed."""
    form, output, quiet = given["form"], given["output"], given["quiet"]
    check_place(output, () if form else tuple(FORMS), names)
    found = _rendering(names, given)
    if form is None:
        answer(found.text(columns()))
    elif output is None:
        click.echo(found.as_file(form), nl=False)
    if output is not None:
        write_text(output, found.as_file(form or FORMS[output.suffix.lower()]))
        wrote(output, quiet=quiet)
    # A gate that is missed is the outcome, not advice: --quiet does not hide it.
    note(found.notes, quiet=quiet and not found.gate_missed)
    return found.gate_missed


def _rendering(names: Sequence[str], given: Mapping[str, Any]) -> Rendering:
    from cusim.validate.recordings import is_recording

    if given["timelines"] is not None:
        return _timelines(names, given)
    if given["machine"] is not None:
        if not names:
            raise click.UsageError("Name recordings, files or a folder, for the machine to be judged on.")
        return _recorded(names, given)
    recorded = next((name for name in names if is_recording(name)), None)
    if recorded is not None:
        raise click.UsageError(f"{recorded} holds recordings: name the machine to be judged on them with --machine.")
    for option in ("gate", "settings"):
        if given[option]:
            word = {"gate": "--gate", "settings": "--set"}[option]
            raise click.UsageError(f"{word} is for recordings, which need --machine.")
    return _published(names, given)


def _timelines(names: Sequence[str], given: Mapping[str, Any]) -> Rendering:
    from cli.timelines import timeline_forms

    if names or given["gate"] is not None:
        raise click.UsageError("--timelines is judged by itself: without recordings or a gate.")
    if given["machine"] is None:
        raise click.UsageError("--timelines needs the machine to be judged: name it with --machine.")
    forms = timeline_forms(given["timelines"], _machine(given), every=given["every_row"], quiet=given["quiet"])
    return Rendering(forms.text, forms.markdown, forms.json, ())


def _published(names: Sequence[str], given: Mapping[str, Any]) -> Rendering:
    from cusim.validate.document import Validation, json_text, missed
    from cusim.validate.published import load_published, set_names
    from cusim.validate.report import markdown_lines, text_lines
    from cusim.validate.tables import tables_of

    if len(names) != 1:
        known = " ".join(set_names())
        raise click.UsageError(
            f"Name one set of measured times: {known}, or a .csv file; or recordings with --machine."
        )
    sets = load_published(names[0])
    # Each reading is predicted at most twice; what fits a setting adds a step a value.
    progress = Progress(2 * sum(len(published.readings) for published in sets), quiet=given["quiet"])
    try:
        tables = [table for published in sets for table in tables_of(published, progress.step)]
    finally:
        progress.close()
    found, every = Validation(names[0], sets, tuple(tables)), given["every_row"]
    return Rendering(
        lambda width: text_lines(found, every_row=every, width=width),
        lambda: markdown_lines(found, every_row=every),
        lambda: json_text(found),
        [f"{table.name}: {aim['title']} missed" for table, aim in missed(found.tables)],
    )


def _recorded(names: Sequence[str], given: Mapping[str, Any]) -> Rendering:
    from cusim.validate.gate import load_gates, passed
    from cusim.validate.recorded_document import recorded_json_text
    from cusim.validate.recorded_report import recorded_markdown, recorded_text
    from cusim.validate.recorded_validation import predictions_of, validate_recordings
    from cusim.validate.recordings import load_recordings

    machine = _machine(given)
    limits = load_gates(Path(given["gate"])) if given["gate"] is not None else ()
    recordings = load_recordings(names, machine)
    progress = Progress(predictions_of(recordings), quiet=given["quiet"])
    try:
        found = validate_recordings(recordings, machine, watch=progress.step)
    finally:
        progress.close()
    gates, every = passed(limits, found.tables), given["every_row"]
    missed = [f"gate missed: {item.text}" for item in gates if not item.met]
    return Rendering(
        lambda width: recorded_text(found, gates, every_row=every, width=width),
        lambda: recorded_markdown(found, gates, every_row=every),
        lambda: recorded_json_text(found, gates),
        missed,
        bool(missed),
    )


def _machine(given: Mapping[str, Any]) -> Machine:
    from cusim.machine.load import load_machine
    from cusim.machine.override import with_overrides

    machine = load_machine(given["machine"])
    return with_overrides(machine, given["settings"]) if given["settings"] else machine
