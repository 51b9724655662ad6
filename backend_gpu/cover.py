"""What is refused before anything is launched, with the reason: kernels without code, plans that do not fit."""

from __future__ import annotations

from collections.abc import Sequence

from backend_gpu.abi import SLOTS
from backend_gpu.device import Device, Loaded
from cusim.errors import CusimError, Problems
from cusim.machine.machine import Machine
from cusim.machine.occupancy import occupancy
from cusim.policies.plan import Plan
from cusim.policies.semaphores import check_policy
from cusim.program.depends import dependences, hazards
from cusim.program.program import Program


class OccupancyError(CusimError):
    """The device holds another number of blocks an SM than the model says: no comparison would mean anything."""


def check_coverage(program: Program, plan: Plan, device: Device) -> None:
    """InputError, with everything at once, for what the device cannot run as asked."""
    problems = Problems(program.name)
    for place, kernel in enumerate(program.kernels):
        why = device.why_not(program, kernel)
        if why is not None:
            problems.add(f"kernel[{place}]", kernel.name, why)
    _check_slots(program, plan, problems)
    _check_memory(program, device, problems)
    if plan.overlapped:
        for hazard in hazards(program):
            why = f"{hazard.later} reuses it after {hazard.earlier} ({hazard.kind}): only stream order keeps them apart"
            problems.add("plan.launch", hazard.buffer, why)
        for dep in dependences(program):
            if dep.name not in plan.sync:
                problems.add("plan.sync", dep.name, f"launch {plan.launch} needs a policy for this dependence")
    problems.raise_if_any()


def check_sound(program: Program, plan: Plan) -> None:
    """InputError for a policy that is proved unsound: a block would read too early, or wait for ever."""
    problems = Problems("plan")
    for dep in dependences(program) if plan.overlapped else ():
        for fault in check_policy(plan.sync[dep.name], dep):
            problems.add(
                f"sync.{dep.name}", plan.sync[dep.name].name, f"unsound at tile {fault.where[:3]}: {fault.text}"
            )
    problems.raise_if_any()


def declared_notes(program: Program, loaded: Sequence[Loaded], machine: Machine | None) -> tuple[str, ...]:
    """What differs between a block as the program declares it and as it was compiled; nothing without a *machine*.

    OccupancyError where the model, given what was compiled, holds another number of blocks an SM than the device.
    """
    if machine is None:
        return ()
    notes = []
    for kernel, found in zip(program.kernels, loaded, strict=True):
        model = occupancy(machine, found.threads, found.registers, found.smem_bytes).blocks_per_sm
        if model != found.blocks_per_sm:
            raise OccupancyError(
                f"an SM holds {found.blocks_per_sm} blocks of {kernel.name} by the device's own count, {model} by "
                f"{machine.name}'s model: {found.threads} threads, {found.registers} registers, "
                f"{found.smem_bytes} bytes"
            )
        block = kernel.block
        said = occupancy(machine, block.threads, block.registers, block.smem_bytes, block.cluster).blocks_per_sm
        if said != found.blocks_per_sm:
            notes.append(
                f"{kernel.name} is declared with blocks of which an SM holds {said}, the kernel that ran has "
                f"{found.blocks_per_sm}: predictions are for other slots"
            )
    return tuple(notes)


def needed_bytes(program: Program) -> int:
    """Device memory of both input sets and of split-K's partial sums."""
    partials = sum(k.blocks * k.tile[0] * k.tile[1] * 4 for k in program.kernels if k.grid[2] > 1)
    return 2 * sum(buffer.size_bytes for buffer in program.buffers) + partials


def _check_slots(program: Program, plan: Plan, problems: Problems) -> None:
    deps = dependences(program) if plan.overlapped else ()
    for what, names in (("waits for", [d.consumer for d in deps]), ("is read by", [d.producer for d in deps])):
        for name in dict.fromkeys(names):
            if names.count(name) > SLOTS:
                why = f"{what} {names.count(name)} kernels; the GPU's kernels take at most {SLOTS}"
                problems.add("kernel", name, why)


def _check_memory(program: Program, device: Device, problems: Problems) -> None:
    """Checks take as much again, in single precision; null devices do not say what they have."""
    needed, have = 4 * needed_bytes(program), device.facts.memory_bytes
    if have and needed > have:
        why = f"needs about {needed >> 30} GiB with its checks, the device has {have >> 30} GiB free"
        problems.add("buffers", None, why)
