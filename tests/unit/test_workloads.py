"""Workloads: every default can be built and fits its machine, each policy gets its tiles, bad requests are refused."""

from __future__ import annotations

import re
import tomllib
from importlib import resources
from typing import Any

import pytest

from cusim.errors import InputError
from cusim.machine import load_machine, occupancy, with_overrides
from cusim.policies.flags import parse_flags
from cusim.policies.row import RowPolicy
from cusim.policies.semaphores import wait_count
from cusim.policies.tile import TilePolicy
from cusim.program.depends import dependences, needed_tiles
from cusim.program.kernel import BlockResources, Kernel
from cusim.program.toml_kernel import BLOCK_KEYS, GEMM_KEYS, KEYS
from cusim.program.toml_read import TOP_KEYS, parse_program
from cusim.workloads import build_workload, workload_names
from cusim.workloads.defaults import CONTENDERS, architectures

TABLE: dict[str, Any] = tomllib.loads(
    (resources.files("cusim") / "workloads" / "defaults.toml").read_text(encoding="utf-8")
)
CASES = [
    (entry["workload"], machine, size)
    for entry in TABLE["entry"]
    for machine in entry["machines"]
    for size in {entry["m"][0], entry["m"][-1], entry["m"][0] + 100}
]


def fitting_blocks(kernel: Kernel, machine: str) -> int:
    block = kernel.block
    gpu = load_machine(machine)
    return occupancy(gpu, block.threads, block.registers, block.smem_bytes, block.cluster).blocks_per_sm


@pytest.mark.parametrize(("name", "machine", "m"), CASES)
def test_every_default_can_be_built_and_fits_its_machine(name: str, machine: str, m: int) -> None:
    workload = build_workload(name, machine, m=m)
    assert set(workload.choices) == set(CONTENDERS)
    for policy in CONTENDERS:
        choice = workload.choice(policy)
        parse_flags(choice.flags)
        assert [dep.name for dep in dependences(choice.program)] == ["up>down"]
        assert all(fitting_blocks(kernel, machine) >= 1 for kernel in choice.program.kernels)
        assert all(kernel.gemm is not None and kernel.gemm.m == m for kernel in choice.program.kernels)


@pytest.mark.parametrize("kind", ["entry", "rule"])
def test_ranges_of_m_neither_overlap_nor_leave_gaps(kind: str) -> None:
    ranges: dict[tuple[str, str], list[list[int]]] = {}
    for row in TABLE[kind]:
        for machine in row["machines"]:
            ranges.setdefault((row["workload"], machine), []).append(row["m"])
    for found in ranges.values():
        assert found[0][0] == 1
        assert len(found[-1]) == 1
        assert [first[1] + 1 for first in found[:-1]] == [following[0] for following in found[1:]]


def test_every_source_is_named_and_used() -> None:
    used = {row["source"] for row in TABLE["entry"]} | {key for row in TABLE["rule"] for key in row["source"]}
    assert used == set(TABLE["sources"])


@pytest.mark.parametrize(
    ("machine", "tile", "block"),
    [
        ("h200", "128x256x64", BlockResources(384, 168, 196 * 1024)),
        ("v100", "256x128x32", BlockResources(256, 128, 48 * 1024)),
        ("v100", "256x256x32", BlockResources(512, 128, 64 * 1024)),
        ("a100", "128x256x64", BlockResources(256, 224, 144 * 1024)),
    ],
)
def test_what_a_block_takes_follows_from_its_tile(machine: str, tile: str, block: BlockResources) -> None:
    workload = build_workload("gpt3-mlp", machine, m=768, tile=tile)
    assert {kernel.block for kernel in workload.program.kernels} == {block}
    assert workload.same_programs


def test_a_tile_takes_as_many_stages_as_fit() -> None:
    kernels = build_workload("llama-mlp", "h200", m=256, tile="128x256x64").program.kernels
    assert [kernel.stages for kernel in kernels] == [4, 3]
    assert kernels[1].block.smem_bytes == 196 * 1024


def test_each_policy_has_its_published_tiles_unless_one_contender_is_chosen() -> None:
    workload = build_workload("gpt3-mlp", "v100", m=64)
    assert [workload.choice(p).program.kernels[0].grid for p in CONTENDERS] == [(1, 24, 6), (1, 24, 6), (1, 24, 4)]
    assert not workload.same_programs
    assert workload.choice("batched:2") == workload.choice("row")
    fair = build_workload("gpt3-mlp", "v100", m=64, contender="tile")
    assert fair.same_programs
    assert fair.program.kernels[0].grid == (1, 24, 4)


def test_flags_and_orders_by_machine_and_size() -> None:
    small, large = (build_workload("gpt3-mlp", "v100", m=m) for m in (256, 512))
    assert [small.choice(p).flags for p in CONTENDERS] == ["", "WT", "WRTA"]
    assert [large.choice(p).flags for p in CONTENDERS] == ["", "", "RA"]
    assert build_workload("llama-mlp", "a100", m=512).choice("tile").flags == "R"
    h200 = build_workload("gpt3-mlp", "h200", m=768)
    assert [h200.choice(p).order for p in CONTENDERS] == ["group:8", "group:2", "group:2"]


def test_llama_reads_both_halves_of_up() -> None:
    program = build_workload("llama-mlp", "v100", m=512, contender="row").program
    (dep,) = dependences(program)
    assert needed_tiles(dep, 1, 5, 0) == {(1, col) for col in range(22)}
    first_step = [read for read in program.kernel("down").reads if read.buffer == "up"]
    assert [int(read.cols[0].eval(k=0)) for read in first_step] == [0, 2816]


def test_split_and_tiles_by_kernel() -> None:
    kernels = build_workload("gpt3-mlp", "v100", m=512, tile="256x128x32+256x256x32", split_k="3+2").program.kernels
    assert [kernel.tile for kernel in kernels] == [(256, 128, 32), (256, 256, 32)]
    assert [kernel.grid for kernel in kernels] == [(2, 48, 3), (2, 48, 2)]
    assert [k.grid[2] for k in build_workload("gpt3-mlp", "v100", m=512, split_k=4).program.kernels] == [4, 4]


def test_a_machine_named_after_a_preset_uses_its_table() -> None:
    assert build_workload("gpt3-mlp", "a100-80gb", m=512).program == build_workload("gpt3-mlp", "a100", m=512).program


def test_an_unknown_machine_with_a_known_architecture_takes_a_tile() -> None:
    workload = build_workload("gpt3-mlp", "mine", m=256, tile="128x256x64", architecture="sm_90")
    assert workload.program.kernels[0].block == BlockResources(384, 168, 196 * 1024)
    known = build_workload("gpt3-mlp", "h200", m=256, tile="128x256x64")
    assert workload.choice("tile").order == known.choice("tile").order


@pytest.mark.parametrize(("arch", "relative"), [("sm_90", "h200"), ("sm_80", "a100"), ("sm_70", "v100")])
def test_a_machine_of_a_known_architecture_is_served_without_a_tile(arch: str, relative: str) -> None:
    mine = build_workload("gpt3-mlp", "mine", m=256, architecture=arch)
    known = build_workload("gpt3-mlp", relative, m=256)
    for policy in CONTENDERS:
        ours, theirs = mine.choice(policy), known.choice(policy)
        assert (ours.program, ours.flags, ours.order) == (theirs.program, theirs.flags, theirs.order)
        assert ours.source.startswith(f"as for {relative}, of the same architecture: ")


def test_the_shipped_example_is_a_workload_on_every_machine() -> None:
    for machine in ("h200", "v100", "mine"):
        workload = build_workload("two_gemms", machine)
        assert workload.same_programs
        assert parse_program(workload.text, "two_gemms.toml", "two_gemms") == workload.program
    with pytest.raises(InputError, match="one shape"):
        build_workload("two_gemms", "h200", m=5)


def test_the_shipped_example_names_every_key_and_its_defaults_are_true() -> None:
    text = build_workload("two_gemms", "h200").text
    for key in (*TOP_KEYS, *KEYS, *GEMM_KEYS, *BLOCK_KEYS):
        assert re.search(rf"\b{key}\b *=|\[\[{key}\]\]", text), key
    head = text.partition("# [[kernel]]")[0]
    said, count = re.subn(r"^# (?=name|seed|split_k|reduce|stages|prologue|epilogue)", "", head, flags=re.MULTILINE)
    assert count == 7
    assert parse_program(said, "x.toml", "x") == build_workload("two_gemms", "h200").program
    clustered = re.sub(r"^block = .*\n# (?=block)", "", head, count=1, flags=re.MULTILINE)
    assert parse_program(clustered, "x.toml", "two_gemms") == build_workload("two_gemms", "h200").program


def test_the_commented_kernel_of_the_example_can_be_used() -> None:
    text = build_workload("two_gemms", "h200").text
    head, norm = text.split("# [[kernel]]\n")
    program = parse_program(head + "[[kernel]]\n" + re.sub("^# ", "", norm, flags=re.MULTILINE), "x.toml")
    assert [dep.name for dep in dependences(program)] == ["up>down", "down>norm"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": 5}, "name must be text such as gpt3-mlp, not int"),
        ({"machine_name": load_machine("h200")}, "machine_name must be text such as h200 .*not Machine"),
        ({"m": "768"}, "m must be an int"),
        ({"m": True}, "m must be an int"),
        ({"tile": (128, 256, 64)}, "tile must be text such as 128x256x64"),
        ({"split_k": 2.0}, "split_k must be an int, or text such as 2\\+1"),
        ({"architecture": 90}, "architecture must be text such as sm_90"),
    ],
)
def test_wrong_types_are_told_in_a_sentence(given: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        build_workload(**{"name": "gpt3-mlp", "machine_name": "h200", **given})


@pytest.mark.parametrize(
    ("name", "machine", "options", "parts"),
    [
        ("gpt3", "h200", {}, ["did you mean gpt3-mlp?", "cusync-fig1 gpt3-mlp llama-mlp two_gemms"]),
        ("gpt3-mlp", "rtx", {}, ["is not known for this machine", "a100 h100 h200 v100", "TOML"]),
        ("gpt3-mlp", "rtx", {"architecture": "sm_91", "tile": "8x8x8"}, ["did you mean sm_90"]),
        ("gpt3-mlp", "h200", {"m": 0, "tile": "128", "split_k": "x"}, ["3 errors", "m = 0", 'tile = "128"', "split_k"]),
        ("gpt3-mlp", "h200", {"tile": "1x1x1+1x1x1+1x1x1"}, ["two joined by +"]),
        ("gpt3-mlp", "h200", {"tile": "512x512x64"}, ["3 errors", "227", "threads", "accumulators"]),
        ("gpt3-mlp", "h200", {"m": 64, "split_k": 500}, ["without work"]),
        ("gpt3-mlp", "h200", {"contender": "rows"}, ["did you mean row?"]),
        ("cusync-fig1", "h200", {"m": 64, "tile": "4x4x4"}, ["2 errors", "one shape"]),
    ],
)
def test_requests_that_cannot_be_met(name: str, machine: str, options: dict[str, Any], parts: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        build_workload(name, machine, **options)
    assert [part for part in parts if part not in str(caught.value)] == []


def test_fig1_waits_and_fits_one_block_an_sm_everywhere() -> None:
    workload = build_workload("cusync-fig1", "h200")
    program = workload.program
    assert workload.machine_overrides == ("machine.sms=4",)
    assert [kernel.grid for kernel in program.kernels] == [(3, 2, 1), (3, 2, 1)]
    (dep,) = dependences(program)
    assert [wait_count(policy, dep) for policy in (TilePolicy(), RowPolicy())] == [12, 6]
    for name in ("v100", "a100", "h100", "h200"):
        machine = with_overrides(load_machine(name), workload.machine_overrides)
        block = program.kernels[0].block
        assert machine.limits.sms == 4
        assert occupancy(machine, block.threads, block.registers, block.smem_bytes).blocks_per_sm == 1


def test_names_are_sorted_and_every_architecture_has_machines() -> None:
    assert workload_names() == ("cusync-fig1", "gpt3-mlp", "llama-mlp", "two_gemms")
    assert all(rule.machines and rule.source for rule in architectures())
