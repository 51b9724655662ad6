"""cusim predicts what tile semaphores and kernel windows do for dependent GPU kernels, before any CUDA is written.

>>> import cusim
>>> workload = cusim.build_workload("gpt3-mlp", "h200", m=768)
>>> plan = cusim.build_plan(workload.program, policy="row", order="group:2")
>>> result = cusim.predict(workload.program, cusim.load_machine("h200"), plan)
>>> result.rounds
4

Times are integer picoseconds (``_ps``) inside and integer nanoseconds (``_ns``) in files. Names are imported when they
are first used, so that ``import cusim`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cusim.engine.predict import predict as predict
    from cusim.engine.result import Deadlock as Deadlock
    from cusim.engine.result import Prediction as Prediction
    from cusim.engine.result import Verdict as Verdict
    from cusim.errors import InputError as InputError
    from cusim.machine.load import load_machine as load_machine
    from cusim.machine.machine import Machine as Machine
    from cusim.machine.override import with_overrides as with_overrides
    from cusim.policies.plan import Plan as Plan
    from cusim.policies.registry import build_plan as build_plan
    from cusim.program.depends import dependences as dependences
    from cusim.program.program import Program as Program
    from cusim.program.toml_read import load_program as load_program
    from cusim.report.rows import compare as compare
    from cusim.trace.formats import read_trace as read_trace
    from cusim.trace.formats import write_trace as write_trace
    from cusim.trace.trace import Trace as Trace
    from cusim.workloads import build_workload as build_workload

_HOMES = {
    "Deadlock": "cusim.engine.result",
    "InputError": "cusim.errors",
    "Machine": "cusim.machine.machine",
    "Plan": "cusim.policies.plan",
    "Prediction": "cusim.engine.result",
    "Program": "cusim.program.program",
    "Trace": "cusim.trace.trace",
    "Verdict": "cusim.engine.result",
    "build_plan": "cusim.policies.registry",
    "build_workload": "cusim.workloads",
    "compare": "cusim.report.rows",
    "dependences": "cusim.program.depends",
    "load_machine": "cusim.machine.load",
    "load_program": "cusim.program.toml_read",
    "predict": "cusim.engine.predict",
    "read_trace": "cusim.trace.formats",
    "with_overrides": "cusim.machine.override",
    "write_trace": "cusim.trace.formats",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Imports a public name from its home on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'cusim' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(_HOMES)
