"""Programs and plans that no laptop could simulate are refused by name, not by a full memory."""

from dataclasses import replace

import pytest

from cusim.errors import InputError
from cusim.machine import load_machine
from cusim.machine.parse import machine_from_json
from cusim.policies.base import MOST_WAITS
from cusim.policies.batched import BatchedPolicy
from cusim.policies.registry import build_plan
from cusim.policies.row import RowPolicy
from cusim.policies.semaphores import wait_count
from cusim.policies.tile import TilePolicy
from cusim.program.build import gemm_kernel, tile_kernel
from cusim.program.depends import dependences
from cusim.program.kernel import BlockResources, Gemm, Stream
from cusim.program.program import MOST_BLOCKS, MOST_STEPS, Program
from cusim.program.toml_read import parse_program
from tests.fixtures import contract_program
from tests.policy_cases import only_dep

BLOCK = BlockResources(128, 32, 1024)


def copies(*rows: int) -> Program:
    """A copy kernel for each number of blocks."""
    parts = [tile_kernel(f"k{i}", (count, 1, 1), BLOCK, Stream(1)) for i, count in enumerate(rows)]
    return Program(tuple(kernel for kernel, _ in parts), tuple(b for _, buffers in parts for b in buffers))


def tall(rows: int) -> Program:
    """One tile that reads *rows* tiles of one row each."""
    up, made = gemm_kernel("up", Gemm(rows, 8, 8), (1, 8, 8), BLOCK)
    down, more = gemm_kernel("down", Gemm(rows, 8, 8), (rows, 8, 8), BLOCK, a="up")
    return Program((up, down), (*made, *more))


def test_blocks_are_bounded_for_a_kernel_and_for_all_of_them() -> None:
    assert copies(MOST_BLOCKS).kernels[0].blocks == MOST_BLOCKS
    with pytest.raises(InputError, match=rf"kernel\[0\]\.grid.*has {MOST_BLOCKS + 1} blocks; at most {MOST_BLOCKS}"):
        copies(MOST_BLOCKS + 1)
    with pytest.raises(InputError, match=rf"all kernels together have {MOST_BLOCKS + 1} blocks; .*about a GiB"):
        copies(MOST_BLOCKS, 1)


def test_k_steps_are_bounded() -> None:
    def deep(k: int) -> Program:
        kernel, buffers = gemm_kernel("a", Gemm(8, 8, k), (8, 8, 1), BLOCK)
        return Program((kernel,), buffers)

    assert deep(MOST_STEPS).kernels[0].steps == MOST_STEPS
    with pytest.raises(InputError, match=rf"kernel\[0\]\.steps = {MOST_STEPS + 1} .*larger tile k"):
        deep(MOST_STEPS + 1)


def test_a_file_with_too_many_k_steps_is_told_so_though_it_declares_needs() -> None:
    text = """
    schema = "cusim.program/1"
    [[kernel]]
    name = "up"
    gemm = { m = 128, n = 200000000, k = 64 }
    tile = "128x200000x64"
    block = { threads = 128, registers = 32, shared_kib = 1 }
    [[kernel]]
    name = "down"
    gemm = { m = 128, n = 256, k = 200000000 }
    a = "up"
    needs = ["up[r, :]"]
    tile = "128x256x1"
    block = { threads = 128, registers = 32, shared_kib = 1 }
    """
    with pytest.raises(InputError) as caught:
        parse_program(text, "deep.toml")
    assert [problem.key for problem in caught.value.problems] == ["kernel[1].steps"]


@pytest.mark.parametrize("policy", [TilePolicy(), BatchedPolicy(2)], ids=lambda policy: policy.name)
def test_the_waits_of_a_tile_are_bounded(policy: TilePolicy | BatchedPolicy) -> None:
    rows = MOST_WAITS * (2 if isinstance(policy, BatchedPolicy) else 1)
    assert len(policy.waits(only_dep(tall(rows)))) == MOST_WAITS
    with pytest.raises(InputError, match=rf"up>down .*wait for {MOST_WAITS + 1} semaphores of up one by one"):
        policy.waits(only_dep(tall(rows + 1)))
    assert wait_count(RowPolicy(), only_dep(tall(rows + 1))) == rows + 1


def test_a_plan_with_too_many_waits_is_refused_before_it_is_run() -> None:
    program = tall(MOST_WAITS + 1)
    assert build_plan(program, policy="row").overlapped
    for policy in ("tile", "batched:1"):
        with pytest.raises(InputError, match="one by one"):
            build_plan(program, policy=policy)


def test_places_where_waits_differ_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    program = contract_program()
    build_plan(program, policy="tile")
    monkeypatch.setattr("cusim.policies.base.MOST_PLACES", 11)
    with pytest.raises(InputError, match=r"p>w .*worked out for \d+ tiles and k steps of w, at most 11"):
        build_plan(program, policy="tile")


def test_dependences_are_derived_once_for_equal_programs() -> None:
    program = contract_program()
    again = contract_program()
    assert program is not again
    assert (program, hash(program)) == (again, hash(again))
    assert dependences(program) is dependences(again)
    other = replace(program, seed=program.seed + 1)
    assert hash(other) != hash(program)


def test_a_machine_of_countless_sms_is_refused() -> None:
    document = load_machine("h200").to_json()
    document["limits"]["sms"]["value"] = 99999999999999999999999
    with pytest.raises(InputError, match=r"limits\.sms\.value = 9{23} +must be at most 4096"):
        machine_from_json(document, "m.json")
