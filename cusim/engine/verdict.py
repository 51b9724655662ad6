"""Could a plan hang? Decided from grids, slots and launch alone, before anything runs (design §6.7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cusim.engine.result import Verdict
from cusim.engine.setup import kernel_occupancy, kernel_room
from cusim.machine.machine import Machine
from cusim.machine.room import sm_room
from cusim.policies.orders import order_table
from cusim.policies.plan import Plan
from cusim.program.depends import dependences
from cusim.program.kernel import Kernel
from cusim.program.program import Program

SAFE = "safe by construction"
IF_ARRIVAL = "safe if arrival order holds"
CAN_DEADLOCK = "can deadlock"


def verdict(program: Program, plan: Plan, machine: Machine, slots: Mapping[str, int]) -> Verdict:
    """The verdict for a plan on a machine; *slots* is how many blocks of each kernel the machine holds.

    Waiting blocks hold their slots, so a plan hangs when they fill every slot that a block they wait for could take.
    Blocks downstream of a kernel that always leave it one slot, and consumers released only once every producer block
    has started, exclude that. A release by the first producer block leaves it to the order of arrival, which no NVIDIA
    document promises; without one (launch ``none``, flag W) nothing puts the producer first.
    """
    slices = _slices_out_of_order(program, plan, slots)
    if slices:
        return slices
    if not plan.overlapped:
        return Verdict(SAFE, "one stream: a kernel starts when the one before has ended")
    worst = Verdict(SAFE, "waiting blocks always leave a slot for the blocks they wait for")
    for upstream, downstream in _threats(program, machine):
        names = " and ".join(downstream)
        cycle = (
            f"{names} tiles fill every slot that {upstream} could take",
            f"they wait for {upstream} tiles",
            f"{upstream} tiles wait for a slot",
        )
        unheld = [name for name in downstream if plan.launch == "none" or plan.flags_of(name).W]
        if unheld:
            reason = f"nothing puts {upstream} before {' and '.join(unheld)}, whose waiting blocks can fill every slot"
            return Verdict(CAN_DEADLOCK, reason, cycle)
        if plan.launch == "wait-all":
            continue
        reason = f"{names} is released by the first {upstream} block; the rest of {upstream} must be placed before it"
        worst = Verdict(IF_ARRIVAL, reason, cycle)
    if worst.status == SAFE and plan.launch == "wait-all" and any(_threats(program, machine)):
        return Verdict(SAFE, "consumers are released once every producer block has started")
    return worst


def _threats(program: Program, machine: Machine) -> list[tuple[str, tuple[str, ...]]]:
    """Kernels that the blocks waiting for them, directly or through others, can shut out of every SM."""
    waits_for: dict[str, set[str]] = {}
    for dep in dependences(program):
        upstream = {dep.producer} | waits_for.get(dep.producer, set())
        waits_for.setdefault(dep.consumer, set()).update(upstream)
    found = []
    for kernel in program.kernels:
        downstream = [other for other in program.kernels if kernel.name in waits_for.get(other.name, ())]
        if downstream and _can_shut_out(kernel, downstream, machine):
            found.append((kernel.name, tuple(other.name for other in downstream)))
    return found


def _can_shut_out(kernel: Kernel, downstream: Sequence[Kernel], machine: Machine) -> bool:
    """True when the downstream blocks suffice to leave no SM with room for a block of *kernel*."""
    want, room = kernel_room(kernel, machine), sm_room(machine)
    shut = 0.0
    for other in downstream:
        per_sm = kernel_occupancy(other, machine)
        take = kernel_room(other, machine)
        blocking = min(-(-(have - w + 1) // t) for have, w, t in zip(room, want, take, strict=True) if t)
        resident = min(other.blocks, per_sm.blocks_per_sm * machine.limits.sms)
        shut += resident / max(blocking, 1)
    return shut >= machine.limits.sms


def _slices_out_of_order(program: Program, plan: Plan, slots: Mapping[str, int]) -> Verdict | None:
    """A split-K slice waits for the one before it: an order that hands out a later slice first can fill the slots."""
    for kernel in program.kernels:
        if kernel.grid[2] == 1 or kernel.reduce != "serial" or kernel.blocks <= slots[kernel.name]:
            continue
        table = order_table(plan.order_of(kernel.name), kernel.grid)
        tickets = np.empty(kernel.grid, dtype=np.int64)
        tickets[table[:, 0], table[:, 1], table[:, 2]] = np.arange(kernel.blocks)
        if (np.diff(tickets, axis=2) < 0).any():
            reason = f"the order of {kernel.name} hands out a split-K slice before the slice that it waits for"
            cycle = (
                f"later slices of {kernel.name} fill the slots",
                "they wait for earlier slices, which wait for a slot",
            )
            return Verdict(CAN_DEADLOCK, reason, cycle)
    return None
