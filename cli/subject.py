"""What a command is about: a shipped workload or the program of a file, and what each policy runs of it."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from cusim.errors import InputError, Problems, refuse
from cusim.files import MIB, MOST_TEXT_BYTES

if TYPE_CHECKING:
    from cusim.machine.machine import Machine
    from cusim.program.program import Program
    from cusim.workloads.workload import Choice, Workload


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the command line says of a workload's sizes; None leaves the workload's own."""

    m: int | None = None
    tile: str | None = None
    split_k: str | None = None


@dataclass(frozen=True, slots=True)
class Subject:
    """A program with the tiles, flags and order that each policy takes unless told otherwise.

    A shipped workload may give policies programs of their own; a file gives all of them the same one.
    """

    program: Program
    workload: Workload | None = None
    #: What errors call it: the file as it was given, or the workload's name.
    source: str = ""

    @property
    def overrides(self) -> tuple[str, ...]:
        """Settings that the workload needs of any machine."""
        return () if self.workload is None else self.workload.machine_overrides

    def choice(self, policy: str) -> Choice:
        """Program, flags, order and their source for a policy's word."""
        from cusim.workloads.defaults import PLAIN
        from cusim.workloads.workload import Choice

        if self.workload is not None:
            return self.workload.choice(policy)
        word = policy.partition(":")[0]
        return Choice(self.program, PLAIN.flags.get(word, ""), PLAIN.order.get(word, "row"), "")


def read_subject(given: str, machine: Machine, sizes: Sizes) -> Subject:
    """The shipped workload *given* as *machine* runs it, or the program of a TOML file (``-``: standard input)."""
    if is_file(given):
        return Subject(_file(given, sizes), source="standard input" if given == "-" else given)
    from cusim.workloads import build_workload
    from cusim.workloads.defaults import architecture_of

    # A machine of the user's own is known by its architecture alone.
    architecture = None if architecture_of(machine.name) else machine.arch
    workload = build_workload(
        given, machine.name, m=sizes.m, tile=sizes.tile, split_k=sizes.split_k, architecture=architecture
    )
    return Subject(workload.program, workload, given)


@contextmanager
def blaming(program: str, source: str) -> Iterator[None]:
    """Errors that name the program *program* name its *source* instead, which is where the user finds it."""
    try:
        yield
    except InputError as error:
        if error.source != program:
            raise
        raise InputError(source, error.problems) from None


def is_file(given: str) -> bool:
    """True for what looks like a file rather than a name."""
    return given == "-" or "/" in given or Path(given).suffix.lower() in (".toml", ".json")


def _file(given: str, sizes: Sizes) -> Program:
    from cusim.program.toml_read import load_program, parse_program

    problems = Problems("the command line")
    for option, value in (("--m", sizes.m), ("--tile", sizes.tile), ("--split-k", sizes.split_k)):
        if value is not None:
            problems.add(option, value, f"only shipped workloads take it; {given} says its own sizes")
    problems.raise_if_any()
    if given == "-":
        return parse_program(_whole(sys.stdin), "standard input", "stdin")
    return load_program(Path(given))


@functools.lru_cache(maxsize=1)
def _whole(stream: TextIO) -> str:
    """All of standard input, which can be read only once though a sweep asks for it again."""
    text = stream.read(MOST_TEXT_BYTES + 1)
    if len(text) > MOST_TEXT_BYTES:
        raise refuse("standard input", "file", None, f"larger than {MOST_TEXT_BYTES // MIB} MiB")
    return text
