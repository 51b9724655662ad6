"""The presets, their provenance, digests and JSON."""

from __future__ import annotations

import json
import pickle
from dataclasses import FrozenInstanceError, replace

import pytest

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

PRESETS = ("a100", "h100", "h200", "v100")


def test_the_presets_are_those_four() -> None:
    assert machine_names() == PRESETS


@pytest.mark.parametrize("name", PRESETS)
def test_every_number_of_a_preset_has_an_argument(name: str) -> None:
    machine = load_machine(name)
    assert machine.state == "preset"
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
                "sustained_share", "clock_droop", "contention_sharpness", "step_clocks", "join_clocks", "hidden_wait_share",
            )  # fmt: skip
            assert type(getattr(part, leaf)) is kinds.get(leaf, float if leaf in floats else int), leaf


# SMs x flop/clock x clock in TFLOP/s: NVIDIA's data sheets say 125 and 312; an H200 held 1.98 GHz under load.
@pytest.mark.parametrize(("name", "tflops"), [("v100", 125.3), ("a100", 311.9), ("h100", 1070.5), ("h200", 1070.5)])
def test_tensor_peaks(name: str, tflops: float) -> None:
    machine = load_machine(name)
    peak = machine.limits.sms * machine.rates.tensor_flops_per_clock_sm * machine.rates.clock_hz
    assert peak / 1e12 == pytest.approx(tflops, abs=0.05)


def test_h200_reproduces_the_gemm_it_was_taken_from() -> None:
    # 2048 x 6144 x 12288 in 128x256 tiles: 16 x 24 = 384 tiles, 3 rounds of 132 SMs, read as 412 us.
    machine = load_machine("h200")
    rates, block = machine.rates, machine.block
    flops = 2 * 128 * 256 * 12288
    main_loop_ps = flops / (rates.tensor_flops_per_clock_sm * rates.clock_hz * rates.tensor_efficiency) * 1e12
    tile_ps = block.prologue_ps + block.load_ps + main_loop_ps + block.epilogue_ps
    assert 3 * tile_ps / 1e6 == pytest.approx(412, rel=0.002)
    # L2 must not be what holds that GEMM back, or the efficiency would be counted twice.
    drawn = 132 * (128 + 256) * 12288 * 2 / (main_loop_ps / 1e12)
    assert drawn < rates.l2_bytes_per_s


def test_a100_reproduces_both_rows_that_fill_its_waves() -> None:
    # M = 2304: 432 tiles of K = 12288 in 4 rounds, 864 of K = 6144 in 8 rounds of 108 SMs; 128x256 tiles.
    machine = load_machine("a100")
    rates, block = machine.rates, machine.block
    per_k_ps = 2 * 128 * 256 / (rates.tensor_flops_per_clock_sm * rates.clock_hz * rates.tensor_efficiency) * 1e12
    fixed_ps = block.prologue_ps + block.load_ps + block.epilogue_ps
    assert 4 * (fixed_ps + 12288 * per_k_ps) / 1e6 == pytest.approx(1448.73, rel=0.001)
    assert 8 * (fixed_ps + 6144 * per_k_ps) / 1e6 == pytest.approx(1452.60, rel=0.001)


def test_h200_semaphores_add_up_to_what_was_read() -> None:
    sync = load_machine("h200").sync
    assert 670_000 <= sync.post_ps + sync.visible_ps <= 720_000
    assert 553_000 <= sync.post_store_ps + sync.visible_store_ps <= 614_000


def test_h200_places_blocks_as_it_was_seen_to() -> None:
    order = load_machine("h200").dispatch.sm_order
    assert order[:14] == (*range(124, 132), 8, 9, 24, 25, 40, 41)
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
    assert with_overrides(machine, ["post_ps=353ns"]).digest == machine.digest
    assert with_overrides(machine, ["post_ps=354ns"]).digest != machine.digest


def test_a_machine_is_frozen_hashable_and_picklable() -> None:
    machine = load_machine("h200")
    with pytest.raises(FrozenInstanceError):
        machine.name = "other"  # type: ignore[misc]
    assert {machine: 1}[load_machine("h200")] == 1
    again: Machine = pickle.loads(pickle.dumps(machine))
    assert again == machine
