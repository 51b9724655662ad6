"""The table of kernels: sizes, grids, how many blocks an SM holds, and waves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from cusim.report.kernels import KernelRow
from cusim.report.result import Report
from cusim.report.shape import grid_text
from cusim.report.table import Strip, useful

_Cell: TypeAlias = Callable[[KernelRow], str]


def kernel_strips(reports: Sequence[Report]) -> list[Strip]:
    """Columns of all distinct kernels; SMs, policies and where times come from only if there is something to say."""
    pairs = list(dict.fromkeys((report.machine.limits.sms, row) for report in reports for row in report.kernels))
    rows = [row for _, row in pairs]
    widths = _widths(rows)

    def strip(title: str, cell: _Cell, number: bool = False, shed: int = 0) -> Strip:
        return Strip(title, tuple(map(cell, rows)), number, shed)

    found = [
        strip("kernel", lambda row: row.name),
        strip(_sizes_title(widths), lambda row: _sizes(row, widths)),
        strip("tile", lambda row: row.tile),
        strip("grid r x c", lambda row: grid_text(row.grid), number=True, shed=1),
        strip("tiles", lambda row: str(row.tiles), number=True, shed=2),
        strip("blocks/SM", lambda row: f"{row.blocks_per_sm} ({row.limited_by})"),
        strip("waves", lambda row: "-" if row.waves is None else f"{row.waves:.2f}", number=True),
    ]
    if len({sms for sms, _ in pairs}) > 1:
        found.insert(0, Strip("SMs", tuple(str(sms) for sms, _ in pairs), number=True))
    if any(row.cost != "model" for row in rows):
        found.append(strip("time from", lambda row: row.cost, shed=3))
    if any(row.used_by for row in rows):
        found.append(strip("used by", lambda row: row.used_by or "all"))
    return useful(found)


def _sizes(row: KernelRow, widths: tuple[int, int, int]) -> str:
    if row.m is None or row.n is None or row.k is None:
        return "-"
    return " x ".join(str(size).rjust(width) for size, width in zip((row.m, row.n, row.k), widths, strict=True))


def _sizes_title(widths: tuple[int, int, int]) -> str:
    return " x ".join(name.rjust(width) for name, width in zip("MNK", widths, strict=True))


def _widths(rows: Sequence[KernelRow]) -> tuple[int, int, int]:
    """Digits of the largest M, N and K, so that the sizes stand under each other."""
    m, n, k = (max((len(str(getattr(row, side))) for row in rows if row.m), default=1) for side in "mnk")
    return m, n, k
