"""Programmatic dependent launch: kernels of one stream start early and wait for the kernel ahead (design §6.6).

A block triggers when it starts, so the next kernel places blocks once all of the kernel ahead have started or left.
What they then wait for depends on the plan. Without policies (:func:`wait_for_the_kernel_ahead`) each does all that
precedes its first load, and stands still in ``griddepcontrol.wait`` until the kernel ahead is complete and its results
are flushed. With policies semaphores hold back the data, and a wait at the end (:class:`EndWaits`) keeps a kernel from
completing before the one ahead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from cusim.engine.blocks import Dispatch
from cusim.engine.clock import Clock
from cusim.engine.host import Process
from cusim.engine.lane import Lane, Sm
from cusim.engine.run import KernelRun, Outgoing
from cusim.engine.semaphore import Semaphores
from cusim.engine.waits import Steps, WaitCompiler
from cusim.machine.machine import Machine


def wait_for_the_kernel_ahead(runs: Sequence[KernelRun], machine: Machine) -> tuple[str, ...]:
    """Makes every block wait, before its first load, for the whole kernel ahead; the names of these dependences.

    A kernel is complete when its last tile is: so one counter of its tiles stands for it, seen full once flushed.
    """
    names = []
    for ahead, run in pairwise(runs):
        names.append(f"{ahead.kernel.name}>{run.kernel.name}")
        tiles = ahead.kernel.output_tiles
        complete = Semaphores(names[-1], len(names) - 1, [tiles], 0)
        each = ([0] * tiles, [1] * tiles)
        ahead.outgoing = (*ahead.outgoing, Outgoing(complete, (each,), machine.launch.early_wait_ps))
        steps = Steps(run.first_load_ps, run.first_load_ps, run.cost.step_ps, run.kernel.stages, 0, 0)
        run.waits = WaitCompiler(run.kernel, (), steps, gate=(run.first_load_ps, complete, 0, 1, tiles, True))
        run.overheads = replace(run.overheads, preload_ps=0)  # no operand is loaded while a block waits there
    return tuple(names)


class EndWaits:
    """Stands between blocks and dispatcher, and keeps slots for blocks that are done but may not leave.

    The block of the last ticket, or each block of a persistent kernel, leaves its slot once the kernel ahead is
    complete. It has posted by then and does nothing more: a trace shows neither it nor its wait, as on the GPU.
    """

    def __init__(self, env: Clock, runs: Sequence[KernelRun], machine: Machine, dispatch: Dispatch) -> None:
        self._env = env
        self._flush_ps = machine.launch.early_wait_ps
        self._dispatch = dispatch
        self._over = [env.event() for _ in runs]  # a wait for this kernel comes to its end
        self._last_left: set[int] = set()  # kernels whose block of the last ticket has come to its end
        self._staying: KernelRun | None = None
        for run in runs:
            env.process(self._completion(run))

    def heir(self, run: KernelRun) -> KernelRun | None:
        """None for a block that stays; otherwise what the dispatcher says."""
        self._staying = run if self._stays(run) else None
        return None if self._staying else self._dispatch.heir(run)

    def claim(self, run: KernelRun) -> int:
        """See the dispatcher."""
        return self._dispatch.claim(run)

    def nothing_left(self, run: KernelRun) -> None:
        """See the dispatcher."""
        self._dispatch.nothing_left(run)

    def freed(self, sm: Sm) -> None:
        """The room that a block would leave is taken again while it stays; the dispatcher gets it afterwards."""
        run, self._staying = self._staying, None
        if run is None:
            self._dispatch.freed(sm)
            return
        lane = sm.take(run.demand)
        self._over[run.index - 1].callbacks.append(lambda _: self._leave(sm, lane, run))

    def _stays(self, run: KernelRun) -> bool:
        """True when the block of *run* that has just come to its end must wait for the kernel ahead."""
        last = run.ended[-1] >= 0 and run.index not in self._last_left
        if last:
            self._last_left.add(run.index)
        return (last or run.persistent) and run.index > 0 and not self._over[run.index - 1].triggered

    def _leave(self, sm: Sm, lane: Lane, run: KernelRun) -> None:
        sm.give(run.demand, lane)
        self._dispatch.freed(sm)

    def _completion(self, run: KernelRun) -> Process:
        """A kernel is complete once its blocks are done and so is the kernel ahead."""
        yield run.done
        if run.index:
            yield self._over[run.index - 1]
        yield self._env.timeout(self._flush_ps)
        self._over[run.index].succeed()
