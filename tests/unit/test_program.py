"""Programs: what they refuse, their digests, JSON form, dependences against brute force, hazards and segments."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest

from cusim.errors import InputError
from cusim.program.buffer import Access
from cusim.program.build import gemm_kernel, tile_range
from cusim.program.depends import dependences, hazards, needed_tiles
from cusim.program.expr import Lookup, as_expr, r
from cusim.program.kernel import Gemm, Measured
from cusim.program.program import Program
from cusim.program.segments import Segment, segments
from cusim.program.serial import program_from_json, program_to_json
from tests.fixtures import BLOCK, contract_program, overlapping_tiles, toml_program


@pytest.mark.parametrize("program", [contract_program(), toml_program()], ids=["contract", "toml"])
def test_json_round_trip_is_exact(program: Program) -> None:
    text = json.dumps(program_to_json(program))
    assert program_from_json(json.loads(text), "copy") == program


def test_digest_follows_the_contents() -> None:
    program = contract_program()
    assert program.digest == contract_program().digest
    assert len(program.digest) == 12
    assert replace(program, seed=8).digest != program.digest
    slower = replace(program.kernels[1], cost=Measured(8_000, "h200", program.kernels[1].gemm))
    kernels = (program.kernels[0], slower, program.kernels[2])
    assert replace(program, kernels=kernels).digest != program.digest


def test_fractions_of_a_nanosecond_are_floored() -> None:
    program = contract_program()
    late = replace(program.kernels[1], cost=Measured(7_999, "h200", program.kernels[1].gemm))
    late_program = replace(program, kernels=(program.kernels[0], late, program.kernels[2]))
    assert program_from_json(program_to_json(late_program), "copy") == program


@pytest.mark.parametrize("program", [contract_program(), toml_program()], ids=["contract", "toml"])
def test_dependences_equal_the_overlap_of_elements(program: Program) -> None:
    deps = {(dep.producer, dep.consumer): dep for dep in dependences(program)}
    for position, consumer in enumerate(program.kernels):
        for producer in program.kernels[:position]:
            dep = deps.get((producer.name, consumer.name))
            for i in range(consumer.grid[0]):
                for j in range(consumer.grid[1]):
                    for s in range(consumer.grid[2]):
                        touched = overlapping_tiles(program, producer, consumer, i, j, s)
                        assert (needed_tiles(dep, i, j, s) if dep else set()) == touched


def test_the_contract_program_has_a_fan_in_of_two() -> None:
    assert [dep.name for dep in dependences(contract_program())] == ["p>w", "q>w"]


def test_hazards_name_later_writers() -> None:
    program = toml_program()
    assert hazards(program) == ()
    again = replace(program.kernels[3], name="again", writes=program.kernels[1].writes, grid=(3, 4, 1))
    found = {(h.earlier, h.kind) for h in hazards(replace(program, kernels=(*program.kernels, again)))}
    assert found == {("q-1", "waw"), ("w", "war"), ("v", "war"), ("again", "waw")} - {("again", "waw")}


def test_writes_that_do_not_lie_side_by_side_are_refused() -> None:
    program = contract_program()
    overlapping = Access("p", (r * 4, r * 4 + 8), program.kernels[0].writes[0].cols, "w")
    kernels = (replace(program.kernels[0], writes=(overlapping,)), *program.kernels[1:])
    with pytest.raises(InputError, match="side by side"):
        dependences(replace(program, kernels=kernels))


def test_every_mistake_of_a_program_is_named() -> None:
    good = contract_program()
    bad = replace(good.kernels[0], grid=(0, 2, 1), stages=0, block=replace(BLOCK, smem_bytes=-1))
    stray = replace(good.kernels[2], name="p", reads=(Access("none", tile_range(r, 1), tile_range(r, 1), "r"),))
    with pytest.raises(InputError) as caught:
        Program((bad, stray), (*good.buffers, good.buffers[0]))
    keys = {problem.key for problem in caught.value.problems}
    assert keys >= {"kernel[0].grid", "kernel[0].stages", "kernel[0].block.smem_bytes", "kernel[1].name"}
    assert keys >= {"kernel[1].accesses", f"buffer[{len(good.buffers)}].name"}


@pytest.mark.parametrize(("k", "split"), [(8, 2), (40, 4)])
def test_a_slice_without_work_is_refused(k: int, split: int) -> None:
    kernel, buffers = gemm_kernel("a", Gemm(8, 8, k), (8, 8, 8), BLOCK, split_k=split)
    with pytest.raises(InputError, match="without work"):
        Program((kernel,), buffers)


def _changed(path: tuple[Any, ...], value: object) -> dict[str, Any]:
    data = copy.deepcopy(program_to_json(contract_program()))
    here: Any = data
    for step in path[:-1]:
        here = here[step]
    if value is None:
        del here[path[-1]]
    else:
        here[path[-1]] = value
    return data


@pytest.mark.parametrize(
    ("path", "value", "key", "why"),
    [
        (("schema",), "cusim.machine/2", "schema", "allowed"),
        (("schema",), None, "schema", "missing"),
        (("extra",), 1, "extra", "unknown key"),
        (("seed",), True, "seed", "not a boolean"),
        (("kernels",), {}, "kernels", "array"),
        (("kernels", 0), 3, "kernels[0]", "must be a table"),
        (("kernels", 0, "grid"), [3, 2], "kernels[0].grid", "3 integers"),
        (("kernels", 0, "grid"), [3, 2.0, 1], "kernels[0].grid[1]", "not a number"),
        (("kernels", 0, "tile"), [0, 8, 8], "kernels[0].tile[0]", "1 or more"),
        (("kernels", 0, "stages"), None, "kernels[0].stages", "missing"),
        (("kernels", 0, "stagse"), 3, "kernels[0].stagse", "did you mean stages"),
        (("kernels", 0, "reduce"), "tree", "kernels[0].reduce", "allowed: last_arriver serial"),
        (("kernels", 0, "persistent"), 1, "kernels[0].persistent", "true or false"),
        (("kernels", 0, "cost", "kind"), "gem", "kernels[0].cost.kind", "did you mean gemm"),
        (("kernels", 0, "cost", "m"), float("nan"), "kernels[0].cost.m", "integer"),
        (("kernels", 0, "cost", "epilogue"), "relu", "kernels[0].cost.epilogue", "gelu"),
        (("kernels", 1, "cost", "time_ns"), -1, "kernels[1].cost.time_ns", "0 or more"),
        (("kernels", 1, "cost", "work", "kind"), "measured", "kernels[1].cost.work.kind", "allowed"),
        (("kernels", 0, "block", "threads"), "256", "kernels[0].block.threads", "not a string"),
        (("kernels", 0, "reads", 0, "rows"), ["r"], "kernels[0].reads[0].rows", "two expressions"),
        (("kernels", 0, "reads", 0, "rows", 1), "r * x", "kernels[0].reads[0].rows[1]", "not allowed"),
        (("kernels", 0, "reads", 0, "rows", 1), "t", "kernels[0].reads[0].rows[1]", "not allowed"),
        (("kernels", 0, "reads", 0, "rows", 1), 4, "kernels[0].reads[0].rows[1]", "in a string"),
        (("kernels", 0, "reads", 0, "rows", 1), "r // c", "kernels[0].reads[0].rows", "cannot be computed"),
        (("kernels", 0, "reads", 0, "rows", 1), "table(8, 9)[r]", "kernels[0].reads[0].rows", "cannot be computed"),
        (("kernels", 0, "reads", 0, "mode"), "w", "kernels[0].reads[0].mode", "allowed: r"),
        (("kernels", 0, "reads", 0, "at_k"), -1, "kernels[0].reads[0].at_k", "0 or more"),
        (("kernels", 0, "reads", 0, "buffer"), "zz", "kernel[0].accesses", "no buffer"),
        (("buffers", 0, "addr"), -1, "buffers[0].addr", "0 or more"),
        (("buffers", 0, "rows"), None, "buffers[0].rows", "missing"),
    ],
)
def test_json_is_read_strictly(path: tuple[Any, ...], value: object, key: str, why: str) -> None:
    with pytest.raises(InputError) as caught:
        program_from_json(_changed(path, value), "p.json")
    assert [(p.key, why in p.why) for p in caught.value.problems] == [(key, True)]


@pytest.mark.parametrize("data", [None, [], 3, "x"])
def test_json_that_is_no_object_is_refused(data: object) -> None:
    with pytest.raises(InputError, match="must be a table"):
        program_from_json(data, "p.json")


def test_tables_in_accesses_survive_json() -> None:
    program = contract_program()
    rows = Lookup((0, 8, 16), r)
    kernel = replace(program.kernels[0], reads=(Access("p.a", (rows, rows + 8), (as_expr(0), as_expr(32)), "r"),))
    changed = replace(program, kernels=(kernel, *program.kernels[1:]))
    assert program_from_json(program_to_json(changed), "copy") == changed


def test_segments_are_hulls_in_bytes_cut_at_the_buffer() -> None:
    program = contract_program()
    found = segments(program.kernel("w"), program)
    assert list(found.writes) == [Segment("w", 0, 24 * 10 * 2, program.buffer("w").addr)]
    by_name = {s.buffer: s for s in found.reads}
    assert by_name["p"] == Segment("p", 0, 24 * 16 * 2, program.buffer("p").addr)
    assert by_name["q"].size_bytes == (23 * 12 + 11) * 2  # the last column is never read


def test_segments_of_a_part_and_their_overlap() -> None:
    program = contract_program()
    low = Access("p", (as_expr(2), as_expr(4)), (as_expr(3), as_expr(5)), "r")
    high = Access("p", (as_expr(20), as_expr(40)), (as_expr(0), as_expr(1)), "r")
    empty = Access("p", (as_expr(3), as_expr(3)), (as_expr(0), as_expr(1)), "r")
    kernel = replace(program.kernels[2], reads=(low, high, empty))
    addr = program.buffer("p").addr
    first, second = segments(kernel, program).reads
    assert first == Segment("p", (2 * 16 + 3) * 2, (16 + 2) * 2, addr)
    assert second == Segment("p", 20 * 16 * 2, (3 * 16 + 1) * 2, addr)
    assert not first.overlaps(second)
    assert first.overlaps(Segment("p", first.end_bytes - 1, 1))
    assert not first.overlaps(Segment("other", 0, 10**6))
    assert Segment("a", 0, 8, base=100).overlaps(Segment("b", 4, 8, base=100))


def test_segments_that_touch_are_one() -> None:
    program = contract_program()
    halves = [Access("p", (as_expr(a), as_expr(a + 2)), (as_expr(0), as_expr(16)), "r") for a in (4, 6)]
    kernel = replace(program.kernels[2], reads=tuple(halves))
    (joined,) = segments(kernel, program).reads
    assert (joined.start_bytes, joined.size_bytes) == (4 * 16 * 2, 4 * 16 * 2)
