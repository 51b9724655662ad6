"""Workloads that are shipped as files: the examples of the TOML form, the same on every machine."""

from __future__ import annotations

import functools
from importlib import resources

from cusim.program.program import Program
from cusim.program.toml_read import parse_program
from cusim.workloads.defaults import CONTENDERS, PLAIN
from cusim.workloads.workload import Choice, Workload

#: Name (the file's, without its suffix): where it comes from.
SHIPPED = {"two_gemms": "the shipped example of a program file; `cusim show two_gemms --toml` prints it to start from"}


def shipped_text(name: str) -> str:
    """The TOML of a shipped file, comments and all."""
    return (resources.files("cusim") / "examples" / f"{name}.toml").read_text(encoding="utf-8")


@functools.cache
def shipped_program(name: str) -> Program:
    """The program of a shipped file."""
    return parse_program(shipped_text(name), f"{name}.toml", name)


def shipped_workload(name: str, machine: str) -> Workload:
    """The shipped file as a workload: every policy runs the same tiles, in row order, as for a file of the user's."""
    program = shipped_program(name)
    choices = {word: Choice(program, PLAIN.flags.get(word, ""), PLAIN.order[word], "") for word in CONTENDERS}
    rows = max(kernel.gemm.m for kernel in program.kernels if kernel.gemm is not None)
    return Workload(name, machine, rows, choices, (), SHIPPED[name], shipped_text(name))
