"""Options that several verbs share, so that they read alike everywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Verb = TypeVar("Verb", bound=Callable[..., Any])
DEFAULT_MACHINE = "h200"
DISPATCHES = ("arrival", "random", "adversarial")

#: For options of which only the last use counts.
FILE = click.Path(dir_okay=True, path_type=Path)


def workload_argument(verb: Verb) -> Verb:
    """WORKLOAD or FILE.toml, and the sizes that a shipped workload may be given."""
    for option in (
        click.option("--split-k", metavar="Z", multiple=True, help="Split-K slices of the workload's kernels."),
        click.option("--tile", metavar="MxNxK", multiple=True, help="Tile of the workload's kernels."),
        click.option("--m", metavar="M", multiple=True, help="Rows of the workload (batch x sequence)."),
        click.argument("workload", metavar="WORKLOAD|FILE.toml", required=False),
    ):
        verb = option(verb)
    return verb


def machine_options(verb: Verb) -> Verb:
    """``--machine`` and ``--set``."""
    for option in (
        click.option("--set", "settings", metavar="KEY=VALUE", multiple=True,
                     help="What-if: a number of the machine, such as machine.sms=108, post_ps=900ns or post_ps=x10."),
        click.option("--machine", metavar="NAME|FILE", multiple=True,
                     help=f"Machine, by name or file.  [default: {DEFAULT_MACHINE}]"),
    ):  # fmt: skip
        verb = option(verb)
    return verb


def plan_options(verb: Verb) -> Verb:
    """Policy, order, flags and launch, and how the simulated GPU dispatches."""
    for option in (
        click.option("--seed", metavar="N", multiple=True, help="Seed of --dispatch random.  [default: 0]"),
        click.option("--dispatch", metavar="|".join(DISPATCHES), multiple=True,
                     help="Order in which queued kernels get SMs.  [default: arrival]"),
        click.option("--launch", metavar="NAME", multiple=True,
                     help="How a consumer is held back: wait-first, wait-all, wait-value, none; on a GPU graph, pdl."),
        click.option("--flags", metavar="WRTA", multiple=True, help="cuSync's optimisation flags, or - for none."),
        click.option("--order", metavar="NAME", multiple=True,
                     help="Tile order: row, column, group:G; or up:row,down:column."),
        click.option("--policy", metavar="NAME", multiple=True,
                     help="Policy of every dependence, or of each: 'qkv>t:row,r>t:tile'."),
    ):  # fmt: skip
        verb = option(verb)
    return verb


def quiet_option(verb: Verb) -> Verb:
    """``--quiet``."""
    return click.option("-q", "--quiet", is_flag=True, help="No advice and no progress on stderr.")(verb)
