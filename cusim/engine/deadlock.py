"""Who waits for whom when a simulated run has stopped before its end."""

from __future__ import annotations

from cusim.engine.lane import Lane
from cusim.engine.run import KernelRun
from cusim.engine.semaphore import Semaphores
from cusim.engine.simulate import Finished


def waiting_cycle(finished: Finished) -> tuple[str, ...]:
    """The cycle of waits, each link a sentence: a tile, the semaphore it waits for, the tile that should post it, and
    so on to a tile that has no slot, or back to a tile already named.
    """
    parked = [lane for sm in finished.sms for lane in sm.lanes if lane.run is not None and _stands(lane)]
    if not parked:
        return _spinning(finished)
    lane: Lane | None = min(parked, key=lambda lane: (lane.run.index if lane.run else 0, lane.ticket))
    links: list[str] = []
    seen: set[int] = set()
    while lane is not None and id(lane) not in seen:
        seen.add(id(lane))
        _, sems, first, last, target, _ = lane.waits.entries[lane.stop_at]
        index = sems.first_missing(first, last, target)
        missing = target - sems.count[index]
        links.append(f"{_tile(lane.run, lane.ticket)} on SM {lane.sm.index} waits for semaphore {index} of {sems.name}")
        owner = _poster(finished, sems, index)
        if owner is None:
            links.append(f"nobody is left to make the {missing} missing posts")
            return tuple(links)
        run, ticket = owner
        if ticket >= run.next_ticket:
            return (*links, *_without_slot(finished, run, ticket, lane, len(parked)))
        lane = run.lane[ticket]
    links.append("which waits as named above")
    return tuple(links)


def _without_slot(finished: Finished, run: KernelRun, ticket: int, lane: Lane, parked: int) -> tuple[str, ...]:
    """Why the tile that should post has no slot: none is free, or its kernel stands behind one that finds none."""
    if any(sm.fits(run.demand) for sm in finished.sms):
        ahead = next((r for r in finished.setup.runs if r is not run and r.to_place and r.arrive_ps >= 0), run)
        behind = f"{_tile(run, ticket)} should post it and stands in the queue behind {ahead.kernel.name}"
        return (
            behind,
            f"{ahead.kernel.name} has {ahead.to_place} blocks left to place, and {parked} blocks wait in slots",
        )
    return (
        f"{_tile(run, ticket)} should post it and waits for a slot",
        f"every slot it could take is held by one of {parked} waiting blocks",
        f"{_tile(lane.run, lane.ticket)} is one of them",
    )


def _spinning(finished: Finished) -> tuple[str, ...]:
    """No block waits for a semaphore: wait-kernels hold the room that a kernel needs, or nothing can be placed."""
    left = [run for run in finished.setup.runs if run.finished < run.blocks]
    names = " and ".join(run.kernel.name for run in left)
    held = [finished.setup.runs[spin.index].kernel.name for spin in finished.parked_spins]
    if not held:
        return (f"{names} never got a slot: no block that runs will free one",)
    first = next((run for run in left if run.arrive_ps >= 0), left[0])
    return (
        f"the wait-kernel of {' and of '.join(held)} holds a slot until its producer has started",
        f"{first.kernel.name} needs more of an SM than is left beside it",
    )


def _stands(lane: Lane) -> bool:
    """True for a block that is in its slot and waits for a post that was never made."""
    run = lane.run
    return run is not None and run.ended[lane.ticket] < 0 and run.lane[lane.ticket] is lane and lane.event is None


def _tile(run: KernelRun | None, ticket: int) -> str:
    assert run is not None
    row, col, slice_ = (int(x) for x in run.table[ticket])
    where = f"{row}, {col}" if run.kernel.grid[2] == 1 else f"{row}, {col}, {slice_}"
    return f"{run.kernel.name} tile ({where})"


def _poster(finished: Finished, sems: Semaphores, index: int) -> tuple[KernelRun, int] | None:
    """The unfinished block of lowest ticket that will post to a semaphore."""
    for run in finished.setup.runs:
        if run.serial is sems:
            wanted = (index, sems.count[index])  # slices post one after the other
            return next(((run, t) for t in range(run.blocks) if (run.tiles[t], run.slices[t]) == wanted), None)
        for out in run.outgoing:
            if out.semaphores is not sems:
                continue
            for ticket in range(run.blocks):
                tile = run.tiles[ticket]
                if run.ended[ticket] < 0 and any(indices[tile] == index for indices, _ in out.posts):
                    return run, ticket
    return None
