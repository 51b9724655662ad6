"""``cusim predict --list``: every option that takes several values, and what the values may be."""

from __future__ import annotations

from cli.options import DEFAULT_MACHINE, DISPATCHES
from cli.plans import DEFAULT_POLICIES
from cli.subject import Sizes, read_subject
from cusim.machine.load import load_machine, machine_names
from cusim.policies.plan import LAUNCHES
from cusim.policies.registry import policy_names
from cusim.program.depends import dependences
from cusim.report.table import aligned


def sweepable_lines(workload: str | None) -> list[str]:
    """A table of options and values; with a *workload* also the names of its kernels and dependences."""
    rows = [
        ["--m", "whole numbers, as a,b or start:stop:step", "the workload's own"],
        ["--tile", "MxNxK, or one a kernel: 128x256x64+64x256x64", "the workload's own"],
        ["--split-k", "whole numbers, or one a kernel: 2+1", "the workload's own"],
        ["--machine", f"{' '.join(machine_names())}, or a file", DEFAULT_MACHINE],
        ["--set", "KEY=VALUE or KEY=xFACTOR, keys as in `cusim show MACHINE`", "nothing"],
        ["--policy", f"stream {' '.join(policy_names())}", ",".join(DEFAULT_POLICIES)],
        ["--order", "row column group:G, or a .json table", "the workload's, else row"],
        ["--flags", "letters of WRTA, or -", "the workload's, else R for tile"],
        ["--launch", " ".join(launch for launch in LAUNCHES if launch != "stream"), "wait-first; none with W"],
        ["--dispatch", " ".join(DISPATCHES), "arrival"],
        ["--seed", "whole numbers from 0", "0"],
    ]
    lines = aligned(["option", "values", "default"], rows, [False] * 3)
    if workload is None:
        return lines
    program = read_subject(workload, load_machine(DEFAULT_MACHINE), Sizes()).program
    deps = " ".join(dep.name for dep in dependences(program)) or "none"
    kernels = " ".join(kernel.name for kernel in program.kernels)
    return [*lines, "", f"kernels of {program.name}: {kernels}", f"dependences: {deps}"]
