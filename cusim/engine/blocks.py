"""Blocks in simulated time: start, stop at a wait, wake, end. One event a block where nothing makes it stop."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any, Protocol

from simpy.events import Timeout

from cusim.engine.clock import Clock
from cusim.engine.cost import FULL_PIPE
from cusim.engine.lane import NO_LOAD, Lane, Sm
from cusim.engine.run import KernelRun
from cusim.engine.semaphore import NEVER
from cusim.engine.shared import Shared
from cusim.engine.waits import NO_WAITS


class Dispatch(Protocol):
    """What a finished block asks of the dispatcher."""

    def heir(self, run: KernelRun) -> KernelRun | None:
        """The kernel whose next block may take over the slot as it is; None to give the slot back."""

    def claim(self, run: KernelRun) -> int:
        """Counts one block of *run* as placed and returns when it starts."""

    def nothing_left(self, run: KernelRun) -> None:
        """Counts all blocks of *run* as placed: those still to come would find no ticket."""

    def freed(self, sm: Sm) -> None:
        """Room has come free on an SM."""


class Blocks:
    """Moves every block through its work; *dispatch* is asked for the next one when a block leaves its slot.

    A block's pending event is the earlier of its end and the first wait that it will find unsatisfied; when the speed
    of its SM or the shared one changes, its progress is settled and the event made anew. ``wait_rows`` collects
    (run, ticket, begin, end, dependence, semaphore) of every wait in which a block stood still.
    """

    def __init__(self, env: Clock, sms: Sequence[Sm]) -> None:
        self.env = env
        self.sms = sms
        self.shared: Shared
        self.dispatch: Dispatch
        self.wait_rows: list[tuple[int, int, int, int, int, int]] = []

    def start(self, lane: Lane, run: KernelRun, at: int) -> None:
        """Starts the run's next ticket in *lane* at time *at*, now or a dispatch delay later."""
        lane.run = run
        lane.working = True
        lane.since = at  # an older time would count as progress if the SM's speed changes now
        lane.load = NO_LOAD
        self._begin(lane, run, at)

    def _begin(self, lane: Lane, run: KernelRun, at: int) -> None:
        """Takes the next ticket in a lane whose load counts what its last block, if any, asked for."""
        ticket = run.next_ticket
        run.next_ticket = ticket + 1
        if run.next_ticket == run.blocks and run.to_place:
            self.dispatch.nothing_left(run)  # blocks of a persistent kernel for which no ticket is left
        run.placed[ticket] = at
        run.lane[ticket] = lane
        lane.ticket = ticket
        lane.pos = 0
        lane.since = at
        lane.next_wait = 0
        if run.waits is None and run.serial is None:
            lane.waits = NO_WAITS
            work = run.last_work if run.even else run.work[run.slices[ticket]]
        else:
            waits = run.waits_of(ticket)
            lane.waits = waits
            work = run.work[run.slices[ticket]] + waits.extra_ps
        lane.work = work
        held = lane.waits is not NO_WAITS and lane.waits.stands_at(at + run.first_load_ps)
        lane.unasked = held and run.panels is not None
        load = run.load_of(work) if lane.unasked else run.asks(ticket, work, lane.sm.index, at)
        if load is not lane.load:
            lane.sm.remove(lane.load)
            lane.sm.add(load)
            lane.load = load
            self._settle(lane.sm, lane)
        self._go(lane)

    def retime_all(self) -> None:
        """Settles and re-times every working block, after the speed that they share has changed."""
        for sm in self.sms:
            self._retime(sm, None)

    def _go(self, lane: Lane) -> None:
        """Makes the block's next event: its end, or the first wait that will not be satisfied when it is reached."""
        rate = lane.sm.rate * self.shared.factor
        lane.rate = rate
        stop = lane.work
        waits = lane.waits
        entries = waits.entries
        lane.stop_at = len(entries)
        since = lane.since
        if lane.next_wait < lane.stop_at and waits.ready_by > since and waits.refresh() > since:
            pos = lane.pos
            for place in range(lane.next_wait, lane.stop_at):
                where, sems, first, last, target, _ = entries[place]
                reach = since + int((where - pos) / rate) if where > pos else since
                if sems.seen_at(first, last, target) > reach:
                    lane.stop_at = place
                    stop = max(where, pos)
                    break
        left = stop - lane.pos
        if rate != 1.0:
            left = ceil(left / rate)
        env = self.env
        event = Timeout(env, since + left - env.now, lane)
        event.callbacks.append(self._arrived)
        lane.event = event

    def _arrived(self, event: Any) -> None:
        lane: Lane = event._value
        if lane.event is not event:
            return  # made stale by a change of speed
        if lane.stop_at < len(lane.waits.entries):
            self._at_wait(lane)
        else:
            self._end(lane)

    def _at_wait(self, lane: Lane) -> None:
        """The block has come to a wait that looked unsatisfied when its event was made."""
        now = self.env.now
        where, sems, first, last, target, _ = lane.waits.entries[lane.stop_at]
        lane.pos = max(where, lane.pos)
        lane.since = now
        at = sems.seen_at(first, last, target)
        if at <= now:
            lane.next_wait = lane.stop_at + 1
            if lane.unasked:
                lane.sm.remove(lane.load)
                self._ask(lane)
                self._join(lane)
            self._go(lane)
            return
        lane.waited_from = now
        lane.working = False
        self._part(lane)
        if at == NEVER:
            lane.event = None
            lane.missing, lane.wake = sems.park(first, last, target, lane)
        else:
            self._wake_at(lane, at)

    def _wake_at(self, lane: Lane, at: int) -> None:
        event = Timeout(self.env, max(at - self.env.now, 0), lane)
        event.callbacks.append(self._wake)
        lane.event = event

    def _wake(self, event: Any) -> None:
        """The wait is over: the pipeline refills, then the block goes on where it stood."""
        lane: Lane = event._value
        run = lane.run
        assert run is not None
        now = self.env.now
        _, sems, first, last, target, initial = lane.waits.entries[lane.stop_at]
        semaphore = sems.last_seen(first, last, target)
        self.wait_rows.append((run.index, lane.ticket, lane.waited_from, now, sems.dependence, semaphore))
        first_load, total = run.late.get(lane.ticket, (-1, 0))
        if initial:
            first_load = now
        run.late[lane.ticket] = (first_load, total + now - lane.waited_from)
        if initial:
            lane.pos = min(lane.pos + self._preloaded(run, now - lane.waited_from), lane.work)
            lane.since = now
            if lane.unasked:
                self._ask(lane)
        else:
            lane.since = now + run.overheads.refill_ps
        lane.next_wait = lane.stop_at + 1
        lane.working = True
        self._join(lane)
        self._go(lane)

    def _ask(self, lane: Lane) -> None:
        """A block that was held before its first load begins: it loads with whoever begins now."""
        assert lane.run is not None
        lane.unasked = False
        lane.load = lane.run.asks(lane.ticket, lane.work, lane.sm.index, self.env.now)

    def _preloaded(self, run: KernelRun, stood_ps: int) -> int:
        """Work that a block is spared because its independent operand was loaded while it stood still (flag R). Loads
        are what it waits for later only as far as memory slows it.
        """
        return min(stood_ps, int(run.overheads.preload_ps * self.shared.memory))

    def _end(self, lane: Lane) -> None:
        """The block's work is done: post, leave the slot, let the dispatcher have it."""
        run = lane.run
        assert run is not None
        now = self.env.now
        ticket = lane.ticket
        if run.kernel.grid[2] > 1 and self._reduces(lane, run, now):
            return
        run.ended[ticket] = now
        lane.working = False
        lane.event = None
        if run.outgoing and (run.kernel.grid[2] == 1 or run.posts_now(ticket)):
            tile = run.tiles[ticket]
            for out in run.outgoing:
                for indices, adds in out.posts:
                    woken = out.semaphores.post(indices[tile], adds[tile], now + out.visible_ps)
                    if woken:
                        self._wake_all(woken)
        run.finished += 1
        run.worked_ps += lane.work
        loops = run.persistent and run.loops()
        heir = run if loops else self.dispatch.heir(run)
        if heir is run:  # the common case: nothing changes but the ticket
            lane.working = True
            self._begin(lane, run, now if loops else self.dispatch.claim(run))
        else:
            self._leave(lane, run, heir)
        if run.finished == run.blocks:
            run.done_ps = now
            run.done.succeed()

    def _leave(self, lane: Lane, run: KernelRun, heir: KernelRun | None) -> None:
        """Hands the lane to another kernel's block of the same size, or gives its room back to the SM."""
        sm = lane.sm
        sm.remove(lane.load)
        if heir is not None:
            self.start(lane, heir, self.dispatch.claim(heir))
            return
        sm.give(run.demand, lane)
        self.dispatch.freed(sm)
        self._settle(sm, None)

    def _reduces(self, lane: Lane, run: KernelRun, now: int) -> bool:
        """Meets the other slices of the tile; True when this block goes on to add them up."""
        tile, slice_ = run.tiles[lane.ticket], run.slices[lane.ticket]
        if run.serial is not None:
            if slice_ < run.kernel.grid[2] - 1:
                self._wake_all(run.serial.post(tile, 1, now + run.slice_visible_ps))
            return False
        if lane.reducing:
            lane.reducing = False
            return False
        run.arrived[tile] += 1
        if run.arrived[tile] < run.kernel.grid[2]:
            return False
        run.last_slice[tile] = lane.ticket
        lane.reducing = True
        lane.pos, lane.since = lane.work, now
        lane.work += run.reduce_ps
        self._go(lane)
        return True

    def _wake_all(self, woken: list[tuple[Lane, int]]) -> None:
        for lane, visible in woken:
            lane.missing -= 1
            lane.wake = max(lane.wake, visible)
            if lane.missing == 0:
                self._wake_at(lane, lane.wake)

    def _join(self, lane: Lane) -> None:
        """Adds the load of a block that goes on."""
        lane.sm.add(lane.load)
        self._settle(lane.sm, lane)

    def _part(self, lane: Lane) -> None:
        """Takes out the load of a block that begins to wait."""
        lane.sm.remove(lane.load)
        self._settle(lane.sm, None)

    def _settle(self, sm: Sm, fresh: Lane | None) -> None:
        """The blocks at work on an SM have changed: they slow down in proportion while its pipe is oversubscribed, and
        draw less from what all SMs share; *fresh* has no event yet.
        """
        load = sm.load
        rate = FULL_PIPE / load if load > FULL_PIPE else 1.0
        draw = (int(load * rate), int(sm.l2 * rate), int(sm.hbm * rate), int(sm.link * rate))
        self.shared.replace(sm.draw, draw)
        sm.draw = draw
        if rate != sm.rate:
            sm.rate = rate
            self._retime(sm, fresh)
        self.shared.consider()

    def _retime(self, sm: Sm, fresh: Lane | None) -> None:
        """Settles the progress of the SM's working blocks and makes their events anew; *fresh* has none yet."""
        now = self.env.now
        for lane in sm.lanes:
            if lane.working and lane is not fresh:
                if now > lane.since:
                    lane.pos += int((now - lane.since) * lane.rate)
                    lane.since = now
                self._go(lane)
