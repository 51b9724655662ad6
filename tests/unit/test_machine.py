"""The presets, their provenance, digests and JSON."""

from __future__ import annotations

import json
import pickle
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pytest

from cusim.engine.predict import predict
from cusim.engine.result import Prediction
from cusim.machine import (
    SECTIONS,
    Machine,
    leaf_paths,
    leaves,
    load_machine,
    machine_from_json,
    machine_names,
    with_overrides,
)
from cusim.recording.cells import cell_of, program_of
from cusim.recording.rows import read_recording

PRESETS = ("a100", "h100", "h200", "v100")


def test_the_presets_are_those_four() -> None:
    assert machine_names() == PRESETS


@pytest.mark.parametrize("name", PRESETS)
def test_every_number_of_a_preset_has_an_argument(name: str) -> None:
    machine = load_machine(name)
    assert (machine.state == "calibrated") == (machine.calibration is not None)
    assert set(machine.provenance) == set(leaf_paths())
    for path, quantity in machine.provenance.items():
        assert len(quantity.source) > 10, path
        assert not any(word in quantity.source for word in ("/work", "/tmp", "/root", "probe")), path


@pytest.mark.parametrize("name", PRESETS)
def test_values_are_plain_numbers_in_internal_units(name: str) -> None:
    machine = load_machine(name)
    for section in SECTIONS:
        part = getattr(machine, section)
        for leaf in leaves(section):
            kinds = {"placement": str, "sm_order": tuple}
            floats = (
                "sm_l2_bytes_per_clock", "sm_store_bytes_per_clock", "tensor_efficiency", "lone_block_share",
                "sustained_share", "clock_droop", "contention_sharpness", "step_clocks", "join_clocks",
                "hidden_wait_share",
            )  # fmt: skip
            assert type(getattr(part, leaf)) is kinds.get(leaf, float if leaf in floats else int), leaf


# SMs x flop/clock x clock in TFLOP/s: NVIDIA's data sheets say 125 and 312; an H200 held 1.98 GHz under load.
@pytest.mark.parametrize(("name", "tflops"), [("v100", 125.3), ("a100", 311.9), ("h100", 1070.5), ("h200", 1070.5)])
def test_tensor_peaks(name: str, tflops: float) -> None:
    machine = load_machine(name)
    peak = machine.limits.sms * machine.rates.tensor_flops_per_clock_sm * machine.rates.clock_hz
    assert peak / 1e12 == pytest.approx(tflops, abs=0.05)


@pytest.mark.parametrize("order", ["row", "group:8"])
def test_h200_reproduces_a_gemm_recorded_on_it(root: Path, order: str) -> None:
    """2048 x 6144 x 12288 in 128x256 tiles: 384 of them, three rounds of 132 SMs but for 12; 416 and 401 us."""
    rows, _ = read_recording(root / "traces" / "h200" / "occasion-1.csv")
    (row,) = (
        row for row in rows
        if (row.workload, row.tile, row.policy, row.order) == ("gemm-2048x6144x12288", "128x256x64", "stream", order)
    )  # fmt: skip
    assert row.total_ns is not None
    program, plan = program_of(cell_of(row), "h200")
    got = predict(program, load_machine("h200"), plan)
    assert isinstance(got, Prediction)
    assert got.total_ps / 1000 == pytest.approx(row.total_ns, rel=0.03)


def test_a100_reproduces_both_rows_that_fill_its_waves() -> None:
    # M = 2304: 432 tiles of K = 12288 in 4 rounds, 864 of K = 6144 in 8 rounds of 108 SMs; 128x256 tiles.
    machine = load_machine("a100")
    rates, block = machine.rates, machine.block
    per_k_ps = 2 * 128 * 256 / (rates.tensor_flops_per_clock_sm * rates.clock_hz * rates.tensor_efficiency) * 1e12
    fixed_ps = block.prologue_ps + block.load_ps + block.epilogue_ps
    assert 4 * (fixed_ps + 12288 * per_k_ps) / 1e6 == pytest.approx(1448.73, rel=0.001)
    assert 8 * (fixed_ps + 6144 * per_k_ps) / 1e6 == pytest.approx(1452.60, rel=0.001)


@pytest.mark.parametrize(("form", "by"), [("red", ""), ("store", "_store")])
def test_h200_semaphores_add_up_to_what_was_read(root: Path, form: str, by: str) -> None:
    """One way from a post to its being seen, as the micro-benchmarks read it on several days."""
    sync = load_machine("h200").sync
    days = [json.loads(path.read_text())["quantities"] for path in (root / "traces" / "h200").glob("micro*.json")]
    read_ns = [day[f"semaphore_{form}"]["median"] for day in days]
    one_way_ns = (getattr(sync, f"post{by}_ps") + getattr(sync, f"visible{by}_ps")) / 1000
    assert min(read_ns) * 0.97 <= one_way_ns <= max(read_ns) * 1.03


def test_h200_places_blocks_as_it_was_seen_to() -> None:
    order = load_machine("h200").dispatch.sm_order
    assert order[:8] == tuple(range(124, 132))
    assert sorted(order) == list(range(132))
    # After the eight odd ones come whole TPCs: SM 2k and 2k + 1 one after the other.
    assert all(order[i] + 1 == order[i + 1] and order[i] % 2 == 0 for i in range(8, 132, 2))


@pytest.mark.parametrize("name", PRESETS)
def test_json_round_trip(name: str) -> None:
    machine = load_machine(name)
    again = machine_from_json(json.loads(json.dumps(machine.to_json())))
    assert again == machine
    assert again.digest == machine.digest
    assert again.to_json() == machine.to_json()


def test_json_keeps_what_if_settings_and_errors() -> None:
    machine = with_overrides(load_machine("h200"), ["sms=108", "post_ps=2us"])
    document = machine.to_json()
    document["sync"]["poll_ps"] |= {"stderr": 3.5, "record": "semaphore-7", "status": "measured"}
    again = machine_from_json(document)
    assert again.overrides == ("sms=108", "post_ps=2us")
    assert again.sync == machine.sync
    assert again.provenance["sync.poll_ps"].stderr == 3.5
    assert again.provenance["sync.poll_ps"].record == "semaphore-7"


def test_the_json_leaf_is_as_promised() -> None:
    document = load_machine("v100").to_json()
    assert document["schema"] == "cusim.machine/2"
    assert set(document["limits"]["sms"]) == {"value", "unit", "source", "stderr", "status", "record"}
    assert document["limits"]["smem_per_sm_bytes"]["value"] == 96
    assert document["limits"]["smem_per_sm_bytes"]["unit"] == "KiB"


def test_digest_follows_values_only() -> None:
    machine = load_machine("h200")
    assert len(machine.digest) == 12
    assert len({load_machine(name).digest for name in PRESETS}) == len(PRESETS)
    assert replace(machine, name="mine").digest == machine.digest
    post_ps = machine.sync.post_ps
    assert with_overrides(machine, [f"post_ps={post_ps}ps"]).digest == machine.digest
    assert with_overrides(machine, [f"post_ps={post_ps + 1}ps"]).digest != machine.digest


def test_a_machine_is_frozen_hashable_and_picklable() -> None:
    machine = load_machine("h200")
    with pytest.raises(FrozenInstanceError):
        machine.name = "other"  # type: ignore[misc]
    assert {machine: 1}[load_machine("h200")] == 1
    again: Machine = pickle.loads(pickle.dumps(machine))
    assert again == machine
