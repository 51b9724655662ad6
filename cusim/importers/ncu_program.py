"""A program file from a report of Nsight Compute: everything but which tiles each kernel needs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cusim.errors import InputError, refuse
from cusim.importers.names import unique_names
from cusim.importers.ncu import Launch, NcuReport
from cusim.machine.load import load_machine, machine_names
from cusim.machine.machine import Machine
from cusim.program.build import tile_kernel
from cusim.program.kernel import BlockResources, Measured
from cusim.program.program import Program
from cusim.program.toml_read import parse_program
from cusim.program.toml_write import program_to_toml

_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_LONGEST_COMMENT = 160
_OPTION = "--measured-on"


def measured_on(report: NcuReport, given: str | None, source: str) -> tuple[str, tuple[str, ...]]:
    """The machine whose times the report holds, and what is to be said of the choice.

    It is the one *given*, or else the preset of the report's GPU. Raises InputError where neither says one, or where
    the preset has other SMs than the GPU.
    """
    allowed = f"allowed: {' '.join(machine_names())}, or the file of a machine"
    if given is not None:
        machine = _given(given, allowed)
        return machine.name, _other_sms(report, machine)
    if report.device is None:
        raise refuse(source, _OPTION, None, f"the report does not name its GPU: give {_OPTION}; {allowed}")
    for name in machine_names():
        machine = load_machine(name)
        if re.search(rf"\b{re.escape(machine.gpu)}\b", report.device, re.IGNORECASE):
            differs = _other_sms(report, machine)
            if differs:
                raise refuse(source, _OPTION, None, f"{differs[0]}: give {_OPTION}; {allowed}")
            return name, (f"measured on {name}, since the report names {report.device}",)
    raise refuse(source, _OPTION, None, f"no preset for {report.device}: give {_OPTION}; {allowed}")


def program_text(report: NcuReport, name: str, machine: str) -> str:
    """The program of a report as TOML, one kernel a launch, in order, with a line for the needs of each.

    Block x of a launch is column c, block y (and z, which follows y) is row r. The text reads back as it was meant.
    """
    names = unique_names(launch.name for launch in report.launches)
    parts = [
        tile_kernel(
            short,
            (launch.grid[1] * launch.grid[2], launch.grid[0], 1),
            BlockResources(launch.threads, launch.registers, launch.smem_bytes, launch.cluster),
            Measured(launch.time_ns * 1000, machine),
        )
        for short, launch in zip(names, report.launches, strict=True)
    ]
    buffers = tuple(buffer for _, made in parts for buffer in made)
    program = Program(tuple(kernel for kernel, _ in parts), buffers, name=_clean(name) or "program")
    head, *kernels = program_to_toml(program).split("\n\n[[kernel]]\n")
    text = "\n\n".join(
        [f"{_intro(report, machine)}\n{head}"]
        + [_commented(place, kernel, names, report.launches) for place, kernel in enumerate(kernels)]
    )
    if parse_program(text, name, name) != program:
        raise AssertionError("what was written does not read back as the same program")
    return text


def _given(given: str, allowed: str) -> Machine:
    try:
        return load_machine(given)
    except InputError as error:
        why = error.problems[0].why if len(error.problems) == 1 else f"is no machine; {allowed}"
        raise refuse("the command line", _OPTION, given, why) from None


def _other_sms(report: NcuReport, machine: Machine) -> tuple[str, ...]:
    if report.sms is None or report.sms == machine.limits.sms:
        return ()
    gpu = report.device or "the report's GPU"
    return (f"{gpu} has {report.sms} SMs, machine {machine.name} has {machine.limits.sms}",)


def _intro(report: NcuReport, machine: str) -> str:
    gpu = f" ({_clean(report.device)})" if report.device else ""
    return "\n".join(
        [
            f"# From a report of Nsight Compute, launches in order, measured on {machine}{gpu}.",
            "# Times are each kernel's alone, at the clocks that ncu set: its base clock unless --clock-control none.",
            "# Kernels are independent of each other until their needs are filled in, which tiles of earlier kernels",
            "# a tile (r, c) reads: c is the block's x, r its y. Indices are affine in r and c, or : for all of them.",
        ]
    )


def _commented(place: int, kernel: str, names: Sequence[str], launches: Sequence[Launch]) -> str:
    launch = launches[place]
    lines = ["[[kernel]]", f"# {_clean(launch.name)}"]
    if not launch.shaped:
        lines.append("# The report gives the number of blocks but not their grid; write grid = [rows, columns] here.")
    elif launch.grid[2] > 1:
        lines.append(
            f"# Grid ({', '.join(map(str, launch.grid))}): rows count y, then z: r = z * {launch.grid[1]} + y."
        )
    lines.append(kernel.rstrip("\n"))
    if place:
        lines.append(f'# needs = ["{names[place - 1]}[r, :]"]')
    return "\n".join(lines) + ("\n" if place == len(launches) - 1 else "")


def _clean(text: str) -> str:
    """Text without line breaks and other control characters, cut to a readable length."""
    text = _CONTROL.sub(" ", text).strip()
    return text if len(text) <= _LONGEST_COMMENT else text[: _LONGEST_COMMENT - 3] + "..."
