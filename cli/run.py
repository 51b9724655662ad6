"""``cusim run``: one plan on the simulated GPU, and its trace kept."""

from __future__ import annotations

from typing import Any

import click

from cli.exits import DEADLOCK, NO_GPU
from cli.options import FILE, machine_options, plan_options, quiet_option, workload_argument


@click.command(name="run", short_help="Simulate one plan and keep its trace.")
@workload_argument
@machine_options
@plan_options
@click.option("-o", "--output", type=FILE, metavar="FILE", help="Write the trace to FILE (.npz or .csv).")
@click.option("--gpu", is_flag=True, help="Run on a GPU instead: not part of this version; says what is missing.")
@quiet_option
@click.pass_context
def command(ctx: click.Context, /, workload: str | None, gpu: bool, **given: Any) -> None:
    """Simulate WORKLOAD under one plan, print where the time went, and keep the trace with -o.

    WORKLOAD is a shipped workload (`cusim show`) or a program in a TOML file; - reads standard input.
    Every option takes one value: `cusim predict` compares several. Without --policy the plan is row
    semaphores with the workload's own order and flags, or stream order where nothing depends.

    \b
    cusim run gpt3-mlp --m 768 --policy row -o row.npz
    cusim plot row.npz

    Exit code 5 when the plan deadlocks; what had run until then is still written.
    """
    if gpu:
        from cli.checkup import gpu_advice

        click.echo(f"cusim: {gpu_advice()}", err=True)
        ctx.exit(NO_GPU)
    if workload is None:
        raise click.UsageError("Name a workload or a program file; `cusim show` lists the workloads.")
    from cli.single import print_run

    if print_run(workload, given):
        ctx.exit(DEADLOCK)
