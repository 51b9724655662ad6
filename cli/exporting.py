"""The work of ``cusim export``: what to export, where to, and what was written."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import click

from cli.output import check_place, note
from cusim.errors import InputError, Problems, did_you_mean

FORMATS = ("chrome",)
_TRACES = (".npz", ".csv")
_OUTPUTS = (".json", ".json.gz")
_TIME = r"\d{1,12}(?:\.\d{1,3})?"
_WINDOW = re.compile(rf"({_TIME})?:({_TIME})?", re.ASCII)
_COUNT = re.compile(r"\d{1,12}", re.ASCII)
_PART = re.compile(r"(?:0?\.\d+|1\.0*)", re.ASCII)
#: An end of a window that is left open.
_NEVER_NS = 2**62


def export(
    source: Path,
    *,
    output: Path | None,
    form: str,
    window: str | None,
    sample: str | None,
    check: bool,
    quiet: bool,
) -> str:
    """Writes, or only checks, a file for a viewer and returns its path; InputError for all that is wrong at once."""
    only_check = check and _is_output(source)
    problems = Problems("the command line")
    if only_check:
        for option, value in (("--output", output), ("--window", window), ("--sample", sample)):
            if value is not None:
                problems.add(option, str(value), f"says nothing of a check of {source}")
    elif source.suffix.lower() not in _TRACES:
        problems.add("TRACE", str(source), f"unknown suffix: {did_you_mean(source.suffix.lower(), _TRACES)}")
    if form not in FORMATS:
        problems.add("--format", form, did_you_mean(form, FORMATS))
    window_ns = None if window is None else _window(window, problems)
    part = None if sample is None else _sample(sample, problems)
    target = output if output is not None else source.with_suffix(".json.gz")
    if not only_check:
        _check_target(target, problems)
    problems.raise_if_any()
    if not only_check:
        _write(source, target, window_ns, part, quiet=quiet)
    if check:
        _check(source if only_check else target, quiet=quiet)
    return str(source if only_check else target)


def _write(
    source: Path, target: Path, window_ns: tuple[int, int] | None, sample: int | float | None, *, quiet: bool
) -> None:
    from cusim.report.semaphores import posted_semaphores
    from cusim.trace.formats import read_trace
    from cusim.trace.formats.chrome import write_chrome

    trace = read_trace(source)
    done = write_chrome(trace, target, window_ns=window_ns, sample=sample, semaphores=posted_semaphores(trace))
    if quiet:
        return
    click.echo(f"wrote {target}: {done.blocks} of {done.of} blocks, {done.waits} waits, {done.arrows} arrows", err=True)
    note(["open it at https://ui.perfetto.dev: the page reads it in your browser, the trace stays local"])


def _check(path: Path, *, quiet: bool) -> None:
    from cusim.trace.formats.chrome_check import check_chrome

    found = check_chrome(path)
    if not quiet:
        spans = sum(found.spans.values())
        click.echo(
            f"checked {path}: {spans} spans on {found.threads} tracks, {found.arrows} arrows, no fault", err=True
        )


def _is_output(path: Path) -> bool:
    return path.name.lower().endswith(_OUTPUTS)


def _check_target(target: Path, problems: Problems) -> None:
    try:
        check_place(target)
    except InputError as error:
        problems.extend(error)
    # A device such as a full disk's stand-in or a pipe has no suffix, and is written as it is.
    if not _is_output(target) and (target.is_file() or not target.exists()):
        problems.add("--output", str(target), f"unknown suffix: allowed: {' '.join(_OUTPUTS)}")


def _window(text: str, problems: Problems) -> tuple[int, int] | None:
    match = _WINDOW.fullmatch(text.strip())
    if match is not None and (match[1] or match[2]):
        start = int(Decimal(match[1] or 0) * 1000)
        stop = int(Decimal(match[2]) * 1000) if match[2] else _NEVER_NS
        if start < stop:
            return start, stop
    problems.add(
        "--window", text, "allowed: A:B with A < B, microseconds of run time, such as 100:150.5; one may be left out"
    )
    return None


def _sample(text: str, problems: Problems) -> int | float | None:
    text = text.strip()
    if _COUNT.fullmatch(text) and int(text) > 0:
        return int(text)
    if _PART.fullmatch(text) and float(text) > 0:
        return float(text)
    problems.add(
        "--sample", text, "allowed: a number of blocks from 1, or a part of them above 0 up to 1.0, such as 0.1"
    )
    return None
