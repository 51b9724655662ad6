"""The work of ``cusim show``: what a word or file is, and its lines."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cli.inputs import Axes, read_axes
from cli.output import columns, note
from cli.subject import Sizes, read_subject
from cusim.engine.setup import check_measured
from cusim.errors import Problems, did_you_mean, refuse
from cusim.files import read_file
from cusim.machine.load import load_machine, machine_names
from cusim.machine.machine import SCHEMA as MACHINE_SCHEMA
from cusim.machine.write import machine_to_toml
from cusim.policies.registry import policy_names
from cusim.report.catalogue import catalogue_lines, policy_lines
from cusim.report.line import Line
from cusim.report.machine_diff import difference_json, difference_lines
from cusim.report.machine_text import machine_lines
from cusim.report.program_text import program_lines
from cusim.report.result import STREAM_BEST
from cusim.report.trace import shape_in
from cusim.report.trace_text import trace_lines
from cusim.workloads import workload_names

_TRACES = (".npz", ".csv")
_SIZES = ("m", "tile", "split_k")


def show(what: str | None, given: Mapping[str, Any]) -> list[Line]:
    """The lines for *what*: nothing (the catalogue), a machine, a workload, a policy, a program or a trace.

    Raises InputError for a word or file that is none of them, and for options that do not go with it.
    """
    kind = kind_of(what)
    _check_options(kind, given)
    if what is None:
        return catalogue_lines()
    if kind == "policy":
        return policy_lines(what)
    if kind == "trace":
        return _trace_lines(Path(what), quiet=given["quiet"])
    if kind == "machine":
        return _machine(what, given)
    return _program(what, given)


def kind_of(what: str | None) -> str:
    """``catalogue``, ``machine``, ``workload``, ``policy``, ``trace`` or ``program``; InputError for none of them."""
    if what is None:
        return "catalogue"
    suffix = Path(what).suffix.lower()
    if suffix in _TRACES:
        return "trace"
    if suffix in (".toml", ".json"):
        return _kind_of_file(Path(what))
    if what == "-":
        return "program"
    kinds = (
        ("machine", machine_names()),
        ("workload", workload_names()),
        ("policy", ("stream", STREAM_BEST, *policy_names())),
    )
    for kind, names in kinds:
        if what in names or (kind == "policy" and what.partition(":")[0] in names):
            return kind
    known = [name for _, group in kinds for name in group]
    why = f"unknown: {did_you_mean(what, known)}  (or a .toml, .npz or .csv file)"
    raise refuse("the command line", "show", what, why)


def _kind_of_file(path: Path) -> str:
    """A machine where the file says so; a program otherwise, whose reader says what is wrong."""
    try:
        text = read_file(path).decode()
        data = tomllib.loads(text) if path.suffix.lower() == ".toml" else json.loads(text)
    except (OSError, ValueError, RecursionError):
        data = {}
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema == MACHINE_SCHEMA:
        return "machine"
    if isinstance(schema, str) and schema.startswith("cusim.predict/"):
        raise refuse(str(path), "schema", schema, "is a prediction: `cusim plot` draws it")
    return "program"


def _check_options(kind: str, given: Mapping[str, Any]) -> None:
    """Raises InputError for every option that says nothing about this *kind* of thing."""
    fits = {
        "m": ("workload",),
        "tile": ("workload",),
        "split_k": ("workload",),
        "machine": ("workload", "program"),
        "settings": ("workload", "program", "machine"),
        "toml": ("workload", "program", "machine"),
        "diff": ("machine",),
        "form": ("machine",),
    }
    problems = Problems("the command line")
    for name, kinds in fits.items():
        if given[name] and kind not in kinds:
            option = {"settings": "--set", "split_k": "--split-k", "form": "--json"}.get(name, f"--{name}")
            problems.add(option, None, f"goes with a {' or a '.join(kinds)}, not with a {kind}")
    problems.raise_if_any()


def _machine(what: str, given: Mapping[str, Any]) -> list[Line]:
    axes = _single({**given, "machine": (what,)})
    machine = axes.machines[0].apply()
    if given["toml"]:
        return _verbatim(machine_to_toml(machine))
    other = load_machine(given["diff"]) if given["diff"] else None
    if other is None:
        as_json = json.dumps(machine.to_json(), indent=2, ensure_ascii=False)
        return _verbatim(as_json) if given["form"] else machine_lines(machine)
    if given["form"]:
        return _verbatim(difference_json(machine, other))
    return difference_lines(machine, other, columns())


def _program(what: str, given: Mapping[str, Any]) -> list[Line]:
    axes = _single(given)
    setting = axes.machines[0]
    subject = read_subject(what, setting.machine, Sizes(axes.ms[0], axes.tiles[0], axes.splits[0]))
    problems = Problems(subject.source)
    check_measured(subject.program, setting.machine, problems)
    problems.raise_if_any()
    if given["toml"]:
        from cusim.program.toml_write import program_to_toml

        shipped = subject.workload.text if subject.workload else ""
        return _verbatim(shipped or program_to_toml(subject.program))
    source = subject.workload.source if subject.workload else ""
    choices = {policy: subject.choice(policy) for policy in ("stream", "row", "tile", "batched:2")}
    return program_lines(subject.program, setting.apply(subject.overrides), choices, source, columns())


def _verbatim(text: str) -> list[Line]:
    """The lines of a file, which are never folded."""
    return [Line(line) for line in text.rstrip("\n").split("\n")]


def _single(given: Mapping[str, Any]) -> Axes:
    """The axes of one thing to show; InputError where an option holds several values."""
    axes = read_axes({"dispatch": (), "seed": (), **given})
    problems = Problems("the command line")
    several = {"--m": axes.ms, "--tile": axes.tiles, "--split-k": axes.splits, "--machine, --set": axes.machines}
    for option, values in several.items():
        if len(values) > 1:
            problems.add(option, None, f"show takes one value, {len(values)} were given")
    problems.raise_if_any()
    return axes


def _trace_lines(path: Path, *, quiet: bool) -> list[Line]:
    from cusim.trace.formats import read_trace

    trace = read_trace(path)
    shape, guessed = shape_in(trace, str(path))
    if guessed:
        note([f"{path} does not say {', '.join(guessed)}"], quiet=quiet)
    return trace_lines(trace, shape)
