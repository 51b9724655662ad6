"""Legends under badges: whether a picture's times are predicted or measured, and whether the run stood still."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cusim.plot.style import BADGES, DEADLOCK, EMPTY, INK

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure
    from matplotlib.text import Text


def badged_legend(fig: Figure, handles: Sequence[Artist], kind: str, *, stuck: bool = False) -> None:
    """A legend of *handles* right of everything, under *kind* in bold capitals on a coloured plate.

    Where the run got *stuck*, a red plate stands between the two: DEADLOCK.
    """
    from matplotlib.patches import Patch

    # The plate is larger than the text that it lies under: an empty line keeps it off the first entry.
    gap, mark = Patch(fc="none", ec="none", label=" "), Patch(label=" ")
    legend = fig.legend(
        handles=[gap, *([mark, gap] if stuck else []), *handles],
        loc="outside right upper",
        title=kind.upper(),
        alignment="left",
        frameon=False,
        handlelength=1.8,
        handler_map={mark: _DeadlockPlate()},
    )
    text = legend.get_title()
    text.set_fontsize(10)
    put_on_plate(text, BADGES.get(kind, (EMPTY, INK)))


class _DeadlockPlate:
    """Draws a legend's entry as the plate of a deadlock, where the entry's sign would stand."""

    def legend_artist(self, legend: Any, handle: Artist, fontsize: float, box: Any) -> Text:
        from matplotlib.text import Text

        text = Text(0, 0, "DEADLOCK", va="baseline", ha="left", fontsize=10)
        put_on_plate(text, DEADLOCK)
        box.add_artist(text)
        return text


def put_on_plate(text: Text, colours: tuple[str, str]) -> None:
    """Puts *text* in bold on a plate of *colours*: of the plate, of the ink."""
    plate, ink = colours
    text.set_fontweight("bold")
    text.set_color(ink)
    text.set_bbox({"boxstyle": "round,pad=0.4", "fc": plate, "ec": ink, "lw": 0.8})
