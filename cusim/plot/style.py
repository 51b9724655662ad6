"""How all pictures look: colours that everybody tells apart, settings that no matplotlibrc changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import matplotlib.style
from matplotlib.colors import to_rgb

#: Kernel colours in issue order: Okabe and Ito's, told apart under all common kinds of colour blindness, then
#: three of Tol's for programs with more kernels.
PALETTE = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#882255", "#999933",
    "#332288",
)  # fmt: skip
WORKING, WAITING, EMPTY = "#0072B2", "#E69F00", "#E4E4E4"
GAIN, LOSS = "#009E73", "#D55E00"
INK, FAINT = "#222222", "#8A8A8A"
#: Background and text of the badge that says where times come from.
BADGES = {"predicted": ("#FFF3D6", "#7A4B00"), "measured": ("#DDF3EA", "#00553D")}
#: The badge of a run that deadlocked.
DEADLOCK = ("#FBE0DB", "#A11D0A")
HATCH = "/////"
#: The share of its colour that a kernel's tail keeps.
TAIL_TINT = 0.22

_HOUSE = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.edgecolor": FAINT,
    "axes.linewidth": 0.8,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "hatch.linewidth": 0.6,
    "svg.hashsalt": "cusim",
    "svg.fonttype": "path",
    "svg.image_inline": True,
}


@contextmanager
def house_style() -> Iterator[None]:
    """Draws with cusim's settings on top of matplotlib's defaults, and puts the user's settings back."""
    with matplotlib.style.context(["default", _HOUSE]):
        yield


def kernel_colour(number: int) -> str:
    """The colour of the kernel that was issued as *number*, counted from 0; colours come round again."""
    return PALETTE[number % len(PALETTE)]


def tint(colour: str, share: float) -> tuple[float, float, float]:
    """*colour* mixed with white, of which it keeps *share* (0 to 1)."""
    red, green, blue = to_rgb(colour)
    return (1 - share * (1 - red), 1 - share * (1 - green), 1 - share * (1 - blue))


def shade(colour: str, share: float) -> tuple[float, float, float]:
    """*colour* mixed with black, of which it keeps *share* (0 to 1)."""
    red, green, blue = to_rgb(colour)
    return (share * red, share * green, share * blue)


def ink_on(colour: str) -> str:
    """Black or white, whichever reads better on *colour*."""
    red, green, blue = to_rgb(colour)
    return "white" if 0.299 * red + 0.587 * green + 0.114 * blue < 0.52 else INK


def micros(value_ps: float) -> str:
    """A time for people, in microseconds with a digit that matters."""
    value = value_ps / 1e6
    return f"{value:.1f} us" if value >= 10 else f"{value:.3g} us"
