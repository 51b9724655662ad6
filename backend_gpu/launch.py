"""How a plan's kernels reach the GPU: the steps of one run, in the order in which the host issues them.

Steps name streams and kernels by number and hold no handles, so that every device, and every test, reads the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from cusim.policies.plan import Plan
from cusim.program.depends import dependences
from cusim.program.program import Program


@dataclass(frozen=True, slots=True)
class Fork:
    """*stream* goes on from where stream 0 stands now."""

    stream: int


@dataclass(frozen=True, slots=True)
class Join:
    """Stream 0 waits until *stream* has come so far."""

    stream: int


@dataclass(frozen=True, slots=True)
class Hold:
    """*stream* waits until *blocks* blocks (None: all) of kernel number *producer* have started, *by* a kernel that
    polls (it takes a slot) or by a wait of the stream itself (it takes none).
    """

    stream: int
    producer: int
    blocks: int | None
    by: Literal["kernel", "value"]


@dataclass(frozen=True, slots=True)
class Start:
    """Kernel number *kernel* goes into *stream*; *early*: it may start before the one ahead of it has ended."""

    kernel: int
    stream: int
    early: bool = False


Step: TypeAlias = Fork | Join | Hold | Start


def steps_of(program: Program, plan: Plan) -> tuple[Step, ...]:
    """The steps of one run, between a point where all streams have joined and the next."""
    numbers = range(len(program.kernels))
    if plan.launch in ("stream", "graph", "pdl"):
        return tuple(Start(number, 0, early=plan.launch == "pdl" and number > 0) for number in numbers)
    streams = len(numbers) if plan.streams is None else min(plan.streams, len(numbers))
    steps: list[Step] = [Fork(stream) for stream in range(1, streams)]
    for number in numbers:
        stream = number % streams
        steps += _holds(program, plan, number, stream)
        steps.append(Start(number, stream))
    steps += [Join(stream) for stream in range(1, streams)]
    return tuple(steps)


def streams_of(steps: Sequence[Step]) -> int:
    """How many streams the steps name."""
    return 1 + max((step.stream for step in steps), default=0)


def withheld(steps: Sequence[Step], kernel: int) -> tuple[Step, ...]:
    """The steps without one kernel, and without what waits for its start: whoever needs its tiles waits for ever."""
    return tuple(
        step
        for step in steps
        if not (isinstance(step, Start) and step.kernel == kernel)
        and not (isinstance(step, Hold) and step.producer == kernel)
    )


def consumer_first(program: Program, consumer: int, resident: int) -> tuple[Step, ...]:
    """The consumer alone until *resident* of its blocks have started, then all kernels before it: a deadlock where
    they fill every slot.
    """
    steps: list[Step] = [Fork(1), Start(consumer, 0), Hold(1, consumer, resident, "value")]
    steps += [Start(number, 1) for number in range(consumer)]
    return (*steps, Join(1))


def _holds(program: Program, plan: Plan, number: int, stream: int) -> list[Step]:
    """What holds a consumer back until its producers have started, by the launch's word; nothing with flag W."""
    kernel = program.kernels[number]
    if plan.launch == "none" or plan.flags_of(kernel.name).W:
        return []
    by: Literal["kernel", "value"] = "value" if plan.launch == "wait-value" else "kernel"
    producers = dict.fromkeys(program.position(d.producer) for d in dependences(program) if d.consumer == kernel.name)
    return [Hold(stream, producer, None if plan.launch == "wait-all" else 1, by) for producer in producers]
