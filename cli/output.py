"""Where answers and advice go: stdout or a whole file, stderr for the rest, colour only where a terminal shows it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TextIO

import click

if TYPE_CHECKING:
    from cusim.report.line import Line

#: How a line of each role looks on a terminal.
_NARROWEST = 60
_STYLES = {"head": "bold", "title": "dim", "good": "green", "bad": "red", "verdict": "bold"}


def coloured() -> bool:
    """True when stdout is a terminal, or FORCE_COLOR is set, and nothing asks for plain text (NO_COLOR, TERM=dumb)."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def columns(stream: TextIO | None = None) -> int:
    """Letters that a line on *stream* (stdout) may have: the terminal's, or 120 where it goes elsewhere."""
    from cusim.report.line import WIDTH

    watched = (stream or sys.stdout).isatty()
    return max(_NARROWEST, shutil.get_terminal_size((WIDTH, 24)).columns) if watched else WIDTH


def answer(lines: Sequence[Line]) -> None:
    """Prints an answer on stdout, folded to its width: plain text, or the same text with colours on a terminal."""
    from cusim.report.line import fold

    folded = list(fold(lines, columns()))
    if not coloured():
        click.echo("\n".join(line.text for line in folded))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for line in folded:
        console.print(Text(line.text, style=_STYLES.get(line.role, "")), soft_wrap=True)


def note(texts: Iterable[str], *, quiet: bool = False) -> None:
    """Advice on stderr, a paragraph each; nothing when *quiet*."""
    if quiet:
        return
    from cusim.report.line import Line, fold

    for text in texts:
        for line in fold([Line(f"note: {text}", "", len("note: "))], columns(sys.stderr)):
            click.echo(line.text, err=True)


def wrote(path: Path, *, quiet: bool = False) -> None:
    """Says on stderr which file now exists."""
    if not quiet:
        click.echo(f"wrote {path}", err=True)


def check_place(path: Path | None, suffixes: Sequence[str] = (), read: Sequence[str | Path] = ()) -> None:
    """Raises InputError, before anything runs, where *path* cannot be written, has a suffix of no format, or is one of
    the files that are *read*.
    """
    if path is None:
        return
    from cusim.errors import Problems, did_you_mean

    problems = Problems("--output")
    folder = path.parent
    if suffixes and path.suffix.lower() not in suffixes:
        problems.add("output", str(path), f"unknown suffix: {did_you_mean(path.suffix.lower(), suffixes)}")
    if any(path.resolve() == Path(each).resolve() for each in read):
        problems.add("output", str(path), "is read by this command; name another file")
    if path.is_dir():
        problems.add("output", str(path), "is a directory; name a file")
    elif not folder.is_dir():
        problems.add("output", str(path), f"no directory {folder}")
    elif not os.access(folder, os.W_OK):
        problems.add("output", str(path), f"the directory {folder} cannot be written")
    problems.raise_if_any()


def write_text(path: Path, text: str) -> None:
    """Writes a text file, whole or not at all."""
    from cusim.trace.formats.whole import write_whole

    def write(file: BinaryIO) -> None:
        file.write(text.encode())

    write_whole(path, write)


class Progress:
    """A counter on stderr, only where a person watches: a terminal, and not *quiet*. *total* None is unknown."""

    def __init__(self, total: int | None, *, quiet: bool) -> None:
        self.total, self.done = total, 0
        self.shown = total != 0 and total != 1 and not quiet and sys.stderr.isatty() and not os.environ.get("CI")

    def step(self, what: str) -> None:
        """Says what runs next."""
        self.done += 1
        if self.shown:
            of = "" if self.total is None else f"/{self.total}"
            click.echo(f"\r\033[K{self.done}{of} {what}", nl=False, err=True)

    def close(self) -> None:
        """Wipes the counter, so that the answer stands alone."""
        if self.shown:
            click.echo("\r\033[K", nl=False, err=True)
