"""One simulated run: SMs, dispatcher, streams, semaphores and blocks in a SimPy environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cusim.engine.blocks import Blocks
from cusim.engine.clock import Clock
from cusim.engine.cost import BlockCost
from cusim.engine.dispatcher import Dispatcher, Grid, Rule
from cusim.engine.early import EndWaits, wait_for_the_kernel_ahead
from cusim.engine.host import Host, WaitKernel
from cusim.engine.lane import Lane, Sm
from cusim.engine.run import KernelRun
from cusim.engine.setup import Setup, prepare
from cusim.engine.shared import QUANTUM, SETTLE_PS, Shared
from cusim.machine.machine import Machine
from cusim.machine.room import sm_room
from cusim.policies.plan import Plan
from cusim.program.program import Program


@dataclass(frozen=True, slots=True)
class Finished:
    """What is left when nothing more can happen: the runs, the SMs and the waits in which blocks stood still.

    *dependences* names what a wait was for, by the number in it.
    """

    setup: Setup
    dependences: tuple[str, ...]
    sms: tuple[Sm, ...]
    wait_rows: list[tuple[int, int, int, int, int, int]]
    total_ps: int
    parked_spins: tuple[WaitKernel, ...]

    @property
    def last_ps(self) -> int:
        """When a block last did something: left its slot, or began the wait in which it still stands."""
        ends = [max(run.ended, default=0) for run in self.setup.runs]
        stands = [lane.waited_from for sm in self.sms for lane in sm.lanes if lane.run is not None]
        return max(*ends, *stands, 0)

    @property
    def unfinished(self) -> int:
        """Blocks that have not left their slot, or never got one."""
        return sum(run.blocks - run.finished for run in self.setup.runs)


def simulate(
    program: Program,
    machine: Machine,
    plan: Plan,
    costs: Mapping[str, BlockCost],
    rule: Rule = "arrival",
    seed: int = 0,
    quantum: float = QUANTUM,
    settle_ps: int = SETTLE_PS,
) -> Finished:
    """Runs until no event is left. *quantum* and *settle_ps* bound how often the shared speed is updated."""
    env = Clock()
    setup = prepare(program, machine, plan, env, costs)
    dependences = tuple(dep.name for dep in setup.deps)
    if plan.launch == "pdl" and not plan.overlapped:
        dependences = wait_for_the_kernel_ahead(setup.runs, machine)
    room = sm_room(machine)
    sms = tuple(Sm(index, room) for index in range(machine.limits.sms))
    blocks = Blocks(env, sms)
    blocks.shared = Shared(env, machine, blocks.retime_all, quantum, settle_ps)
    spins: list[WaitKernel] = []

    def start(lane: Lane, grid: Grid, at: int) -> None:
        if isinstance(grid, KernelRun):
            blocks.start(lane, grid, at)
            return
        assert isinstance(grid, WaitKernel)
        spins.append(grid)

        def release(_: object) -> None:
            spins.remove(grid)
            lane.sm.give(grid.demand, lane)
            grid.done.succeed()
            dispatcher.freed(lane.sm)

        if grid.released.processed:
            env.timeout(0).callbacks.append(release)
        else:
            grid.released.callbacks.append(release)

    dispatcher = Dispatcher(env, machine, sms, rule, seed, start)
    early = plan.launch == "pdl" and plan.overlapped
    blocks.dispatch = EndWaits(env, setup.runs, machine, dispatcher) if early else dispatcher
    host = Host(env, machine, plan, setup.runs, setup.producers, dispatcher, setup.spin_demand, rule)
    host.issue()
    env.run()
    done = all(run.finished == run.blocks for run in setup.runs)
    return Finished(setup, dependences, sms, blocks.wait_rows, host.total_ps() if done else -1, tuple(spins))
