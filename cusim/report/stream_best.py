"""The row of the strongest stream order: its contender, and the footnote that says what it runs."""

from __future__ import annotations

from collections.abc import Sequence

from cusim.machine.machine import Machine
from cusim.report.result import STREAM_BEST, Contender, Footnote, Row
from cusim.report.shape import option_form, tile_text
from cusim.workloads.blocks import Architecture
from cusim.workloads.defaults import architecture_of, architectures

_LEAD = f"{STREAM_BEST} is stream order at its own best tile, order and split-K, chosen by the model alone"
#: Kernels that a footnote names one by one.
_MOST_NAMED = 6


def stream_best(given: Contender, machine: Machine) -> tuple[Contender, Footnote]:
    """Stream order at the tile, order and split-K that suit each kernel best, beginning with the stream plan *given*;
    and the footnote on it.
    """
    from cusim.tune.strongest import strongest_stream

    found = strongest_stream(given.program, machine, rule_of(machine), given.plan)
    contender = Contender(STREAM_BEST, found.program, found.plan)
    return contender, footnote(contender, dict(found.fixed), complete=found.complete)


def rule_of(machine: Machine) -> Architecture | None:
    """The rule for the blocks of *machine*'s GEMMs: by its name, else by its architecture."""
    return architecture_of(machine.name) or next((rule for rule in architectures() if rule.name == machine.arch), None)


def footnote(contender: Contender, fixed: dict[str, str], *, complete: bool = True) -> Footnote:
    """What each kernel of the strongest stream order runs, and that nobody but the model chose it.

    *fixed* says by kernel why its tile was not chosen; *complete* whether the search looked at everything.
    """
    kernels = [(k.name, _choice(contender, k.name, with_tile=k.name not in fixed)) for k in contender.program.kernels]
    search = "" if complete else "; not every candidate was tried"
    return Footnote(_LEAD, f"{_by_kernel(kernels)}{_reasons(fixed)}{search}")


def nothing_better() -> Footnote:
    """The footnote where the search found no stream order that is faster than the one given."""
    return Footnote(_LEAD, "it found none that is faster")


def tile_options(row: Row) -> str:
    """The options that give every policy the tiles and splits of *row*, as shipped workloads take them."""
    return f"--tile {option_form(row.tile)} --split-k {option_form(row.split_k)}"


def _choice(contender: Contender, name: str, *, with_tile: bool) -> str:
    kernel = contender.program.kernel(name)
    words = [tile_text(kernel.tile), f"split-K {kernel.grid[2]}"] if with_tile else []
    return ", ".join([*words, f"order {contender.plan.order_of(name).name}"])


def _by_kernel(kernels: Sequence[tuple[str, str]]) -> str:
    """Each kernel's own; kernels that share all their words stand together."""
    names: dict[str, list[str]] = {}
    for name, words in kernels:
        names.setdefault(words, []).append(name)
    return "; ".join(f"{_listed(group)} {words}" for words, group in names.items())


def _listed(names: Sequence[str]) -> str:
    shown = names[:_MOST_NAMED]
    more = [f"{len(names) - len(shown)} more"] if len(names) > len(shown) else []
    *first, last = [*shown, *more]
    return f"{', '.join(first)} and {last}" if first else last


def _reasons(fixed: dict[str, str]) -> str:
    """Why tiles of some kernels stayed."""
    names: dict[str, list[str]] = {}
    for name, why in fixed.items():
        names.setdefault(why, []).append(name)
    return "".join(f"; tile and split-K of {_listed(group)} stay: {why}" for why, group in names.items())
