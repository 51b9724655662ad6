"""Figures into files: PNG or SVG by suffix, whole or absent, the same bytes for the same picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from cusim.errors import did_you_mean, refuse
from cusim.plot.style import house_style
from cusim.trace.formats.whole import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Facts that matplotlib would write into a file and that change from day to day or version to version.
_SILENT: dict[str, dict[str, str | None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
}


def save_figure(fig: Figure, path: Path | str, *, dpi: int = 150) -> None:
    """Writes *fig* to *path*, ``.png`` with *dpi* dots an inch or ``.svg``.

    Raises InputError for another suffix or a place that cannot be written.
    """
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in _SILENT:
        raise refuse(str(target), "suffix", target.suffix, did_you_mean(suffix, _SILENT))

    def write(file: BinaryIO) -> None:
        fig.savefig(file, format=suffix[1:], dpi=dpi, metadata=_SILENT[suffix])

    with house_style():
        write_whole(target, write)
