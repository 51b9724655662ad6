"""``cusim predict``: what each policy would take, against the best stream order."""

from __future__ import annotations

from typing import Any

import click

from cli.exits import DEADLOCK
from cli.options import FILE, machine_options, plan_options, quiet_option, workload_argument


@click.command(name="predict", short_help="Predict how long each synchronisation policy takes.")
@workload_argument
@machine_options
@plan_options
@click.option(
    "--best-stream/--no-best-stream",
    default=True,
    help="One more row: stream order at its own best tile, order and split-K.  [default: on]",
)
@click.option(
    "--why",
    is_flag=True,
    help="Where the time goes in stream order and under the best policy, and how far its gain carries; for one case.",
)
@click.option("--json", is_flag=True, help="One JSON document (cusim.predict/1).")
@click.option("--csv", is_flag=True, help="One CSV line a row, times in ns.")
@click.option("--md", is_flag=True, help="Markdown tables.")
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="FILE",
    help="Write to FILE (.json .csv .md .txt). Without --json, --csv or --md, stdout still gets the table.",
)
@click.option(
    "--time-unit",
    type=click.Choice(["ns", "us", "ms"]),
    default="us",
    show_default=True,
    help="Unit of times in tables; JSON and CSV are always in ns.",
)
@click.option("--list", "listing", is_flag=True, help="List what can be swept, and stop.")
@quiet_option
@click.pass_context
def command(ctx: click.Context, /, workload: str | None, listing: bool, **given: Any) -> None:
    """Predict how long WORKLOAD takes under each policy, against the best stream order.

    WORKLOAD is a shipped workload (`cusim show`) or a program in a TOML file; - reads standard input.
    Any option may hold several values, as a,b or start:stop:step, and is then swept.

    \b
    cusim predict gpt3-mlp --m 256:1024:256
    cusim predict gpt3-mlp --m 768 --policy row,tile --order row,group:2 --flags -,R
    cusim predict gpt3-mlp --m 768 --why
    cusim predict mine.toml --set machine.sms=66,132 --json

    Exit code 5 when a row deadlocks; the table is still printed.
    """
    if listing:
        from cli.sweepable import sweepable_lines

        click.echo("\n".join(sweepable_lines(workload)))
        return
    if workload is None:
        raise click.UsageError("Name a workload or a program file; `cusim show` lists the workloads.")
    from cli.comparison import print_comparison

    if print_comparison(workload, given):
        ctx.exit(DEADLOCK)
