"""The events of a Chrome trace as JSON text, one a line, made as they are asked for.

Times are microseconds with three decimals: whole nanoseconds, exactly.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cusim.trace.columns import NONE, Column
from cusim.trace.formats.chrome_counters import waiting_tiles, within, working_sms
from cusim.trace.formats.chrome_view import (
    FIRST_TID,
    GPU_PID,
    SMS_PER_GROUP,
    Threads,
    group_pid,
)
from cusim.trace.formats.table import to_ns
from cusim.trace.intervals import Spans, lanes, spans_of
from cusim.trace.trace import Trace

#: Blocks made into text at a time.
_CHUNK = 4096


class Scene(NamedTuple):
    """Everything that is drawn: *rows* of the tiles, their *spans_ns* (of all tiles), their threads, and for every
    wait the *posters* row whose post ended it.
    """

    trace: Trace
    rows: NDArray[np.int64]
    spans_ns: Spans
    threads: Threads
    posters: Column
    window_ns: tuple[int, int] | None


def events_of(scene: Scene) -> Iterator[str]:
    """Names, kernels, counters, then every block with its waits and the arrows that end at them."""
    yield from _names(scene)
    yield from _kernels(scene)
    yield from _counters(scene)
    yield from _blocks(scene)


def micros(time_ns: int) -> str:
    """Nanoseconds as microseconds with three decimals."""
    sign, time_ns = ("-", -time_ns) if time_ns < 0 else ("", time_ns)
    return f"{sign}{time_ns // 1000}.{time_ns % 1000:03d}"


def _named(kind: str, pid: int, tid: int, key: str, value: str | int) -> str:
    return f'{{"ph":"M","pid":{pid},"tid":{tid},"name":"{kind}","args":{{"{key}":{json.dumps(value)}}}}}'


def _names(scene: Scene) -> Iterator[str]:
    """The names of processes and threads, and the order in which they stand."""
    used = np.unique(scene.threads.place[scene.rows])
    sms = scene.threads.sm[used].tolist()
    machine = scene.trace.meta.get("machine")
    pids = {GPU_PID: f"GPU {machine}" if isinstance(machine, str) else "GPU"}
    for sm in sms:
        if sm != NONE:
            first = sm // SMS_PER_GROUP * SMS_PER_GROUP
            pids[group_pid(sm)] = f"SM {first} to {first + SMS_PER_GROUP - 1}"
    for pid, name in pids.items():
        yield _named("process_name", pid, 0, "name", name)
        yield _named("process_sort_index", pid, 0, "sort_index", pid)
    for place, sm, slot in zip(used.tolist(), sms, scene.threads.slot[used].tolist(), strict=True):
        name = f"SM {sm} slot {slot}" if sm != NONE else f"SM not recorded, slot {slot}"
        yield _named("thread_name", group_pid(sm), FIRST_TID + place, "name", name)
        yield _named("thread_sort_index", group_pid(sm), FIRST_TID + place, "sort_index", place)


def _kernels(scene: Scene) -> Iterator[str]:
    """One span a kernel, from its first block's start to its last block's end, on a thread of its own."""
    trace, spans = scene.trace, scene.spans_ns
    events = {name: to_ns(name, column) for name, column in trace.events.items()}
    kernels, times = [], []
    for row, kernel in enumerate(events["kernel"].tolist()):
        begin, end = int(events["launch"][row]), int(events["done"][row])
        mine = spans[trace.tiles["kernel"] == kernel]
        if (begin < 0 or end < begin) and len(mine):
            begin, end = int(mine[:, 0].min()), int(mine[:, 1].max())  # an event was not seen, or never came
        window = scene.window_ns
        if 0 <= begin <= end and (window is None or (begin < window[1] and end > window[0])):
            kernels.append(row)
            times.append((begin, end))
    if not kernels:
        return
    number = events["kernel"][kernels]
    starts, ends = np.array(times, dtype=np.int64).T
    lane = lanes(number, spans_of(starts, ends))
    tid = FIRST_TID + len(scene.threads.sm) + number * (int(lane.max()) + 1) + lane
    for row, kernel, thread, (begin, end) in zip(kernels, number.tolist(), tid.tolist(), times, strict=True):
        name = trace.kernels[kernel]
        blocks = int((trace.tiles["kernel"] == kernel).sum())
        yield _named("thread_name", GPU_PID, thread, "name", f"kernel {name}")
        yield _named("thread_sort_index", GPU_PID, thread, "sort_index", thread)
        yield (
            f'{{"ph":"X","cat":"kernel","name":{json.dumps(name)},"pid":{GPU_PID},"tid":{thread},'
            f'"ts":{micros(begin)},"dur":{micros(end - begin)},"args":{{"blocks":{blocks},'
            f'"enqueue_ns":{events["enqueue"][row]},"arrive_ns":{events["arrive"][row]}}}}}'
        )


def _counters(scene: Scene) -> Iterator[str]:
    """How many SMs work and how many blocks wait, over all blocks, whatever is sampled."""
    for name, key, series in (
        ("working SMs", "SMs", working_sms(scene.trace, scene.spans_ns)),
        ("waiting tiles", "tiles", waiting_tiles(scene.trace)),
    ):
        for time, value in within(series, scene.window_ns):
            yield (
                f'{{"ph":"C","name":"{name}","pid":{GPU_PID},"tid":0,"ts":{micros(time)},"args":{{"{key}":{value}}}}}'
            )


def _blocks(scene: Scene) -> Iterator[str]:
    """Every block as a span, then its waits as spans inside it, each with the arrow that ends at it."""
    waits = _Waits(scene)
    sliced = np.zeros(len(scene.trace.kernels), dtype=bool)
    sliced[scene.trace.tiles["kernel"][scene.trace.tiles["z"] > 0]] = True
    has_slices = sliced.tolist()
    heads = [json.dumps(name)[:-1] for name in scene.trace.kernels]
    pids = [group_pid(sm) for sm in scene.threads.sm.tolist()]
    for first in range(0, len(scene.rows), _CHUNK):
        rows = scene.rows[first : first + _CHUNK]
        tiles = {name: to_ns(name, column[rows]).tolist() for name, column in scene.trace.tiles.items()}
        begins, ends = (scene.spans_ns[rows, side].tolist() for side in (0, 1))
        places = scene.threads.place[rows].tolist()
        ranges = waits.ranges(rows)
        for i, (kernel, place, begin, end) in enumerate(zip(tiles["kernel"], places, begins, ends, strict=True)):
            slice_ = f", {tiles['z'][i]}" if has_slices[kernel] else ""
            thread = f'"pid":{pids[place]},"tid":{FIRST_TID + place}'
            posted = tiles["posted"][i] if tiles["posted"][i] != NONE else "null"
            yield (
                f'{{"ph":"X","cat":"tile","name":{heads[kernel]} ({tiles["r"][i]}, {tiles["c"][i]}{slice_})",'
                f'{thread},"ts":{micros(begin)},"dur":{micros(end - begin)},"args":{{"ticket":{tiles["ticket"][i]},'
                f'"ready_ns":{tiles["ready"][i]},"first_load_ns":{tiles["first_load"][i]},"posted_ns":{posted},'
                f'"wait_total_ns":{tiles["wait_total"][i]}}}}}'
            )
            if ranges[i][0] < ranges[i][1]:
                yield from waits.events(ranges[i], thread, begin, end)


class _Waits:
    """The waits of a scene, by block and time, ready to be written."""

    def __init__(self, scene: Scene) -> None:
        table = scene.trace.waits
        order = np.lexsort((table["end"], table["begin"], table["tile"]))
        self._tile = table["tile"][order]
        self._begin = to_ns("begin", table["begin"][order])
        self._end = to_ns("end", table["end"][order])
        self._dependence = table["dependence"][order]
        self._semaphore = table["semaphore"][order]
        self._poster = self._shown(scene, scene.posters[order])
        self._names = [json.dumps(name)[1:-1] for name in scene.trace.dependences]
        self._scene = scene
        self._pids = [group_pid(sm) for sm in scene.threads.sm.tolist()]

    @staticmethod
    def _shown(scene: Scene, poster: Column) -> Column:
        """Posters that are exported themselves: an arrow needs both ends."""
        exported = np.zeros(scene.trace.blocks + 1, dtype=bool)  # the last entry is that of NONE
        exported[scene.rows] = True
        return np.where(exported[poster], poster, NONE)

    def ranges(self, rows: NDArray[np.int64]) -> list[tuple[int, int]]:
        """For each block the first of its waits and the one after its last."""
        first, last = (np.searchsorted(self._tile, rows, side).tolist() for side in ("left", "right"))
        return list(zip(first, last, strict=True))

    def events(self, places: tuple[int, int], thread: str, start: int, stop: int) -> Iterator[str]:
        """The waits of one block that holds its slot from *start* to *stop*, cut so that they nest in it."""
        reach = start
        for i in range(*places):
            begin = min(max(int(self._begin[i]), reach), stop)
            end = reach = min(max(int(self._end[i]), begin), stop)
            dependence, semaphore = int(self._dependence[i]), int(self._semaphore[i])
            what = self._names[dependence] if dependence != NONE else "the slice before"
            yield (
                f'{{"ph":"X","cat":"wait","name":"wait {what}",{thread},"ts":{micros(begin)},'
                f'"dur":{micros(end - begin)},"args":{{"semaphore":{semaphore if semaphore != NONE else "null"}}}}}'
            )
            if self._poster[i] != NONE:
                yield from self._arrow(i, thread, begin, end)

    def _arrow(self, i: int, thread: str, begin: int, end: int) -> Iterator[str]:
        """From the poster's last nanosecond before its post to the wait's last: viewers bind an arrow to the span
        that is open at its time, and a span is no longer open at its end.
        """
        row = int(self._poster[i])
        place = int(self._scene.threads.place[row])
        left, right = self._scene.spans_ns[row].tolist()
        posted = min(int(self._scene.trace.tiles["posted"][row]) // 1000, right)
        out = max(posted - 1, left)
        into = max(end - 1, begin, out)
        if into > end:
            return  # the wait was cut short of the post: the two ends cannot be joined
        common = f'"cat":"post","name":"post","id":{i + 1}'
        yield f'{{"ph":"s",{common},"pid":{self._pids[place]},"tid":{FIRST_TID + place},"ts":{micros(out)}}}'
        yield f'{{"ph":"f","bp":"e",{common},{thread},"ts":{micros(into)}}}'
