"""Numbers that micro-benchmarks give: medians, their errors, sums, lines, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cusim.calibrate.fixed import Fixed
from cusim.calibrate.micro import Samples
from cusim.calibrate.parameters import fitted_parameters
from cusim.calibrate.pool import read_pool
from cusim.calibrate.reading import Readings, readings
from cusim.engine.shared import DROOP_ORDER
from cusim.errors import InputError
from cusim.machine import Machine, load_machine

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def machine() -> Machine:
    return load_machine("h200")


def quantity(*samples: float, unit: str = "ns") -> dict[str, Any]:
    return {"unit": unit, "how": "somehow", "samples": list(samples)}


def written(path: Path, quantities: dict[str, Any], tables: dict[str, Any] | None = None, **meta: Any) -> Path:
    provenance = {"gpu": "NVIDIA H200", "sms": 132, "date": "2026-12-01T08:00:00Z", **meta}
    document = {"schema": "cusim.micro/1", "provenance": provenance, "quantities": quantities, "tables": tables or {}}
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def read(paths: list[Path], machine: Machine) -> tuple[dict[str, Fixed], Readings]:
    found = readings(read_pool(paths, machine), machine)
    return {each.path: each for each in found.fixed}, found


def test_the_error_of_a_median_is_how_medians_scatter() -> None:
    random = np.random.default_rng(3)
    runs = [Samples("ns", "", tuple(random.normal(1000, 20, 49))) for _ in range(400)]
    scatter = float(np.std([run.median for run in runs], ddof=1))
    stated = float(np.mean([run.stderr for run in runs if run.stderr is not None]))
    assert stated == pytest.approx(scatter, rel=0.2)


def test_what_a_timer_rounds_is_known_no_better_than_its_steps() -> None:
    assert Samples("ns", "", (416.0,) * 50 + (448.0,)).stderr == pytest.approx(32 / 12**0.5)
    assert Samples("GHz", "", (1.98,) * 9).stderr == pytest.approx(0.001 / 12**0.5)
    assert Samples("ns", "", (1.0, 2.0)).stderr is None


def test_times_read_off_the_timer_are_known_to_a_step(machine: Machine, tmp_path: Path) -> None:
    quantities = {"gap_event": quantity(*[288] * 9), "host_enqueue": quantity(*[290] * 9)}
    found, _ = read([written(tmp_path / "m.json", quantities, timer_step_ns=32)], machine)
    assert found["launch.event_ps"].stderr == pytest.approx(32_000 / 12**0.5)
    assert found["launch.enqueue_ps"].stderr == pytest.approx(1 / 12**0.5)


def test_several_quantities_and_days_are_averaged_and_the_error_spans_them(machine: Machine, tmp_path: Path) -> None:
    one = written(
        tmp_path / "one.json", {"gap_stream_1": quantity(*[1500] * 9), "gap_stream_132": quantity(*[1700] * 9)}
    )
    two = written(tmp_path / "two.json", {"gap_stream_132": quantity(*[1900] * 9)})
    found, _ = read([one, two], machine)
    gap = found["launch.gap_ps"]
    assert (gap.value, gap.stderr, gap.by) == (1_700_000, 200_000, "gap_stream_*")
    assert gap.record.count("+") == 1
    assert "gap_stream_132 1900 ns (n = 9)" in gap.source


def test_of_a_sum_the_post_keeps_its_part(machine: Machine, tmp_path: Path) -> None:
    found, all_ = read([written(tmp_path / "m.json", {"semaphore_red": quantity(*[650] * 9)})], machine)
    visible = found["sync.visible_ps"]
    assert visible.value == 650_000 - machine.sync.post_ps
    assert (visible.stderr, visible.status) == (None, "extrapolated")
    assert "sync.post_ps" not in found
    assert any("fixes only the sum with sync.post_ps" in warning for warning in all_.warnings)


def test_a_sum_whose_part_was_read_leaves_a_measured_rest(machine: Machine, tmp_path: Path) -> None:
    quantities = {"semaphore_red": quantity(*[640, 650, 660] * 9), "block_post_row": quantity(*[300, 310, 320] * 9)}
    found, _ = read([written(tmp_path / "m.json", quantities)], machine)
    visible, post = found["sync.visible_ps"], found["sync.post_ps"]
    assert (post.value, visible.value, visible.status) == (310_000, 340_000, "measured")
    assert post.stderr is not None
    assert visible.stderr is not None
    assert visible.stderr > post.stderr


def test_what_was_read_is_not_fitted_as_well() -> None:
    every = {each.path for each in fitted_parameters((), set())}
    rest = {each.path for each in fitted_parameters((), {"block.prologue_ps", "rates.clock_hz"})}
    assert every - rest == {"block.prologue_ps"}
    assert [each.path for each in fitted_parameters(("block.epilogue_ps",), {"block.epilogue_ps"})] == [
        "block.epilogue_ps"
    ]


def test_a_sum_below_its_part_is_not_believed(machine: Machine, tmp_path: Path) -> None:
    found, all_ = read([written(tmp_path / "m.json", {"semaphore_red": quantity(*[100] * 9)})], machine)
    assert "sync.visible_ps" not in found
    assert any("no more than sync.post_ps alone" in warning for warning in all_.warnings)


def test_the_clock_under_load_is_the_line_that_was_planted(machine: Machine, tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    clock, droop = 1.9, 0.12

    def clock_with(busy: int) -> float:
        """The clock at which the work done at once is what lets it fall so far."""
        slow = 1.0
        for _ in range(50):
            slow = 1 - droop * (busy / 132 * slow) ** DROOP_ORDER
        return clock * slow

    quantities = {
        f"clock_tensor_{busy}": quantity(*(clock_with(busy) + random.normal(0, 0.002) for _ in range(5)), unit="GHz")
        for busy in (1, 30, 60, 90, 110, 130)
    }
    found, all_ = read([written(tmp_path / "m.json", quantities)], machine)
    for path, planted, unit in (("rates.tensor_clock_hz", clock, 1e9), ("rates.clock_droop", droop, 1)):
        stderr = found[path].stderr
        assert stderr is not None
        assert abs(found[path].value - planted * unit) < 4 * stderr  # type: ignore[operator]
        assert stderr < 0.1 * planted * unit
    assert not any("misses a reading" in warning for warning in all_.warnings)


def test_a_clock_that_follows_another_law_is_told(machine: Machine, tmp_path: Path) -> None:
    clocks = {1: 1.8, 60: 1.8, 90: 1.8, 120: 1.5, 130: 1.5}
    quantities = {f"clock_tensor_{busy}": quantity(ghz, unit="GHz") for busy, ghz in clocks.items()}
    _, all_ = read([written(tmp_path / "m.json", quantities)], machine)
    assert any("rates.clock_droop: the line" in warning for warning in all_.warnings)


def test_one_point_makes_no_line(machine: Machine, tmp_path: Path) -> None:
    found, all_ = read([written(tmp_path / "m.json", {"clock_tensor_64": quantity(1.8, unit="GHz")})], machine)
    assert not {"rates.tensor_clock_hz", "rates.clock_droop"} & set(found)
    assert any("need two" in warning for warning in all_.warnings)


def test_the_order_of_sms_is_the_one_seen_most(machine: Machine, tmp_path: Path) -> None:
    forth, back = list(range(132)), list(range(131, -1, -1))
    table = {"sm_order_1": {"how": "", "columns": [], "rows": [back, forth, back]}}
    found, _ = read([written(tmp_path / "m.json", {}, table)], machine)
    assert found["dispatch.sm_order"].value == tuple(back)
    assert found["dispatch.sm_order"].by == "sm_order_1, 2 of 3 runs"


def test_what_is_not_measured_is_named(machine: Machine, tmp_path: Path) -> None:
    _, all_ = read([written(tmp_path / "m.json", {"gap_event": quantity(1, 2, 3)})], machine)
    assert any("rates.hbm_bytes_per_s is not measured: m.json has no bandwidth_hbm" in text for text in all_.warnings)
    assert not any("launch.event_ps" in text for text in all_.warnings)


@pytest.mark.parametrize(
    ("quantities", "says"),
    [
        ({"gap_event": quantity(1, 2, 3, unit="GHz")}, r"launch\.event_ps is a time: ps ns us ms s"),
        ({"gap_event": quantity(-3, -2, -1)}, "the median makes no sense"),
        ({"gap_event": quantity(1, float("nan"))}, "must be finite numbers"),
        ({"gap_event": quantity()}, "must be a list of numbers, not empty"),
        ({"gap_event": {"unit": "ns", "samples": ["1"]}}, "must be finite numbers"),
    ],
)
def test_a_quantity_that_makes_no_sense_is_refused(
    machine: Machine, tmp_path: Path, quantities: dict[str, Any], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        read([written(tmp_path / "m.json", quantities)], machine)


@pytest.mark.parametrize(
    ("meta", "says"),
    [({"gpu": "NVIDIA A100-SXM4-80GB"}, "another GPU"), ({"gpu": ""}, "which GPU"), ({"sms": 108}, "has 132")],
)
def test_micro_benchmarks_of_another_gpu_are_refused(
    machine: Machine, tmp_path: Path, meta: dict[str, Any], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        read_pool([written(tmp_path / "m.json", {}, **meta)], machine)


def test_every_file_that_is_wrong_is_named_at_once(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "torn.json").write_text('{"schema": "cusim.mi', encoding="utf-8")
    (tmp_path / "other.json").write_text('{"schema": "cusim.micro/2"}', encoding="utf-8")
    good = written(tmp_path / "good.json", {})
    with pytest.raises(InputError) as refused:
        read_pool([tmp_path / "torn.json", tmp_path / "other.json", tmp_path / "absent.json", good, good], machine)
    text = refused.value.text()
    for said in ("torn.json: file", "other.json: schema", "absent.json: file", "same bytes"):
        assert said in text


def test_the_recorded_h200_is_read_whole(machine: Machine) -> None:
    found, _ = read([ROOT / "traces" / "h200" / "micro.json"], machine)
    assert found["rates.clock_hz"].value == 1.98e9
    assert found["launch.wait_kernel_ps"].value == 1_952_000
    assert found["dispatch.block_ps"].value == 611
    order = found["dispatch.sm_order"].value
    assert isinstance(order, tuple)
    assert sorted(order) == list(range(132))
    measured = [each for each in found.values() if each.path != "dispatch.sm_order" and each.status == "measured"]
    assert all(each.stderr is not None and each.stderr < 0.2 * float(each.value) for each in measured)  # type: ignore[arg-type]
