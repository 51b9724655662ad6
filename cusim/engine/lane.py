"""SMs and their lanes: the places where blocks run."""

from __future__ import annotations

from simpy.events import Event

from cusim.engine.run import KernelRun, Load
from cusim.engine.waits import NO_WAITS, WaitList

#: The load of a lane in which no block works.
NO_LOAD: Load = (0, 0, 0, 0)


class Sm:
    """A streaming multiprocessor: the resources left, its lanes, and what its working blocks ask for together.

    *load* is in parts of a full tensor pipe, *l2*, *hbm* and *link* in bytes a second, each at the speed of a block
    alone. *rate* is the speed of each working block, 1 while the pipe is not oversubscribed; *draw* is what the SM then
    takes of what all SMs share (busy pipe, L2, HBM, link).
    """

    __slots__ = ("draw", "free_lanes", "hbm", "index", "l2", "lanes", "link", "load", "rate", "room")

    def __init__(self, index: int, room: tuple[int, ...]) -> None:
        self.index = index
        self.room = list(room)
        self.load = 0
        self.l2 = self.hbm = self.link = 0
        self.draw = (0, 0, 0, 0)
        self.rate = 1.0
        self.lanes: list[Lane] = []
        self.free_lanes: list[int] = []

    def add(self, load: Load) -> None:
        """A block begins to work."""
        self.load += load[0]
        self.l2 += load[1]
        self.hbm += load[2]
        self.link += load[3]

    def remove(self, load: Load) -> None:
        """A block ceases to work."""
        self.load -= load[0]
        self.l2 -= load[1]
        self.hbm -= load[2]
        self.link -= load[3]

    def fits(self, demand: tuple[int, ...]) -> bool:
        """True when a block of these resources can be placed now."""
        return all(have >= want for have, want in zip(self.room, demand, strict=True))

    def room_for(self, demand: tuple[int, ...]) -> int:
        """How many further blocks of these resources fit."""
        return min(have // want for have, want in zip(self.room, demand, strict=True) if want)

    def take(self, demand: tuple[int, ...]) -> Lane:
        """Occupies the lowest free lane with a block of these resources."""
        room = self.room
        for axis, want in enumerate(demand):
            room[axis] -= want
        if self.free_lanes:
            self.free_lanes.sort(reverse=True)
            return self.lanes[self.free_lanes.pop()]
        lane = Lane(self, len(self.lanes))
        self.lanes.append(lane)
        return lane

    def give(self, demand: tuple[int, ...], lane: Lane) -> None:
        """Frees the lane and the resources of its block."""
        room = self.room
        for axis, want in enumerate(demand):
            room[axis] += want
        self.free_lanes.append(lane.slot)


class Lane:
    """One slot of an SM and the block in it.

    Progress is kept as *pos*, picoseconds of work done at full speed when *since* was the time, and *rate*. *event* is
    the one pending event of the block; any other that fires is stale. A waiting block has *working* False; one that
    waits before its first load is *unasked*: it has not asked for its operands' panels yet.
    """

    __slots__ = (
        "event", "load", "missing", "next_wait", "pos", "rate", "reducing", "run", "since", "slot", "sm", "stop_at",
        "ticket", "unasked", "waited_from", "waits", "wake", "work", "working",
    )  # fmt: skip

    def __init__(self, sm: Sm, slot: int) -> None:
        self.sm = sm
        self.slot = slot
        self.run: KernelRun | None = None
        self.event: Event | None = None
        self.waits: WaitList = NO_WAITS
        self.ticket = 0
        self.pos = 0
        self.since = 0
        self.rate = 1.0
        self.work = 0
        self.next_wait = 0
        self.stop_at = 0
        self.missing = 0
        self.wake = 0
        self.waited_from = 0
        self.reducing = False
        self.unasked = False
        self.working = False
        self.load = NO_LOAD
