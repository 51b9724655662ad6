"""Proof by evaluation that a policy is sound, and how many waits it costs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cusim.policies.base import SyncPolicy, Wait
from cusim.program.depends import TileDep, TileSpan, first_step, span_arrays
from cusim.program.expr import Expr, IntArray

FaultKind: TypeAlias = Literal["post-index", "post-add", "wait-index", "target", "missing", "late"]
Block: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a policy is unsound: *kind*, the tile and k step *where* (k is -1 for a post), and a sentence.

    ``post-index`` and ``wait-index``: no such semaphore. ``post-add``: an increment below 1. ``target``: more than is
    ever posted, so the wait never ends. ``missing``: a tile is read that no wait of the block covers; ``late``: the
    wait that covers it comes after the k step that reads it.
    """

    kind: FaultKind
    where: tuple[int, int, int, int]
    text: str


@dataclass(frozen=True, slots=True)
class Posted:
    """What every producer tile (r * C + c) posts: parallel arrays, and the sum by semaphore."""

    tile: IntArray
    index: IntArray
    add: IntArray
    total: IntArray


@dataclass(frozen=True, slots=True)
class _Grid:
    """A wait over (R, C, Z, steps of a slice); *step* is the k step, -1 where the block makes no wait."""

    step: IntArray
    index: IntArray
    target: IntArray
    count: IntArray


def wait_count(policy: SyncPolicy, dep: TileDep) -> int:
    """Semaphores that all blocks of the consumer wait on, over all k steps (cuSync Fig. 1: tile 12, row 6)."""
    return sum(_made_in_all(wait, dep) for wait in policy.waits(dep))


def posted(policy: SyncPolicy, dep: TileDep) -> Posted:
    """All posts of the producer; a tile posts once, whatever its slices."""
    rows, cols, _ = dep.producer_grid
    row, col = np.arange(rows).reshape(-1, 1), np.arange(cols).reshape(1, -1)
    posts = policy.posts(dep)

    def flat(expr: Expr) -> IntArray:
        return np.broadcast_to(expr.eval(r=row, c=col), (rows, cols)).ravel()

    tile = np.tile(np.arange(rows * cols), len(posts))
    none = np.zeros(0, dtype=np.int64)
    index = np.concatenate([none, *(flat(post.index) for post in posts)])
    add = np.concatenate([none, *(flat(post.add) for post in posts)])
    total = np.zeros(policy.size(dep), dtype=np.int64)
    inside = (index >= 0) & (index < len(total))
    np.add.at(total, index[inside], add[inside])
    return Posted(tile, index, add, total)


def check_policy(policy: SyncPolicy, dep: TileDep) -> tuple[Fault, ...]:
    """Every way in which the policy is unsound for the dependence, first of each kind; empty means proved sound.

    Sound: indices exist, no target exceeds what is posted, and before a k step reads a producer tile the block has
    waited for a value that the semaphore cannot reach without that tile's post. A wait or a read that is placed at or
    after the last step of a slice happens before the tile ends.
    """
    posts = posted(policy, dep)
    grids = _wait_grids(policy, dep)
    faults = [*_post_faults(posts, dep), *_index_faults(grids, posts)]
    if not faults:
        faults = list(_reach_faults(grids, posts)) + list(_coverage_faults(grids, posts, dep))
    first: dict[FaultKind, Fault] = {}
    for fault in faults:
        first.setdefault(fault.kind, fault)
    return tuple(first.values())


def needed_at(dep: TileDep) -> Iterator[tuple[Block, int, tuple[int, int, int, int]]]:
    """Every read of every consumer block as (block, k step, (r_lo, r_hi, c_lo, c_hi)), in producer tiles."""
    rows, cols, slices = dep.consumer_grid
    shape = (rows, cols, slices, dep.steps)
    for span in dep.spans:
        bounds = tuple(np.broadcast_to(bound, shape) for bound in span_arrays(span, dep))
        for row, col, slice_ in np.ndindex(rows, cols, slices):
            for step in _read_steps(span, slice_, dep):
                at = (row, col, slice_, min(step, dep.steps - 1))
                r_lo, r_hi, c_lo, c_hi = (int(bound[at]) for bound in bounds)
                if r_lo < r_hi and c_lo < c_hi:
                    yield (row, col, slice_), step, (r_lo, r_hi, c_lo, c_hi)


def _read_steps(span: TileSpan, slice_: int, dep: TileDep) -> range:
    first = slice_ * dep.slice_steps
    if span.at_k is not None:
        return range(first + span.at_k, first + span.at_k + 1)
    return range(first, min(first + dep.slice_steps, dep.steps))


def _made_in_all(wait: Wait, dep: TileDep) -> int:
    """How many semaphores the wait looks at in the whole grid, worked out only along the axes that it uses."""
    at, step = _places(wait, dep)
    made = np.asarray(np.maximum(wait.count.eval(**at), 0))
    depth = 1
    if wait.at_k is None:
        made, depth = made * (step < dep.steps), dep.slice_steps
    return int(made.sum()) * (math.prod(dep.consumer_grid) * depth // made.size)


def _wait_grids(policy: SyncPolicy, dep: TileDep) -> list[_Grid]:
    return [_wait_grid(wait, dep) for wait in policy.waits(dep)]


def _wait_grid(wait: Wait, dep: TileDep) -> _Grid:
    """The wait's values wherever a block makes it."""
    at, step = _places(wait, dep)
    shape = (*dep.consumer_grid, dep.slice_steps if wait.at_k is None else 1)
    made = step if wait.at_k is not None else np.where(step < dep.steps, step, -1)
    values = (made, *(expr.eval(**at) for expr in (wait.index, wait.target, wait.count)))
    return _Grid(*(np.broadcast_to(value, shape) for value in values))


def _places(wait: Wait, dep: TileDep) -> tuple[dict[str, int | IntArray], int | IntArray]:
    """Values of r, c, z and k that broadcast to every place where the wait is made, and the k step of each.

    The step lies past the last one where the last slice has fewer; k is the last one there.
    """
    rows, cols, slices = dep.consumer_grid
    at: dict[str, int | IntArray] = {
        "r": np.arange(rows).reshape(-1, 1, 1, 1),
        "c": np.arange(cols).reshape(1, -1, 1, 1),
        "z": np.arange(slices).reshape(1, 1, -1, 1),
    }
    at["k"] = first_step(dep).eval(**at)
    if wait.at_k is None:
        step = at["k"] + np.arange(dep.slice_steps)
        at["k"] = np.minimum(step, dep.steps - 1)
    else:
        step = at["k"] = wait.at_k.eval(**at)
    return at, step


def _post_faults(posts: Posted, dep: TileDep) -> Iterator[Fault]:
    cols = dep.producer_grid[1]
    size = len(posts.total)
    for tile, index, add in zip(posts.tile.tolist(), posts.index.tolist(), posts.add.tolist(), strict=True):
        where = (tile // cols, tile % cols, 0, -1)
        if not 0 <= index < size:
            yield Fault("post-index", where, f"tile {where[:2]} posts semaphore {index} of {size}")
        if add < 1:
            yield Fault("post-add", where, f"tile {where[:2]} adds {add}")


def _made(grid: _Grid) -> Iterator[tuple[tuple[int, int, int, int], int, int, int]]:
    """((r, c, z, k), index, target, count) of every wait that is made."""
    for place in np.argwhere((grid.step >= 0) & (grid.count > 0)):
        at = tuple(int(x) for x in place)
        where = (at[0], at[1], at[2], int(grid.step[at]))
        yield where, int(grid.index[at]), int(grid.target[at]), int(grid.count[at])


def _index_faults(grids: list[_Grid], posts: Posted) -> Iterator[Fault]:
    size = len(posts.total)
    for grid in grids:
        bad = (grid.step >= 0) & (grid.count > 0) & ((grid.index < 0) | (grid.index + grid.count > size))
        for place in np.argwhere(bad)[:1]:
            at = tuple(int(x) for x in place)
            low, high = int(grid.index[at]), int(grid.index[at] + grid.count[at])
            where = (at[0], at[1], at[2], int(grid.step[at]))
            yield Fault("wait-index", where, f"waits on semaphores {low} to {high - 1} of {size}")


def _reach_faults(grids: list[_Grid], posts: Posted) -> Iterator[Fault]:
    for grid in grids:
        for where, index, target, count in _made(grid):
            short = np.flatnonzero(posts.total[index : index + count] < target)
            if len(short):
                which = index + int(short[0])
                text = f"waits for {target} on semaphore {which}, which reaches {int(posts.total[which])}"
                yield Fault("target", where, text)
                break


def _coverage_faults(grids: list[_Grid], posts: Posted, dep: TileDep) -> Iterator[Fault]:
    """Compares, block by block, when each tile is read with when a wait first proves it posted."""
    waits: dict[Block, list[tuple[int, int, int, int]]] = {}
    for grid in grids:
        for (row, col, slice_, step), index, target, count in _made(grid):
            waits.setdefault((row, col, slice_), []).append((step, index, target, count))
    known: dict[Block, NDArray[np.int64]] = {}
    shape = dep.producer_grid[:2]
    never = np.iinfo(np.int64).max
    for block, step, (r_lo, r_hi, c_lo, c_hi) in needed_at(dep):
        if block not in known:
            known[block] = _proved_at(waits.get(block, []), posts, shape)
        part = known[block][r_lo:r_hi, c_lo:c_hi]
        late = np.argwhere(part > step)
        if len(late):
            tile = (r_lo + int(late[0][0]), c_lo + int(late[0][1]))
            when = int(part[tuple(late[0])])
            if when == never:
                yield Fault("missing", (*block, step), f"step {step} reads tile {tile}, which no wait covers")
            else:
                text = f"step {step} reads tile {tile}, which is waited for only at step {when}"
                yield Fault("late", (*block, step), text)


def _proved_at(waits: list[tuple[int, int, int, int]], posts: Posted, shape: tuple[int, int]) -> NDArray[np.int64]:
    """For each producer tile the first k step before which the block's waits prove that it has been posted."""
    never = np.iinfo(np.int64).max
    proved = np.full(shape[0] * shape[1], never, dtype=np.int64)
    without = posts.total[posts.index] - posts.add
    for step, index, target, count in sorted(waits):
        sure = (posts.index >= index) & (posts.index < index + count) & (without < target)
        tiles = posts.tile[sure]
        proved[tiles] = np.minimum(proved[tiles], step)
    return proved.reshape(shape)
