"""One published line: the time of one policy at one size, how its kernels were cut, and the time of each alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from cusim.errors import InputError, Problems, did_you_mean
from cusim.policies.flags import parse_flags
from cusim.program.toml_kernel import parse_tile
from cusim.workloads.blocks import Tiling

#: Policies that cusim predicts, in the order in which ties between predictions are broken.
SCORED = ("stream", "row", "tile")
#: Contenders that stand beside them for context: unfused library GEMMs, and Stream-K.
CONTEXT = ("torch", "streamk")
COLUMNS = (
    "m", "policy", "repeat", "total_us", "stdev_us", "producer_us", "consumer_us", "producer_tile", "consumer_tile",
    "producer_split_k", "consumer_split_k", "producer_stages", "consumer_stages", "flags", "tile_entry",
)  # fmt: skip
_ENTRIES = ("own", "largest")
_TIME = re.compile(r"\d{1,9}(\.\d{1,6})?", re.ASCII)
_COUNT = re.compile(r"[1-9]\d{0,8}", re.ASCII)
_PS_PER_US = 1_000_000
#: Parts of a stream row that add up to its total within this much were measured in the same runs (rounding: 0.01 us).
_SUM_PS = 30_000


@dataclass(frozen=True, slots=True)
class Reading:
    """A published time in ps with its standard deviation; *own_ps* are the producer's and the consumer's.

    None stands for what the publication leaves out. *flags* are letters of W, R, T, A; *tile_entry* is ``own`` where
    the publication's tile table has an entry for this size, ``largest`` where it falls back to its last.
    """

    m: int
    policy: str
    repeat: int
    total_ps: int
    stdev_ps: int | None
    own_ps: tuple[int, int] | None
    tilings: tuple[Tiling, Tiling] | None
    flags: str
    tile_entry: str


def read_line(cells: Sequence[str], key: str, problems: Problems) -> Reading | None:
    """The reading in one line of the CSV; None, and what is wrong recorded, where it is off."""
    before = len(problems.found)
    if len(cells) != len(COLUMNS):
        problems.add(key, None, f"has {len(cells)} cells, must have {len(COLUMNS)}")
        return None
    row = dict(zip(COLUMNS, (cell.strip() for cell in cells), strict=True))
    if row["policy"] not in SCORED + CONTEXT:
        problems.add(f"{key}: policy", row["policy"], did_you_mean(row["policy"], SCORED + CONTEXT))
    if row["tile_entry"] not in _ENTRIES:
        problems.add(f"{key}: tile_entry", row["tile_entry"], did_you_mean(row["tile_entry"], _ENTRIES))
    m, repeat = (_count(row, name, key, problems) for name in ("m", "repeat"))
    total = _time(row, "total_us", key, problems, needed=True)
    stdev = _time(row, "stdev_us", key, problems, needed=row["policy"] in SCORED)
    own = tuple(
        _time(row, name, key, problems, needed=row["policy"] == "stream") for name in ("producer_us", "consumer_us")
    )
    tilings = _tilings(row, key, problems) if row["policy"] in SCORED else None
    try:
        flags = str(parse_flags(row["flags"])).replace("-", "")
    except InputError as error:
        problems.add(f"{key}: flags", row["flags"], error.problems[0].why)
        flags = ""
    if len(problems.found) > before or total is None:
        return None
    both = None if own[0] is None or own[1] is None else (own[0], own[1])
    return Reading(m, row["policy"], repeat, total, stdev, both, tilings, flags, row["tile_entry"])


def check_together(readings: Sequence[Reading], problems: Problems) -> None:
    """Records what single lines cannot show: repeats of a line, sizes without a stream row, parts that don't add up."""
    seen: set[tuple[int, str, int]] = set()
    if not readings:
        problems.add("line 3", None, "holds no reading")
    for reading in readings:
        name = (reading.m, reading.policy, reading.repeat)
        if name in seen:
            problems.add(f"m={reading.m} {reading.policy}", reading.repeat, "a repeat of this number came before")
        seen.add(name)
        if reading.policy == "stream" and reading.own_ps is not None:
            off = sum(reading.own_ps) - reading.total_ps
            if abs(off) > _SUM_PS:
                why = f"its kernels' own times differ from it by {off / _PS_PER_US:.2f}; they must add up to it"
                problems.add(f"m={reading.m} stream: total_us", reading.total_ps / _PS_PER_US, why)
    for m in sorted({reading.m for reading in readings}):
        if not any(r.policy == "stream" for r in readings if r.m == m):
            problems.add(f"m={m}", None, "has no stream row, against which the others are judged")


def _count(row: dict[str, str], name: str, key: str, problems: Problems) -> int:
    if _COUNT.fullmatch(row[name]) is None:
        problems.add(f"{key}: {name}", row[name], "must be a whole number, 1 or more")
        return 1
    return int(row[name])


def _time(row: dict[str, str], name: str, key: str, problems: Problems, *, needed: bool) -> int | None:
    text = row[name]
    if not text and not needed:
        return None
    found = int(Decimal(text) * _PS_PER_US) if _TIME.fullmatch(text) else 0
    if found == 0 and (name != "stdev_us" or not _TIME.fullmatch(text)):
        problems.add(f"{key}: {name}", text, "must be a time above 0 in us, such as 743.08")
    return found


def _tilings(row: dict[str, str], key: str, problems: Problems) -> tuple[Tiling, Tiling]:
    producer, consumer = (_tiling(row, part, key, problems) for part in ("producer", "consumer"))
    return producer, consumer


def _tiling(row: dict[str, str], part: str, key: str, problems: Problems) -> Tiling:
    tile = parse_tile(row[f"{part}_tile"])
    if tile is None:
        problems.add(f"{key}: {part}_tile", row[f"{part}_tile"], "must be MxNxK such as 128x256x64")
    split = _count(row, f"{part}_split_k", key, problems)
    stages = _count(row, f"{part}_stages", key, problems)
    return Tiling(tile or (1, 1, 1), split, stages)
