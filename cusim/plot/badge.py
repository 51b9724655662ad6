"""Legends under a badge that says whether a picture's times are predicted or measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cusim.plot.style import BADGES, EMPTY, INK

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure


def badged_legend(fig: Figure, handles: Sequence[Artist], kind: str) -> None:
    """A legend of *handles* right of everything, under *kind* in bold capitals on a coloured plate."""
    from matplotlib.patches import Patch

    # The plate is larger than the text that it lies under: an empty line keeps it off the first entry.
    gap = Patch(fc="none", ec="none", label=" ")
    legend = fig.legend(
        handles=[gap, *handles],
        loc="outside right upper",
        title=kind.upper(),
        alignment="left",
        frameon=False,
        handlelength=1.8,
    )
    plate, ink = BADGES.get(kind, (EMPTY, INK))
    text = legend.get_title()
    text.set_fontweight("bold")
    text.set_fontsize(10)
    text.set_color(ink)
    text.set_bbox({"boxstyle": "round,pad=0.4", "fc": plate, "ec": ink, "lw": 0.8})
