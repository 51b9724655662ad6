"""From recordings to a calibrated machine: what micro-benchmarks give is read, what whole kernels show is fitted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cusim.calibrate.errors import BAND_PERCENTILE, DevErrors, TileErrors, by_tile, dev_errors
from cusim.calibrate.estimates import Estimate
from cusim.calibrate.fit import check_enough, fit
from cusim.calibrate.fixed import Fixed, calibrated, rounded, with_fixed
from cusim.calibrate.material import Material
from cusim.calibrate.parameters import fitted_parameters
from cusim.calibrate.pool import Pool
from cusim.calibrate.reading import Readings, readings
from cusim.errors import refuse
from cusim.machine.calibration import Calibration, Used
from cusim.machine.machine import Machine
from cusim.machine.quantity import Quantity
from cusim.recording.rows import Row
from cusim.validate.recorded import predict_rows

#: The set that a file of micro-benchmarks counts as in a machine's calibration.
MICRO = "micro-benchmarks"


@dataclass(frozen=True)
class Calibrated:
    """A calibrated *machine* beside the *base* that it began from, and all that is known of the way.

    *fixed* are the leaves that changed hands, read ones first; *unfixed* says of each that the data do not fix, why;
    *tiles* are the errors on the calibrate rows, *dev* those behind the band (None: the base's band was kept).
    """

    base: Machine
    machine: Machine
    fixed: tuple[Fixed, ...]
    unfixed: dict[str, str]
    tiles: tuple[TileErrors, ...]
    dev: DevErrors | None
    warnings: tuple[str, ...]


def calibrate(
    material: Material,
    base: Machine,
    date: str,
    micro: Pool | None = None,
    asked: tuple[str, ...] = (),
    workers: int | None = None,
    watch: Callable[[str], None] = lambda _: None,
) -> Calibrated:
    """A machine fitted to *material*, beginning with *base* and what *micro* reads; *date* (ISO 8601) is kept in it.

    *asked* names the leaves to fit instead of the usual ones. Only ``calibrate`` rows fix parameters; dev rows set the
    error band. Raises InputError for a base under what-if settings, an unknown leaf, and too few rows.
    """
    if base.overrides:
        raise refuse("--machine", "machine", base.name, f"has what-if settings in force: {' '.join(base.overrides)}")
    read = readings(micro, base) if micro is not None else Readings((), ())
    parameters = fitted_parameters(asked, {each.path for each in read.fixed})
    # What was asked to be fitted is not read as well.
    readers = tuple(each for each in read.fixed if each.path not in {parameter.path for parameter in parameters})
    check_enough(len(material.calibrate), len(parameters))
    start = with_fixed(base, readers)
    watch("every row as the machine was")
    rows, left_out = _predictable(material.calibrate, start, workers)
    found = fit(rows, start, parameters, workers, watch)
    told = _told(rows, found.rows, material, len(parameters))
    fits = tuple(_fixed(each, told, found.rows, material.record) for each in found.estimates if each.seen)
    machine = with_fixed(start, fits)
    watch("every row as the machine is now")
    before, after = (predict_rows(rows, each, workers) for each in (base, machine))
    dev = dev_errors(material.dev, predict_rows(material.dev, machine, workers)) if material.dev else None
    band = machine.provenance["band_pct"] if dev is None else _band(dev, material)
    measured = micro.files if micro is not None and readers else ()
    used = (*material.used, *(Used(each.file, each.digest, (MICRO,), len(each.quantities)) for each in measured))
    unfixed = {each.parameter.path: each.why for each in found.estimates if each.why}
    warnings = (*material.warnings, *read.warnings, *left_out)
    warnings += tuple(f"{path} is not fixed by these rows: {why}" for path, why in unfixed.items())
    return Calibrated(
        base,
        calibrated(machine, band, Calibration(date, used).and_before(base.calibration)),
        (*readers, *fits),
        unfixed,
        tuple(by_tile(rows, before, after)),
        dev,
        (*warnings, *_band_warnings(dev, material, base)),
    )


def _predictable(rows: Sequence[Row], machine: Machine, workers: int | None) -> tuple[list[Row], list[str]]:
    """The rows that the model predicts at all, and a sentence on the others."""
    said = predict_rows(rows, machine, workers)
    kept = [row for row, predicted in zip(rows, said, strict=True) if predicted is not None]
    others = [row for row, predicted in zip(rows, said, strict=True) if predicted is None]
    if not others:
        return kept, []
    first = f"{others[0].workload} {others[0].tile}"
    return kept, [f"{len(others)} calibrate rows are not predicted and were left out, the first {first}"]


def _fixed(estimate: Estimate, told: str, used: int, record: str) -> Fixed:
    """A fitted leaf; *told* says which rows fixed it, *used* of them."""
    source = f"{estimate.parameter.meaning}: {told}"
    source += f"; not fixed by them: {estimate.why}" if estimate.why else ""
    return Fixed(estimate.parameter.path, estimate.value, estimate.stderr, f"{used} rows", source, record)


def _told(rows: Sequence[Row], used: int, material: Material, together: int) -> str:
    """In words, what the fit rests on."""
    shapes, tiles = len({row.workload for row in rows}), len({row.tile for row in rows})
    files = ", ".join(each.file for each in material.used)
    part = f"{used} of {len(rows)}" if used < len(rows) else f"{used}"
    told = f"least squares over {part} calibrate rows ({shapes} products, {tiles} tiles) of {files}"
    return f"{told}, {together} parameters together"


def _band(dev: DevErrors, material: Material) -> Quantity:
    files = ", ".join(used.file for used in material.used)
    source = f"{BAND_PERCENTILE}th percentile of the error's size over {dev.rows} dev rows, "
    source += f"{dev.percentile_pct:.1f} %, rounded up; fitted on the calibrate rows of {files}"
    return Quantity(rounded(dev.band_pct, 6), "%", source, None, "measured", material.record)


def _band_warnings(dev: DevErrors | None, material: Material, base: Machine) -> tuple[str, ...]:
    if dev is None:
        return (f"no dev row to set the error band by: it stays ±{base.band_pct:g} %, as the machine had it",)
    missing = len(material.dev) - dev.rows
    return (f"{missing} dev rows are not predicted and do not count in the band",) if missing else ()
