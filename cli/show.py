"""``cusim show``: what there is, and one of it in detail."""

from __future__ import annotations

from typing import Any

import click

from cli.options import machine_options, quiet_option


@click.command(name="show", short_help="List or detail workloads, policies, machines and traces.")
@click.argument("what", metavar="[NAME|FILE]", required=False)
@click.option("--m", metavar="M", multiple=True, help="Rows of the workload shown.")
@click.option("--tile", metavar="MxNxK", multiple=True, help="Tile of the workload shown.")
@click.option("--split-k", metavar="Z", multiple=True, help="Split-K slices of the workload shown.")
@machine_options
@click.option(
    "--toml", is_flag=True, help="Print the program or the machine as TOML, to change and give back as a file."
)
@click.option("--diff", metavar="B", help="Show only where machine B, a name or a file, differs.")
@click.option("--json", "form", flag_value="json", help="A machine, or with --diff a comparison, as JSON.")
@quiet_option
def command(what: str | None, **given: Any) -> None:
    """List workloads, policies, orders, launches and machines, or show one of them.

    \b
    cusim show                        what there is
    cusim show h200                   a machine: each number, its unit, status and source
    cusim show h200 --diff mine.toml  where two machines differ, by how much, and how well each number is known
    cusim show h200 --toml            the same machine as a file of your own
    cusim show gpt3-mlp --m 768       kernels, dependences, and what each policy waits for
    cusim show gpt3-mlp --toml        the same program as a file of your own
    cusim show row.npz                a trace: where it comes from and where its time went
    """
    from cli.detail import show
    from cli.output import answer

    answer(show(what, given))
