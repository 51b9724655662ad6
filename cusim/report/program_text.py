"""A program as people read it: kernels on a machine, dependences, and what each policy costs them in waits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from cusim.errors import InputError
from cusim.machine.machine import Machine
from cusim.policies.registry import parse_policy
from cusim.policies.semaphores import wait_count
from cusim.program.depends import TileDep, dependences, hazards
from cusim.program.kernel import Kernel
from cusim.program.program import Program
from cusim.report.kernels import KernelRow, kernel_row
from cusim.report.line import WIDTH, Line, facts, prose, strip_table, table
from cusim.report.shape import dtype_of, grid_text, m_of, option_form, split_of, tile_of
from cusim.report.table import Strip
from cusim.report.text import machine_text


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


def program_lines(
    program: Program, machine: Machine, choices: Mapping[str, PolicyChoice], source: str, width: int = WIDTH
) -> list[Line]:
    """Headline, kernels, dependences with semaphores and waits by policy, and each policy's defaults."""
    words = [program.name]
    words += [f"m={m}"] if (m := m_of(program)) is not None else []
    words += [dtype] if (dtype := dtype_of(program)) else []
    head = [Line(f"{'  '.join(words)}   on {machine_text(machine)}", "head", 4)]
    said = [("digest", program.digest), *([("source", source)] if source else [])]
    parts = [
        *head, *facts(said), Line(""),
        *_kernels(program, machine, width), Line(""),
        *_dependences(choices), Line(""),
        *_defaults(choices),
    ]  # fmt: skip
    return [*parts, *_sources(choices)]


def _kernels(program: Program, machine: Machine, width: int) -> list[Line]:
    pairs = [(kernel, kernel_row(kernel, machine)) for kernel in program.kernels]
    measured = any(row.cost != "model" for _, row in pairs)

    def strip(title: str, cell: Callable[[Kernel, KernelRow], object], number: bool = False, shed: int = 0) -> Strip:
        return Strip(title, tuple(str(cell(kernel, row)) for kernel, row in pairs), number, shed)

    strips = [
        strip("kernel", lambda k, row: row.name),
        strip("M x N x K", lambda k, row: "-" if row.m is None else f"{row.m} x {row.n} x {row.k}"),
        strip("tile", lambda k, row: row.tile),
        strip("grid r x c", lambda k, row: grid_text(row.grid), number=True),
        strip("k steps", lambda k, row: k.steps, number=True, shed=1),
        strip("tiles", lambda k, row: row.tiles, number=True, shed=2),
        strip("threads", lambda k, row: k.block.threads, number=True),
        strip("registers", lambda k, row: k.block.registers, number=True),
        strip("shared KiB", lambda k, row: f"{k.block.smem_bytes / 1024:g}", number=True),
        strip("blocks/SM", lambda k, row: f"{row.blocks_per_sm} ({row.limited_by})"),
        strip("waves", lambda k, row: "-" if row.waves is None else f"{row.waves:.2f}", number=True),
        strip("time from", lambda k, row: row.cost if measured else "-"),
    ]
    return strip_table(strips, width)


def _dependences(choices: Mapping[str, PolicyChoice]) -> list[Line]:
    """Semaphores and waits of every dependence under every policy, each on the policy's own tiles."""
    rows = [
        [dep.name, dep.buffer, word, str(parse_policy(word).size(dep)), _waits(word, dep)]
        for word, choice in choices.items()
        if word != "stream"
        for dep in dependences(choice.program)
    ]
    program = next(iter(choices.values())).program
    again = [
        prose(f"{h.later} writes {h.buffer} again after {h.earlier} ({h.kind}): only stream order keeps them apart")
        for h in hazards(program)
    ]
    if not rows:
        return [prose("No kernel reads what another writes: there is nothing to synchronise."), *again]
    rows.sort(key=lambda row: row[0])
    return [*table(["dependence", "buffer", "policy", "semaphores", "waits"], rows, [False] * 3 + [True] * 2), *again]


def _waits(word: str, dep: TileDep) -> str:
    try:
        return str(wait_count(parse_policy(word), dep))
    except InputError:
        return "-"  # too many to be made: `predict` says why it leaves the policy out


def _defaults(choices: Mapping[str, PolicyChoice]) -> list[Line]:
    rows = [
        [
            word,
            option_form(tile_of(choice.program)),
            option_form(split_of(choice.program)),
            choice.order,
            choice.flags or "-",
        ]
        for word, choice in choices.items()
    ]
    return table(["policy", "tile", "split-K", "order", "flags"], rows, [False] * 5)


def _sources(choices: Mapping[str, PolicyChoice]) -> list[Line]:
    found = dict.fromkeys(choice.source for choice in choices.values() if choice.source)
    return [Line(""), *map(prose, found)] if found else []
