"""Calibration recovers what was planted, and says which numbers the data do not fix."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from cusim.calibrate.calibrate import Calibrated, calibrate
from cusim.calibrate.errors import BAND_PERCENTILE, by_tile, dev_errors
from cusim.calibrate.estimates import Estimate
from cusim.calibrate.fit import fit, thinned
from cusim.calibrate.fixed import Fixed, value_of, with_fixed, with_values
from cusim.calibrate.material import gather
from cusim.calibrate.parameters import FITTED, READ, fitted_parameters
from cusim.calibrate.scaled import internal
from cusim.errors import InputError
from cusim.machine import Machine, leaf_paths, load_machine, machine_from_toml, with_overrides
from cusim.machine.write import machine_to_toml
from cusim.recording.rows import Row, write_recording
from cusim.validate.recorded import predict_rows

SMS = 16
PRODUCTS = [(m, n, k) for m in (128, 512, 768) for n in (256, 1024) for k in (512, 4096)]
TILES = ("128x256x64", "128x128x64")
#: What the planted machine has, in internal units; far from the preset and inside the bounds.
PLANTED = {
    "rates.tensor_clock_hz": 1.7e9, "block.step_clocks": 150.0, "block.prologue_ps": 1_100_000.0,
    "rates.l2_bytes_per_s": 1.3e12, "rates.contention_sharpness": 4.0, "rates.sm_store_bytes_per_clock": 40.0,
}  # fmt: skip
ASKED = ("rates.tensor_clock_hz", "block.step_clocks", "block.prologue_ps", "rates.l2_bytes_per_s")


@pytest.fixture(scope="module")
def planted() -> Machine:
    """A small GPU whose numbers are known, every one that matters here; nothing else binds."""
    small = with_overrides(load_machine("h200"), [f"machine.sms={SMS}"])
    small = dataclasses.replace(small, state="preset", calibration=None)
    limits = {"rates.tensor_efficiency": 1.0, "rates.clock_droop": 0.0, "rates.hbm_bytes_per_s": 1e12}
    limits |= {"rates.sm_l2_bytes_per_clock": 128.0, "rates.lone_block_share": 1.0, "block.load_ps": 100_000.0}
    rest = {"rates.l2_link_bytes_per_s": 1e13, "block.epilogue_ps": 300_000.0}
    return given(dataclasses.replace(small, overrides=(), base=None), {**PLANTED, **limits, **rest})


@pytest.fixture(scope="module")
def start(planted: Machine) -> Machine:
    """The same GPU before anybody measured it."""
    wrong = {"rates.tensor_clock_hz": 1.98e9, "block.step_clocks": 0.0, "block.prologue_ps": 2_000_000.0}
    return given(planted, {**wrong, "rates.l2_bytes_per_s": 3e12})


def given(machine: Machine, values: Mapping[str, float]) -> Machine:
    """The machine with these numbers, in internal units, as a file would give them."""
    return with_fixed(machine, [Fixed(path, value, None, "", "given", "") for path, value in values.items()])


def row(workload: str, tile: str, label: str = "calibrate", order: str = "row", total_ns: int = 1000) -> Row:
    m = int(workload.split("-")[1].split("x")[0])
    times = (total_ns, total_ns, total_ns)
    return Row(
        "single", label, workload, m, tile, "1", "stream", order, "default", "wait-first", 0, *times, (total_ns,), 1
    )


def timed(rows: Sequence[Row], machine: Machine, noise: float, seed: int = 5) -> list[Row]:
    """The rows with the times that *machine* would take, off by a normal error of that relative size."""
    random = np.random.default_rng(seed)
    found = []
    for each, predicted in zip(rows, predict_rows(rows, machine, workers=1), strict=True):
        assert predicted is not None
        total = round(predicted / 1000 * (1 + noise * random.standard_normal()))
        found.append(dataclasses.replace(each, total_ns=total, low_ns=total, high_ns=total, samples_ns=(total,)))
    return found


@pytest.fixture(scope="module")
def singles(planted: Machine) -> list[Row]:
    """Products of one wave and of several, with an error of 1 %."""
    rows = [row(f"gemm-{m}x{n}x{k}", tile) for m, n, k in PRODUCTS for tile in TILES]
    return timed(rows, planted, 0.01)


@pytest.fixture(scope="module")
def estimates(singles: list[Row], start: Machine) -> dict[str, Estimate]:
    found = fit(singles, start, fitted_parameters(ASKED, set()), workers=1)
    return {each.parameter.path: each for each in found.estimates}


@pytest.mark.parametrize("path", ASKED)
def test_planted_numbers_come_back_within_the_stated_error(path: str, estimates: dict[str, Estimate]) -> None:
    found = estimates[path]
    assert not found.why
    assert found.stderr is not None
    assert abs(found.value - PLANTED[path]) < 3 * found.stderr
    assert found.stderr < 0.25 * PLANTED[path]


def test_the_error_stated_is_the_error_made(planted: Machine, start: Machine) -> None:
    """Over repeated recordings the estimates scatter as much as each says of itself."""
    parameters = fitted_parameters(("rates.tensor_clock_hz",), set())
    rows = [row(f"gemm-{m}x{n}x{k}", TILES[0]) for m, n, k in PRODUCTS]
    near = with_values(planted, {"rates.tensor_clock_hz": 1.75e9})
    found = [fit(timed(rows, planted, 0.01, seed), near, parameters, workers=1).estimates[0] for seed in range(12)]
    scatter = float(np.std([each.value for each in found], ddof=1))
    stated = float(np.mean([each.stderr or 0.0 for each in found]))
    assert 0.5 < scatter / stated < 1.7


def test_an_exact_recording_is_met_exactly(planted: Machine, start: Machine) -> None:
    start = with_values(start, {"rates.l2_bytes_per_s": PLANTED["rates.l2_bytes_per_s"]})
    rows = timed([row(f"gemm-{m}x{n}x{k}", TILES[0]) for m, n, k in PRODUCTS], planted, 0.0)
    found = fit(rows, start, fitted_parameters(ASKED[:3], set()), workers=1)
    errors = [abs(p / 1000 / r.total_ns - 1) for p, r in zip(predict_rows(rows, found.machine, 1), rows, strict=True)]  # type: ignore[operator]
    assert max(errors) < 0.01


def test_an_outlier_moves_little(singles: list[Row], planted: Machine) -> None:
    spoilt = [dataclasses.replace(singles[0], total_ns=4 * (singles[0].total_ns or 0)), *singles[1:]]
    (clock,) = fit(spoilt, planted, fitted_parameters(ASKED[:1], set()), workers=1).estimates
    assert abs(clock.value / PLANTED[ASKED[0]] - 1) < 0.02


def test_a_number_that_no_row_depends_on_keeps_its_value(singles: list[Row], start: Machine) -> None:
    idle = with_values(start, {"rates.hbm_bytes_per_s": 9e15, "rates.contention_sharpness": 1000.0})
    asked = fitted_parameters((*ASKED[:2], "rates.l2_link_bytes_per_s"), set())
    found = fit(singles, idle, asked, workers=1)
    link = found.estimates[2]
    assert (link.seen, link.stderr) == (False, None)
    assert "no row depends on it" in link.why
    assert value_of(found.machine, "rates.l2_link_bytes_per_s") == value_of(idle, "rates.l2_link_bytes_per_s")


def test_two_numbers_that_only_show_as_a_sum_are_said_not_to_be_fixed(singles: list[Row], planted: Machine) -> None:
    asked = fitted_parameters(("block.prologue_ps", "block.epilogue_ps"), set())
    prologue, epilogue = fit(singles, planted, asked, workers=1).estimates
    assert prologue.stderr is None
    assert "it goes with block.epilogue_ps (correlation -" in prologue.why
    assert "it goes with block.prologue_ps" in epilogue.why
    assert prologue.value + epilogue.value == pytest.approx(1_400_000, rel=0.1)


def test_a_number_on_its_bound_has_no_error(singles: list[Row], planted: Machine) -> None:
    slow = [dataclasses.replace(each, total_ns=9 * (each.total_ns or 0)) for each in singles]
    (clock,) = fit(slow, planted, fitted_parameters(("rates.tensor_clock_hz",), set()), workers=1).estimates
    assert clock.value == pytest.approx(1e9, rel=1e-3)
    assert (clock.stderr, clock.why) == (None, "it ended on a bound")


def test_too_few_rows_are_refused(singles: list[Row], start: Machine) -> None:
    parameters = fitted_parameters(ASKED, set())
    with pytest.raises(InputError, match="8 rows are too few for 4 parameters: at least 9"):
        fit(singles[:8], start, parameters, workers=1)


def test_thinning_keeps_every_tile_and_is_the_same_every_time() -> None:
    rows = [row(f"gemm-{m}x{n}x{k}", tile, order=order) for m, n, k in PRODUCTS for tile in TILES for order in "ab"]
    kept = thinned(rows, 20)
    assert len(kept) == 20
    assert {(each.tile, each.order) for each in kept} == {(tile, order) for tile in TILES for order in "ab"}
    assert thinned(rows[::-1], 20) == kept[::-1]
    assert thinned(rows, len(rows)) == rows


def test_every_parameter_is_a_leaf_within_its_kind_and_its_bounds() -> None:
    machine = load_machine("h200")
    for each in FITTED:
        assert each.path in leaf_paths()
        assert each.least < each.start < each.most
        for value in (each.start, each.most):
            assert value_of(with_values(machine, {each.path: internal(each, value)}), each.path) > 0
    assert all(read.path in leaf_paths() and (not read.less or read.less in leaf_paths()) for read in READ)


def test_no_number_is_read_or_fitted_twice() -> None:
    for listed in (READ, FITTED):
        paths = [each.path for each in listed]
        assert len(set(paths)) == len(paths)


def test_an_unknown_parameter_is_refused() -> None:
    with pytest.raises(InputError, match=r"did you mean block\.step_clocks"):
        fitted_parameters(("block.step_clock",), set())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, singles: list[Row], planted: Machine, start: Machine) -> Calibrated:
    """A calibration from files, with dev rows beside the calibrate rows."""
    folder = tmp_path_factory.mktemp("recordings")
    dev = timed(
        [row("gemm-384x512x768", tile, "dev", order) for tile in TILES for order in ("row", "column")], planted, 0
    )
    write_recording(folder / "r.csv", [*singles, *dev], {"gpu": "NVIDIA H200", "sms": SMS, "kind": "measured"})
    return calibrate(gather([folder / "r.csv"], start), start, "2026-12-01", asked=ASKED, workers=1)


def test_the_machine_says_what_it_was_fitted_on(made: Calibrated) -> None:
    machine = made.machine
    assert machine.state == "calibrated"
    assert machine.calibration is not None
    (used,) = machine.calibration.recordings
    assert (used.file, used.labels, used.rows, used.tiles) == ("r.csv", ("calibrate",), 24, tuple(sorted(TILES)))
    clock = machine.provenance["rates.tensor_clock_hz"]
    assert (clock.status, clock.record, clock.unit) == ("measured", used.digest, "MHz")
    assert "24 calibrate rows (12 products, 2 tiles) of r.csv, 4 parameters together" in clock.source
    untouched = "block.ticket_ps"
    assert machine.provenance[untouched] == made.base.provenance[untouched]


def test_dev_rows_set_the_band_and_nothing_else(made: Calibrated, estimates: dict[str, Estimate]) -> None:
    assert made.dev is not None
    assert made.dev.rows == 4
    assert made.machine.band_pct == made.dev.band_pct >= made.dev.percentile_pct
    assert (
        f"{BAND_PERCENTILE}th percentile of the error's size over 4 dev rows"
        in made.machine.provenance["band_pct"].source
    )
    for path in ASKED:
        assert value_of(made.machine, path) == pytest.approx(estimates[path].value, rel=1e-5)


def test_without_dev_rows_the_band_stays(singles: list[Row], planted: Machine, tmp_path: Path) -> None:
    write_recording(tmp_path / "r.csv", singles, {"gpu": "NVIDIA H200", "sms": SMS})
    material = gather([tmp_path / "r.csv"], planted)
    found = calibrate(material, planted, "2026-12-01", asked=("rates.tensor_clock_hz",), workers=1)
    assert found.machine.provenance["band_pct"] == planted.provenance["band_pct"]
    assert any("no dev row" in warning for warning in found.warnings)


def test_the_machine_written_is_the_machine_read(made: Calibrated) -> None:
    assert machine_from_toml(machine_to_toml(made.machine), "written") == made.machine


def test_a_base_under_a_what_if_is_refused(made: Calibrated, singles: list[Row], tmp_path: Path) -> None:
    write_recording(tmp_path / "r.csv", singles, {"gpu": "NVIDIA H200", "sms": 132})
    base = with_overrides(load_machine("h200"), ["block.prologue_ps=1us"])
    with pytest.raises(InputError, match="what-if settings"):
        calibrate(gather([tmp_path / "r.csv"], base), base, "2026-12-01", asked=ASKED, workers=1)


def test_errors_are_those_of_their_rows() -> None:
    rows = [row("gemm-1x1x1", "128x64x64"), row("gemm-1x1x1", "64x64x64"), row("gemm-1x1x1", "64x64x64")]
    small, large, every = by_tile(rows, [2_000_000, 1_000_000, 1_000_000], [1_010_000, 980_000, 1_040_000])
    assert (small.tile, small.rows, small.mape_pct, small.bias_pct, small.worst_pct) == pytest.approx(
        ("64x64x64", 2, 3.0, 1.0, 4.0)
    )
    assert (large.before_mape_pct, large.mape_pct) == pytest.approx((100.0, 1.0))
    assert (every.tile, every.rows, every.worst_pct) == pytest.approx(("all", 3, 4.0))
    dev = dev_errors(rows, [1_010_000, 980_000, None])
    assert dev is not None
    assert (dev.rows, dev.band_pct) == (2, 2)
    assert dev_errors(rows, [None, None, None]) is None
