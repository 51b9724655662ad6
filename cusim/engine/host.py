"""The host and its streams: when each kernel reaches the GPU (design §6.3).

Time 0 is the start event, recorded behind a busy kernel: every launch was enqueued before it and costs no time after.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

from simpy.events import Event

from cusim.engine.clock import Clock
from cusim.engine.dispatcher import Dispatcher, Rule
from cusim.engine.run import KernelRun
from cusim.machine.machine import Machine
from cusim.policies.plan import Plan

Process: TypeAlias = Generator[Event, Any, None]


@dataclass(eq=False)
class WaitKernel:
    """A block that holds the consumer's stream, and a slot, until its producer has started (cuSync §III-B)."""

    index: int
    demand: tuple[int, ...]
    released: Event
    started: Event
    all_started: Event
    done: Event
    to_place: int = 1
    arrive_ps: int = 0

    def loops(self) -> bool:
        """A wait-kernel is a single block."""
        return False


class Host:
    """Issues the kernels of a plan on their streams. *producers* names, for each kernel, those it depends on."""

    def __init__(
        self, env: Clock, machine: Machine, plan: Plan, runs: Sequence[KernelRun],
        producers: Mapping[int, Sequence[int]], dispatcher: Dispatcher, spin_demand: tuple[int, ...], rule: Rule,
    ) -> None:  # fmt: skip
        self._env = env
        self._machine = machine
        self._plan = plan
        self._runs = runs
        self._producers = producers
        self._dispatcher = dispatcher
        self._spin_demand = spin_demand
        self._rule = rule

    def issue(self) -> None:
        """Starts the streams as processes and notes when the host enqueued each kernel; a graph takes one launch."""
        launch, calls = self._machine.launch, 1 if self._plan.launch == "graph" else len(self._runs)
        for place, run in enumerate(self._runs):
            run.enqueue_ps = (min(place, calls - 1) - calls) * launch.enqueue_ps
        if self._plan.launch == "pdl":
            self._env.process(self._early())
            return
        if not self._plan.overlapped:
            self._env.process(self._in_order(launch.graph_gap_ps if self._plan.launch == "graph" else launch.gap_ps))
            return
        for run in self._runs:
            self._env.process(self._own_stream(run))

    def total_ps(self) -> int:
        """Start event to end event, once every kernel is done.

        Streams other than the first are joined by an event, which costs what an event between streams takes beyond a
        gap within one: the start of a kernel is in both, and no kernel follows.
        """
        if self._plan.launch == "pdl":
            complete = 0
            for run in self._runs:  # none completes before the one ahead of it has, and is flushed
                complete = max(run.done_ps, complete + self._machine.launch.early_wait_ps if run.index else 0)
            return complete
        if not self._plan.overlapped:
            return self._runs[-1].done_ps
        join = max(0, self._machine.launch.event_ps - self._machine.launch.gap_ps)
        return max(run.done_ps + (join if self._stream(run) else 0) for run in self._runs)

    def _in_order(self, gap_ps: int) -> Process:
        """One stream: each kernel starts a gap after the last block of the one before. In a graph, the first follows
        the node that advances the epoch; that node and the graph's own launch are in the empty graph's time too.
        """
        for run in self._runs:
            yield self._env.timeout(gap_ps)
            self._dispatcher.arrive(run)
            yield run.done

    def _early(self) -> Process:
        """One stream: blocks trigger as they start, and a kernel arrives when all of the one ahead have triggered."""
        yield self._env.timeout(self._machine.launch.gap_ps)
        self._dispatcher.arrive(self._runs[0])
        for ahead, run in pairwise(self._runs):
            yield ahead.all_started
            yield self._env.timeout(self._machine.launch.early_ps)
            self._dispatcher.arrive(run)

    def _own_stream(self, run: KernelRun) -> Process:
        """A stream of its own, forked from the start event; held back by what the launch puts before the kernel."""
        launch = self._machine.launch
        queue = self._machine.limits.hardware_queues
        held = self._plan.launch != "none" and not self._plan.flags_of(run.kernel.name).W
        producers = self._producers.get(run.index, ())
        if self._rule != "adversarial" or held or not producers:  # else nothing forbids that it comes first
            yield self._env.timeout(launch.event_ps if self._stream(run) else launch.gap_ps)
        before = self._before(run)
        if before is not None:
            yield before.done
            yield self._env.timeout(launch.gap_ps)
        alias = [other for other in self._runs[: run.index] if self._stream(other) == self._stream(run) - queue]
        if alias:  # streams beyond the hardware's queues share one with an earlier stream: a false dependency
            yield alias[-1].started
        for producer in producers if held else ():
            yield from self._hold(run, self._runs[producer])
        self._dispatcher.arrive(run)

    def _hold(self, run: KernelRun, producer: KernelRun) -> Process:
        """What stands between a producer's start and its consumer's arrival."""
        launch = self._machine.launch
        match self._plan.launch:
            case "wait-first" | "wait-all" as rule:
                released = producer.started if rule == "wait-first" else producer.all_started
                env = self._env
                spin = WaitKernel(run.index, self._spin_demand, released, env.event(), env.event(), env.event())
                self._dispatcher.arrive(spin)
                yield spin.done
                yield self._env.timeout(launch.wait_kernel_ps)
            case "wait-value":
                yield producer.started
                yield self._env.timeout(launch.wait_value_ps)

    def _stream(self, run: KernelRun) -> int:
        return run.index if self._plan.streams is None else run.index % self._plan.streams

    def _before(self, run: KernelRun) -> KernelRun | None:
        """The kernel issued before on the same stream, where the plan has fewer streams than kernels."""
        if self._plan.streams is None or run.index < self._plan.streams:
            return None
        return self._runs[run.index - self._plan.streams]
