"""A calibration as people read it: each parameter before and after, then how far the rows are from the model."""

from __future__ import annotations

from collections.abc import Sequence

from cusim.calibrate.calibrate import Calibrated
from cusim.calibrate.errors import BAND_PERCENTILE
from cusim.calibrate.fixed import rounded
from cusim.machine.quantity import Quantity
from cusim.report.line import WIDTH, Line, prose, strip_table
from cusim.report.table import Strip
from cusim.report.text import machine_text

_DIGITS = 4


def text_lines(found: Calibrated, width: int = WIDTH) -> list[Line]:
    """The whole answer, line by line."""
    machine = found.machine
    blank = Line("")
    head = Line(f"{machine.name}: {machine_text(machine)}, digest {machine.digest}", "head", 4)
    lines = [head, blank, *strip_table(_parameters(found), width), blank, *strip_table(_tiles(found), width), blank]
    return [*lines, prose(_band_text(found), "verdict")]


def _parameters(found: Calibrated) -> Sequence[Strip]:
    before = [found.base.provenance[each.path] for each in found.fixed]
    after = [found.machine.provenance[each.path] for each in found.fixed]
    errors = ["-" if quantity.stderr is None else f"{quantity.stderr:g}" for quantity in after]
    return (
        Strip("parameter", tuple(each.path for each in found.fixed)),
        Strip("before", tuple(map(_value, before)), number=True),
        Strip("after", tuple(map(_value, after)), number=True),
        Strip("stderr", tuple(errors), number=True),
        Strip("unit", tuple(_unit(quantity) for quantity in after)),
        Strip("fixed by", tuple(each.by + (" (not fixed)" * (each.path in found.unfixed)) for each in found.fixed)),
    )


def _tiles(found: Calibrated) -> Sequence[Strip]:
    return (
        Strip("tile", tuple(each.tile for each in found.tiles)),
        Strip("rows", tuple(str(each.rows) for each in found.tiles), number=True),
        Strip("MAPE % before", tuple(f"{each.before_mape_pct:.1f}" for each in found.tiles), number=True),
        Strip("after", tuple(f"{each.mape_pct:.1f}" for each in found.tiles), number=True),
        Strip("bias %", tuple(f"{each.bias_pct:+.1f}" for each in found.tiles), number=True),
        Strip("worst %", tuple(f"{each.worst_pct:.1f}" for each in found.tiles), number=True),
    )


def _band_text(found: Calibrated) -> str:
    band = found.machine.band_pct
    if found.dev is None:
        return f"Error band ±{band:g} %, as {found.base.name} had it: no dev row was given to set it by."
    dev = found.dev
    return (
        f"Error band ±{band:g} %: {BAND_PERCENTILE} % of {dev.rows} dev rows, which fixed no parameter, lie within "
        f"{dev.percentile_pct:.1f} % (MAPE {dev.mape_pct:.1f} %)."
    )


def _value(quantity: Quantity) -> str:
    value = quantity.value
    if isinstance(value, tuple):
        return f"{' '.join(map(str, value[:3]))} ..."
    return value if isinstance(value, str) else str(rounded(value, _DIGITS))


def _unit(quantity: Quantity) -> str:
    return "" if quantity.unit in ("1", "id") else quantity.unit
