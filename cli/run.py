"""``cusim run``: one plan on the simulated GPU or, with ``--gpu``, on a real one; its trace kept."""

from __future__ import annotations

from typing import Any

import click

from cli.exits import DEADLOCK
from cli.options import FILE, machine_options, plan_options, quiet_option, workload_argument


@click.command(name="run", short_help="Simulate or measure one plan and keep its trace.")
@workload_argument
@machine_options
@plan_options
@click.option("-o", "--output", type=FILE, metavar="FILE", help="Write the trace to FILE (.npz or .csv).")
@click.option("--gpu", is_flag=True, help="Run on a GPU instead of simulating: check, time, and record the blocks.")
@click.option(
    "--device",
    type=click.Choice(("cuda", "null")),
    default="cuda",
    show_default=True,
    help="With --gpu: the GPU, or a null device that has none and makes its times up.",
)
@click.option(
    "--repeats",
    type=click.IntRange(1, 100_000),
    default=21,
    show_default=True,
    metavar="N",
    help="With --gpu: timed runs of each kind.",
)
@click.option(
    "--check/--no-check",
    default=True,
    show_default=True,
    help="With --gpu: check the numbers under delays and in reverse order before timing.",
)
@click.option("--label", default="", metavar="TEXT", help="With --gpu: which set the record belongs to, kept in it.")
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

    With --gpu the same program and plan run on an NVIDIA GPU through CuPy: numbers are checked first (a wrong
    one is exit code 1, and no time is given), then unstamped runs are timed and a stamped one is recorded.

    \b
    cusim run --gpu gpt3-mlp --m 768 --policy row -o measured.npz

    Exit code 5 when the plan deadlocks; what had been simulated until then is still written. Exit code 3
    when there is no usable GPU.
    """
    if workload is None:
        raise click.UsageError("Name a workload or a program file; `cusim show` lists the workloads.")
    if gpu:
        from cli.run_gpu import print_measured

        ctx.exit(print_measured(workload, given))
    _refuse_without_gpu(ctx)
    from cli.single import print_run

    if print_run(workload, given):
        ctx.exit(DEADLOCK)


def _refuse_without_gpu(ctx: click.Context) -> None:
    """A usage error for options that only a run on a device has."""
    for name in ("device", "repeats", "check", "label"):
        if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name} belongs to a run on a GPU: give --gpu too.")
