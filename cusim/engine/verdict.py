"""Could a plan hang? Decided from grids, slots and launch alone, before anything runs (design §6.7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from cusim.engine.result import Verdict
from cusim.engine.setup import kernel_occupancy, kernel_room, spin_room
from cusim.machine.machine import Machine
from cusim.machine.room import Room, sm_room
from cusim.policies.orders import order_table
from cusim.policies.plan import Plan
from cusim.program.depends import TileDep, dependences
from cusim.program.kernel import Kernel
from cusim.program.program import Program

SAFE = "safe by construction"
IF_ARRIVAL = "safe if arrival order holds"
CAN_DEADLOCK = "can deadlock"


def verdict(program: Program, plan: Plan, machine: Machine, slots: Mapping[str, int]) -> Verdict:
    """The verdict for a plan on a machine; *slots* is how many blocks of each kernel the machine holds.

    Waiting blocks hold their slots, so a plan hangs when they fill every slot that a block they wait for could take.
    If all blocks that can wait leave every kernel a slot, or consumers are released only once every producer block has
    started, that cannot happen. A release by the first producer block leaves it to the order of arrival, which no
    NVIDIA document promises; without one (launch ``none``, flag W) nothing puts the producer first. Under ``pdl`` the
    hardware itself releases a kernel when every block of the one before has started or left, whatever those wait for.
    """
    slices = _slices_out_of_order(program, plan, slots)
    if slices:
        return slices
    if plan.launch == "pdl":
        return Verdict(SAFE, "one stream: a kernel starts when every block of the one before has started or ended")
    if not plan.overlapped:
        return Verdict(SAFE, "one stream: a kernel starts when the one before has ended")
    deps = dependences(program)
    waiting = [program.kernel(name) for name in dict.fromkeys(dep.consumer for dep in deps)]
    upstream = [program.kernel(name) for name in dict.fromkeys(dep.producer for dep in deps)]
    unheld = [k for k in waiting if plan.launch == "none" or plan.flags_of(k.name).W]
    spins = _spins(plan, deps, machine)
    for kernel in program.kernels:
        if _can_shut_out(kernel, [], spins, machine):
            reason = f"wait-kernels alone can leave no SM with room for a block of {kernel.name}"
            cycle = ("wait-kernels wait for a kernel to start", f"it waits, as {kernel.name} does, for a slot")
            return Verdict(CAN_DEADLOCK, reason, cycle)
    for kernel in unheld:
        if kernel.blocks > slots[kernel.name]:
            reason = f"{kernel.name} may come first and, with more blocks than slots, keep all others queued behind it"
            return Verdict(CAN_DEADLOCK, reason, _cycle(deps[0].producer, [kernel.name]))
    # A kernel that nobody waits for matters only where it can stand in the queue before one that somebody does.
    for kernel in program.kernels if unheld else upstream:
        others = [other for other in waiting if other is not kernel]
        if _can_shut_out(kernel, others, spins, machine):
            return _threatened(kernel.name, [other.name for other in others], [k.name for k in unheld], plan)
    return Verdict(SAFE, "waiting blocks always leave a slot for the blocks they wait for")


def _threatened(upstream: str, downstream: list[str], unheld: list[str], plan: Plan) -> Verdict:
    """The verdict where waiting blocks could fill every slot: it is up to what puts producers first."""
    cycle = _cycle(upstream, downstream)
    names = " and ".join(downstream)
    if unheld:
        reason = f"nothing puts {upstream} before {' and '.join(unheld)}, whose waiting blocks can fill every slot"
        return Verdict(CAN_DEADLOCK, reason, cycle)
    if plan.launch == "wait-all":
        return Verdict(SAFE, "consumers are released once every producer block has started")
    reason = f"{names} is released by the first {upstream} block; the rest of {upstream} must be placed before it"
    return Verdict(IF_ARRIVAL, reason, cycle)


def _cycle(upstream: str, downstream: Sequence[str]) -> tuple[str, ...]:
    return (
        f"{' and '.join(downstream)} tiles fill every slot that {upstream} could take, or stand before it in the queue",
        "they wait, for it or for others that wait for a slot",
        f"{upstream} tiles wait for a slot",
    )


def _spins(plan: Plan, deps: Sequence[TileDep], machine: Machine) -> list[tuple[int, Room]]:
    """Wait-kernels that may stand in slots at once, one for each dependence that is held back by one."""
    if plan.launch not in ("wait-first", "wait-all"):
        return []
    held = sum(1 for dep in deps if not plan.flags_of(dep.consumer).W)
    return [(held, spin_room(machine))]


def _can_shut_out(
    kernel: Kernel, others: Sequence[Kernel], spins: Sequence[tuple[int, Room]], machine: Machine
) -> bool:
    """True unless the blocks of *others*, however they lie, leave an SM with room for a block of *kernel*.

    To shut an SM out, blocks on it must take more of one of its resources than *kernel*'s block leaves. Equal blocks do
    so in whole numbers; of unequal ones each brings at most its largest share of it, so the sum of those shares bounds
    the SMs shut out. Wait-kernels are few: all of them are counted on every SM.
    """
    want, room = kernel_room(kernel, machine), sm_room(machine)
    spun = [sum(count * take[axis] for count, take in spins) for axis in range(len(room))]
    needed = [have - need + 1 - spin for have, need, spin in zip(room, want, spun, strict=True)]
    if min(needed) <= 0:
        return sum(count for count, _ in spins) >= machine.limits.sms or bool(others)
    if len(others) == 1:
        taken = kernel_room(others[0], machine)
        per_sm = min(-(-short // take) for short, take in zip(needed, taken, strict=True) if take)
        return _resident(others[0], machine) // per_sm >= machine.limits.sms
    shut = Fraction(0)
    for other in others:
        shares = (Fraction(take, short) for take, short in zip(kernel_room(other, machine), needed, strict=True))
        shut += _resident(other, machine) * min(max(shares), Fraction(1))
    return shut >= machine.limits.sms


def _resident(kernel: Kernel, machine: Machine) -> int:
    """The most blocks of the kernel that can be in slots at once."""
    return min(kernel.blocks, kernel_occupancy(kernel, machine).blocks_per_sm * machine.limits.sms)


def _slices_out_of_order(program: Program, plan: Plan, slots: Mapping[str, int]) -> Verdict | None:
    """A split-K slice waits for the one before it: an order that hands out a later slice first can fill the slots,
    with its own blocks or, side by side, with others that wait. Under ``pdl`` no later kernel is placed before the last
    slice is, and earlier ones leave, so that a kernel that fits the slots gets them in the end.
    """
    for kernel in program.kernels:
        roomy = kernel.blocks <= slots[kernel.name] and (plan.launch == "pdl" or not plan.overlapped)
        if kernel.grid[2] == 1 or kernel.reduce != "serial" or roomy or plan.flags_of(kernel.name).T:
            continue
        table = order_table(plan.order_of(kernel.name), kernel.grid)
        tickets = np.empty(kernel.grid, dtype=np.int64)
        tickets[table[:, 0], table[:, 1], table[:, 2]] = np.arange(kernel.blocks)
        if (np.diff(tickets, axis=2) < 0).any():
            reason = f"the order of {kernel.name} hands out a split-K slice before the slice that it waits for"
            cycle = (
                f"later slices of {kernel.name} fill the slots",
                "they wait for earlier ones, which wait for a slot",
            )
            return Verdict(CAN_DEADLOCK, reason, cycle)
    return None
