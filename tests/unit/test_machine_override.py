"""What-if settings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cusim.errors import InputError
from cusim.machine import Machine, leaf_paths, load_machine, with_overrides
from cusim.machine.unused import UNUSED, unused_notes


@pytest.fixture
def h200() -> Machine:
    return load_machine("h200")


def why(machine: Machine, *settings: str) -> dict[str, str]:
    with pytest.raises(InputError) as caught:
        with_overrides(machine, settings)
    assert caught.value.source == "--set"
    return {problem.key: problem.why for problem in caught.value.problems}


def test_settings_are_applied_and_recorded(h200: Machine) -> None:
    changed = with_overrides(h200, ["machine.sync.post_ps=2us", "machine.hbm_bytes_per_s = 2.5 TB/s"])
    assert changed.sync.post_ps == 2_000_000
    assert changed.rates.hbm_bytes_per_s == 2_500_000_000_000
    assert changed.overrides == ("machine.sync.post_ps=2us", "machine.hbm_bytes_per_s = 2.5 TB/s")
    quantity = changed.provenance["sync.post_ps"]
    assert (quantity.value, quantity.unit, quantity.source) == (2, "us", "--set")
    assert quantity.status == "extrapolated"
    assert changed.provenance["sync.poll_ps"] is h200.provenance["sync.poll_ps"]
    assert h200.sync.post_ps != 2_000_000
    assert h200.overrides == ()


@pytest.mark.parametrize(
    ("setting", "section", "leaf", "value"),
    [
        ("gap_ps=0ns", "launch", "gap_ps", 0),
        ("sms=x0.5", "limits", "sms", 66),  # a factor on what the machine has
        ("clock_hz=1.41e3MHz", "rates", "clock_hz", 1_410_000_000),
        ("machine.limits.smem_per_sm_bytes=256KiB", "limits", "smem_per_sm_bytes", 262144),
        ("tensor_efficiency=80%", "rates", "tensor_efficiency", 0.8),
        ("sm_l2_bytes_per_clock=48.5B/clock", "rates", "sm_l2_bytes_per_clock", 48.5),
        ("placement=most-room", "dispatch", "placement", "most-room"),
        ("sm_order=ascending", "dispatch", "sm_order", tuple(range(132))),
    ],
)
def test_forms_of_a_value(h200: Machine, setting: str, section: str, leaf: str, value: object) -> None:
    assert getattr(getattr(with_overrides(h200, [setting]), section), leaf) == value


@pytest.mark.parametrize(("path", "factor"), [("sync.post_ps", "10"), ("block.prologue_ps", "1.5")])
def test_a_factor_is_of_what_the_machine_has(h200: Machine, path: str, factor: str) -> None:
    section, leaf = path.split(".")
    before, after = (getattr(getattr(m, section), leaf) for m in (h200, with_overrides(h200, [f"{path}=x{factor}"])))
    assert after == round(before * float(factor))


def test_the_band_can_be_set(h200: Machine) -> None:
    assert with_overrides(h200, ["machine.band_pct=7.5"]).band_pct == 7.5


def test_fewer_sms_drop_out_of_the_order(h200: Machine) -> None:
    changed = with_overrides(h200, ["machine.sms=16"])
    assert changed.limits.sms == 16
    assert changed.dispatch.sm_order == tuple(sm for sm in h200.dispatch.sm_order if sm < 16)
    assert changed.provenance["dispatch.sm_order"].source == "--set"


def test_more_sms_join_at_the_end(h200: Machine) -> None:
    changed = with_overrides(h200, ["sms=144"])
    assert changed.dispatch.sm_order == (*h200.dispatch.sm_order, *range(132, 144))


def test_settings_add_up(h200: Machine) -> None:
    changed = with_overrides(with_overrides(h200, ["sms=100"]), ["sms=90", "sms=80"])
    assert changed.limits.sms == 80
    assert changed.overrides == ("sms=100", "sms=90", "sms=80")


def test_no_settings_change_nothing(h200: Machine) -> None:
    assert with_overrides(h200, []) == h200


def test_all_mistakes_are_told_at_once(h200: Machine) -> None:
    found = why(
        h200, "machine.sink.post_ps=1us", "machine.sync.post=1us", "smss=4", "sms", "poll_ps=",
        "gap_ps=3 fortnights",
        "clock_hz=-1GHz", "lone_block_share=120%", "warps_per_sm=2.5", "blocks_per_sm=0", "event_ps=nan",
        "latency_ps=soon", "placement=random", "sm_order=1", "=4",
    )  # fmt: skip
    assert "section: did you mean sync?" in found["machine.sink.post_ps"]
    assert "leaf: did you mean post_ps?" in found["machine.sync.post"]
    assert "did you mean sms?" in found["smss"]
    assert "key=value" in found["sms"]
    assert "key=value" in found["poll_ps="]
    assert "allowed: ms ns ps s us" in found["launch.gap_ps"]
    assert found["rates.clock_hz"] == "must be above 0"
    assert found["rates.lone_block_share"] == "must be at most 1"
    assert found["limits.warps_per_sm"] == "must be a whole number"
    assert found["limits.blocks_per_sm"] == "must be above 0"
    assert "finite" in found["launch.event_ps"]
    assert "must be a number" in found["launch.latency_ps"]
    assert "allowed: most-room order" in found["dispatch.placement"]
    assert "ascending" in found["dispatch.sm_order"]
    assert "key=value" in found["=4"]
    assert len(found) == 15


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("post_ps=500", "needs a unit: 500ps 500ns 500us 500ms 500s"),
        ("gap_ps=0", "needs a unit"),
        ("clock_hz=1.4", "needs a unit: 1.4Hz 1.4MHz 1.4GHz"),
        ("sm_l2_bytes_per_clock=48", "needs a unit: 48B/clock"),
        ("sms=1e9", "must be at most 4096"),
        ("blocks_per_sm=4096", "must be at most 1024"),
        ("post_ps=1000s", "must be at most 10 s"),
        ("clock_hz=1Hz", "must be at least 1 MHz"),
        ("hbm_bytes_per_s=1B/s", "must be at least 1000000 B/s"),
        ("sms=x0.7", "must be a whole number"),
        ("sms=x", "after x stands a number"),
        ("sms=x2us", "after x stands a number"),
        ("post_ps=xnan", "after x stands a number"),
        ("post_ps=x-1", "must be 0 or more"),
        ("tensor_efficiency=x2", "must be at most 1"),
    ],
)
def test_what_a_value_must_have(h200: Machine, setting: str, said: str) -> None:
    (found,) = why(h200, setting).values()
    assert said in found


def test_a_factor_is_recorded_in_the_unit_of_the_machine(h200: Machine) -> None:
    quantity = with_overrides(h200, ["post_ps=x2"]).provenance["sync.post_ps"]
    before = h200.provenance["sync.post_ps"]
    assert (quantity.value, quantity.unit, quantity.source) == (2 * float(str(before.value)), before.unit, "--set")


def test_settings_that_nothing_reads_are_noted(h200: Machine) -> None:
    changed = with_overrides(h200, ["machine.sync.poll_ps=x2", "latency_ps=1us", "sms=100"])
    assert [text.partition(" changes nothing")[0] for text in unused_notes(changed)] == [
        "--set sync.poll_ps", "--set launch.latency_ps",
    ]  # fmt: skip


def test_no_module_of_the_engine_reads_what_is_said_to_be_unused(root: Path) -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in (root / "cusim" / "engine").glob("*.py"))
    unread = {path for path in leaf_paths() if not re.search(rf"\.{path.rpartition('.')[2]}\b", text)}
    assert set(UNUSED) - {"launch.enqueue_ps"} <= unread
    assert "launch.gap_ps" not in unread


def test_a_setting_that_contradicts_the_rest(h200: Machine) -> None:
    assert "at most smem_per_sm_bytes" in why(h200, "smem_per_sm_bytes=100KiB")["limits.smem_per_block_bytes"]
