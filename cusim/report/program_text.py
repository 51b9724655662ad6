"""A program as people read it: kernels on a machine, dependences, and what each policy costs them in waits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from cusim.machine.machine import Machine
from cusim.policies.registry import parse_policy
from cusim.policies.semaphores import wait_count
from cusim.program.depends import dependences, hazards
from cusim.program.program import Program
from cusim.report.kernels import kernel_row
from cusim.report.shape import dtype_of, grid_text, m_of, split_of, tile_of
from cusim.report.table import aligned
from cusim.report.text import Line, machine_text
from cusim.report.trace_text import fact_lines


class PolicyChoice(Protocol):
    """What a policy runs: the program, flags and order that it takes unless told otherwise, and why these."""

    @property
    def program(self) -> Program:
        """The program, perhaps with tiles of the policy's own."""

    @property
    def flags(self) -> str:
        """Letters of W, R, T, A."""

    @property
    def order(self) -> str:
        """The order's word."""

    @property
    def source(self) -> str:
        """Where the choice comes from."""


def program_lines(program: Program, machine: Machine, choices: Mapping[str, PolicyChoice], source: str) -> list[Line]:
    """Headline, kernels, dependences with semaphores and waits by policy, and each policy's defaults."""
    words = [program.name]
    words += [f"m={m}"] if (m := m_of(program)) is not None else []
    words += [dtype] if (dtype := dtype_of(program)) else []
    head = [Line(f"{'  '.join(words)}   on {machine_text(machine)}", "head")]
    facts = [("digest", program.digest), *([("source", source)] if source else [])]
    parts = [
        *head, *map(Line, fact_lines(facts)), Line(""),
        *_kernels(program, machine), Line(""),
        *_dependences(choices), Line(""),
        *_defaults(choices),
    ]  # fmt: skip
    return [*parts, *_sources(choices)]


def _kernels(program: Program, machine: Machine) -> list[Line]:
    titles = ["kernel", "M x N x K", "tile", "grid r x c", "k steps", "tiles", "threads", "registers", "shared KiB",
              "blocks/SM", "waves", "time from"]  # fmt: skip
    rows = []
    for kernel in program.kernels:
        row, block = kernel_row(kernel, machine), kernel.block
        size = "-" if row.m is None else f"{row.m} x {row.n} x {row.k}"
        rows.append([
            row.name, size, row.tile, grid_text(row.grid),
            str(kernel.steps), str(row.tiles), str(block.threads), str(block.registers), f"{block.smem_bytes / 1024:g}",
            f"{row.blocks_per_sm} ({row.limited_by})", "-" if row.waves is None else f"{row.waves:.2f}", row.cost,
        ])  # fmt: skip
    numbers = [False, False, False, True, True, True, True, True, True, False, True, False]
    return _table(titles, rows, numbers)


def _dependences(choices: Mapping[str, PolicyChoice]) -> list[Line]:
    """Semaphores and waits of every dependence under every policy, each on the policy's own tiles."""
    rows = [
        [dep.name, dep.buffer, word, str(parse_policy(word).size(dep)), str(wait_count(parse_policy(word), dep))]
        for word, choice in choices.items()
        if word != "stream"
        for dep in dependences(choice.program)
    ]
    program = next(iter(choices.values())).program
    again = [
        Line(f"{h.later} writes {h.buffer} again after {h.earlier} ({h.kind}): only stream order keeps them apart")
        for h in hazards(program)
    ]
    if not rows:
        return [Line("No kernel reads what another writes: there is nothing to synchronise."), *again]
    rows.sort(key=lambda row: row[0])
    return [*_table(["dependence", "buffer", "policy", "semaphores", "waits"], rows, [False] * 3 + [True] * 2), *again]


def _defaults(choices: Mapping[str, PolicyChoice]) -> list[Line]:
    rows = [
        [word, tile_of(choice.program), split_of(choice.program), choice.order, choice.flags or "-"]
        for word, choice in choices.items()
    ]
    return _table(["policy", "tile", "split-K", "order", "flags"], rows, [False] * 5)


def _sources(choices: Mapping[str, PolicyChoice]) -> list[Line]:
    found = dict.fromkeys(choice.source for choice in choices.values() if choice.source)
    return [Line(""), *(Line(text) for text in found)] if found else []


def _table(titles: list[str], rows: list[list[str]], numbers: list[bool]) -> list[Line]:
    lines = aligned(titles, rows, numbers)
    return [Line(lines[0], "title"), *map(Line, lines[1:])]
