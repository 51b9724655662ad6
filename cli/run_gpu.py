"""The work of ``cusim run --gpu``: one program, one plan, one device; checked, timed, and its trace kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from cli.asked import read_asked
from cli.checkup import gpu_advice
from cli.exits import DEADLOCK, NO_GPU, OK
from cli.inputs import gathered
from cli.measured_text import deadlock_lines, measured_lines
from cli.output import answer, check_place, note, wrote
from cli.plans import STREAM, PlanWords
from cli.single import TRACES, check_single
from cli.subject import Subject
from cli.sweep import words
from cusim.errors import Problems, refuse

if TYPE_CHECKING:
    from backend_gpu.device import Device
    from cusim.machine.machine import Machine
    from cusim.policies.plan import Plan
    from cusim.program.program import Program

DEVICES = ("cuda", "null")


def print_measured(workload: str, given: Mapping[str, Any]) -> int:
    """Runs the plan on the device, writes its trace, prints what was measured; the exit code."""
    problems = Problems("the command line")
    gathered(problems, check_place, given["output"], TRACES)
    check_single(given, problems)
    for option, key in (("--set", "settings"), ("--dispatch", "dispatch")):
        if given[key]:
            problems.add(option, ", ".join(given[key]), "a GPU is as it is; only simulated ones can be told")
    launches = words(given["launch"])
    asked = read_asked(workload, {**given, "launch": ()}, problems)
    setting = asked.axes.machines[0]
    (subject,) = asked.subjects_of(setting, asked.axes.ms[0])
    program, plan = only_plan(subject, asked.typed, launches)
    machine = setting.apply(subject.overrides)
    refuse_unsafe(program, plan, machine)
    if given["device"] == "cuda" and (why := gpu_advice()):
        click.echo(f"cusim: {why}", err=True)
        return NO_GPU
    device = _device(given["device"], machine)
    return _measure(program, plan, device, machine, given, asked.axes.seeds[0])


def only_plan(subject: Subject, typed: PlanWords, launches: Sequence[str]) -> tuple[Program, Plan]:
    """The one program and plan asked for: row semaphores unless told otherwise, stream order where nothing depends."""
    from cusim.policies.registry import build_plan, split_sweep
    from cusim.program.depends import dependences

    deps = [dep.name for dep in dependences(subject.program)]
    kernels = [kernel.name for kernel in subject.program.kernels]
    policy = _one("--policy", [v for text in typed.policy for v in split_sweep(text, deps)])
    order = _one("--order", [v for text in typed.order for v in split_sweep(text, kernels)])
    flags = _one("--flags", [v for text in typed.flags for v in split_sweep(text, kernels)])
    launch = _one("--launch", launches)
    policy = policy or ("row" if deps else STREAM)
    choice = subject.choice(policy)
    own = choice.flags if launch in (None, "none") else choice.flags.replace("W", "")
    chosen = build_plan(
        choice.program, policy=policy, order=order or choice.order,
        flags="" if policy == STREAM else own if flags is None else flags, launch=launch,
    )  # fmt: skip
    return choice.program, chosen


def refuse_unsafe(program: Program, plan: Plan, machine: Machine) -> None:
    """InputError for a plan that is proved unsound, or that could hang the device by more waiters than slots."""
    from backend_gpu.cover import check_sound
    from cusim.engine.setup import slots_of
    from cusim.engine.verdict import CAN_DEADLOCK, verdict

    check_sound(program, plan)
    judged = verdict(program, plan, machine, slots_of(program, machine))
    if judged.status == CAN_DEADLOCK:
        links = "".join(f"\n    {link}" for link in judged.cycle)
        raise refuse("plan", "launch", plan.launch, f"{judged.status}: {judged.reason}{links}")


def _one(option: str, values: Sequence[str]) -> str | None:
    """The single value of an option, None for none."""
    distinct = list(dict.fromkeys(values))
    if len(distinct) > 1:
        why = f"run takes one plan, {len(distinct)} values were given: {', '.join(distinct)}"
        raise refuse("the command line", option, None, why)
    return distinct[0] if distinct else None


def _device(word: str, machine: Machine) -> Device:
    if word == "null":
        from backend_gpu.null_device import NullDevice

        return NullDevice(machine.limits.sms)
    from backend_gpu.cuda_device import CudaDevice

    return CudaDevice()


def _measure(
    program: Program, plan: Plan, device: Device, machine: Machine, given: Mapping[str, Any], seed: int
) -> int:
    from backend_gpu.runner import Deadlock, run
    from cusim.trace.formats import write_trace

    same = machine if device.facts.sms == machine.limits.sms and device.facts.arch == machine.arch else None
    outcome = run(
        program, plan, device, repeats=given["repeats"], check=given["check"], seed=seed, machine=same,
        label=given["label"],
    )  # fmt: skip
    if isinstance(outcome, Deadlock):
        answer(deadlock_lines(program, plan, device.facts, outcome))
        return DEADLOCK
    answer(measured_lines(program, plan, device.facts, outcome))
    if given["output"] is not None and outcome.trace is not None:
        write_trace(outcome.trace, given["output"])
        wrote(given["output"], quiet=given["quiet"])
    notes = [] if given["output"] else ["the trace was not kept; -o FILE.npz keeps it"]
    if same is None:
        notes.append(f"the device is not the machine {machine.name}: its occupancy was not compared with the model's")
    if not given["check"]:
        notes.append("the numbers were not checked (--no-check)")
    note([*outcome.notes, *notes], quiet=given["quiet"])
    return OK
