"""The ``cusim`` command: finds the verb, runs it, and turns every failure into one line and an exit code."""

from __future__ import annotations

import difflib
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from cli.exits import FAILED, INTERRUPTED, PIPE_CLOSED, USAGE

#: Verb: the module that holds its ``command``, and its line in ``cusim --help``, which imports none.
VERBS = {
    "predict": (
        "cli.predict",
        "Predict how long each synchronisation policy takes; compare with stream order.",
    ),
    "run": ("cli.run", "Simulate one plan, or run it on a GPU, and keep its trace."),
    "plot": ("cli.plot", "Draw a trace as a timeline of blocks, or a prediction as bars."),
    "export": ("cli.export", "Export a trace for a trace viewer such as Perfetto."),
    "import": ("cli.import_", "Turn a profiler's report into a program file."),
    "calibrate": ("cli.calibrate", "Fit a machine to recordings of a GPU, each number with its error."),
    "reproduce": ("cli.reproduce", "Put a paper's claims beside what the model says of them."),
    "validate": ("cli.validate", "Judge predictions against measured times, beside simple rules."),
    "show": ("cli.show", "List or detail workloads, policies, machines and traces."),
    "doctor": ("cli.doctor", "Report versions, name clashes and what the GPU backend would find."),
}
#: Verbs of the design that no module provides yet.
PLANNED = frozenset(("tune", "compile"))


class Verbs(click.Group):
    """A group that imports a verb when it is called, and maps failures to cusim's exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs, in the order in which they are usually needed."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports the verb's module; None for a word that is no verb."""
        if cmd_name not in VERBS:
            return None
        command = importlib.import_module(VERBS[cmd_name][0]).command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the verbs from the table above, so that ``--help`` imports none of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(verb, line) for verb, (_, line) in VERBS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb asked for; a usage error with the closest verb when there is none of that name."""
        word = args[0]
        if self.get_command(ctx, word) is None and not word.startswith("-"):
            ctx.fail(_unknown_verb(word))
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the verb; a reader of stdout who went away ends it quietly."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # Caught here because click itself would turn it into a plain failure.
            _leave_closed_pipe()

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Runs the command line and always leaves through :class:`SystemExit`."""
        try:
            code = super().main(args, prog_name or "cusim", complete_var, standalone_mode=False, **extra)
            sys.stdout.flush()
        except BaseException as error:
            _leave(error)
        sys.exit(code if isinstance(code, int) else 0)


def _unknown_verb(word: str) -> str:
    if word in PLANNED:
        return f'"{word}" is planned and not part of this version; it has: {" ".join(VERBS)}'
    close = difflib.get_close_matches(word, VERBS, n=1, cutoff=0.5)
    hint = f" Did you mean {close[0]}?" if close else ""
    return f'No such command "{word}".{hint} Commands: {" ".join(VERBS)}'


def _leave(error: BaseException) -> NoReturn:
    """Says what went wrong on stderr and exits with the code for it."""
    from cusim.errors import CusimError, InputError

    if isinstance(error, SystemExit):
        raise error
    if isinstance(error, click.exceptions.Exit):
        sys.exit(error.exit_code)
    if isinstance(error, (click.Abort, KeyboardInterrupt)):
        click.echo("cusim: interrupted", err=True)
        sys.exit(INTERRUPTED)
    if isinstance(error, BrokenPipeError):
        _leave_closed_pipe()
    if isinstance(error, click.ClickException):
        error.show()
        sys.exit(error.exit_code)
    if isinstance(error, CusimError):
        click.echo(f"cusim: {error}", err=True)
        sys.exit(USAGE if isinstance(error, InputError) else FAILED)
    _leave_unexpected(error)


def _leave_unexpected(error: BaseException) -> NoReturn:
    if isinstance(error, MemoryError):
        click.echo("cusim: out of memory; ask for fewer values or a smaller program", err=True)
        sys.exit(FAILED)
    if isinstance(error, ModuleNotFoundError) and not (error.name or "").startswith(("cusim", "cli", "backend_gpu")):
        click.echo(f"cusim: the Python package {error.name} is missing; `cusim doctor` lists what is needed", err=True)
        sys.exit(FAILED)
    if isinstance(error, OSError) and error.filename is not None:
        click.echo(f"cusim: {error.filename}: {error.strerror}", err=True)
        sys.exit(FAILED)
    if os.environ.get("CUSIM_DEBUG", "") not in ("", "0"):
        raise error
    click.echo(
        f"cusim: unexpected {type(error).__name__}: {error}\n"
        "This is a mistake in cusim, not in your input. Please report it with the command line, the\n"
        "output of `cusim doctor`, and the traceback that CUSIM_DEBUG=1 prints.",
        err=True,
    )
    sys.exit(FAILED)


def _leave_closed_pipe() -> NoReturn:
    # Python would flush the closed pipe once more at exit and complain.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(PIPE_CLOSED)


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from cusim.report.version import cusim_version

        click.echo(f"cusim {cusim_version()}")
        ctx.exit()


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version,
    help="Print the version and exit.",
)  # fmt: skip
def cusim() -> None:
    """Predict what finer synchronisation of dependent GPU kernels gains or loses.

    Start with: cusim predict gpt3-mlp --m 768

    \b
    stdout is the answer, stderr advice and progress. Exit codes: 0 ok, 1 failed,
    2 bad input, 3 no usable GPU, 4 a validation gate missed, 5 a deadlock, 130 interrupted.
    """


def main() -> None:
    """Entry point of the installed command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal without ± or § shows a question mark instead of ending the command.
            stream.reconfigure(errors="replace")
    cusim.main(prog_name="cusim")


if __name__ == "__main__":
    main()
