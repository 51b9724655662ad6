"""The user's TOML form: the documented example, the round trip, and every mistake named at once."""

from __future__ import annotations

from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest

from cusim.errors import InputError
from cusim.program.depends import dependences
from cusim.program.kernel import Gemm, Measured
from cusim.program.program import Program
from cusim.program.toml_read import load_program, parse_program
from cusim.program.toml_write import program_to_toml
from cusim.workloads import build_workload, workload_names
from tests.fixtures import contract_program, toml_program

DOCUMENTED = """\
schema = "cusim.program/1"
[[kernel]]
name  = "up"
gemm  = { m = 768, n = 6144, k = 12288, dtype = "fp16" }
tile  = "128x256x64"                                           # M x N x K
block = { threads = 384, registers = 168, shared_kib = 196 }   # as Nsight Compute prints them
time_us = 231.0            # optional: measured alone; otherwise the machine model costs it
measured_on = "h200"       # required with time_us; rescaled by waves elsewhere, and marked so
[[kernel]]
name  = "down"
gemm  = { m = 768, n = 12288, k = 6144, dtype = "fp16" }
a     = "up"               # operand A is up's output: which tile waits for which k range is derived
tile  = "128x256x64"
block = { threads = 384, registers = 168, shared_kib = 196 }
# not a GEMM:  grid = [6, 48]   needs = ["up[r, :]", "v[:, c + 24]"]   time_us = 12.4   measured_on = "h200"
"""
BLOCK = "block = { threads = 128, registers = 64, shared_kib = 16 }\n"
HEAD = 'schema = "cusim.program/1"\n[[kernel]]\n'
UP = f'{HEAD}name = "up"\ngemm = {{ m = 64, n = 48, k = 32 }}\ntile = "16x16x16"\n{BLOCK}'


def problems(text: str) -> dict[str, str]:
    with pytest.raises(InputError) as caught:
        parse_program(text, "bad.toml")
    assert caught.value.source == "bad.toml"
    return {problem.key: problem.why for problem in caught.value.problems}


def test_the_documented_example_is_read_word_for_word() -> None:
    program = parse_program(DOCUMENTED, "example", "mlp")
    up, down = program.kernels
    assert program.name == "mlp"
    assert up.cost == Measured(231_000_000, "h200", Gemm(768, 6144, 12288))
    assert down.cost == Gemm(768, 12288, 6144)
    assert (up.grid, up.steps, up.stages) == ((6, 24, 1), 192, 4)
    assert (down.grid, down.steps) == ((6, 48, 1), 96)
    assert up.block.smem_bytes == 196 * 1024
    assert [dep.name for dep in dependences(program)] == ["up>down"]


def test_the_packaged_example_is_the_documented_one_without_the_time() -> None:
    with resources.as_file(resources.files("cusim") / "examples" / "two_gemms.toml") as path:
        program = load_program(path)
    documented = parse_program(DOCUMENTED, "example", "two_gemms")
    untimed = replace(documented.kernels[0], cost=Gemm(768, 6144, 12288))
    assert program == replace(documented, kernels=(untimed, documented.kernels[1]))


def _programs() -> list[Program]:
    found = [toml_program(), parse_program(DOCUMENTED, "example")]
    for name in workload_names():
        for machine in ("v100", "a100", "h200"):
            found += [choice.program for choice in build_workload(name, machine).choices.values()]
    return found


@pytest.mark.parametrize("program", _programs(), ids=lambda program: f"{program.name}-{program.digest}")
def test_what_is_written_reads_back_equal(program: Program) -> None:
    assert parse_program(program_to_toml(program), "copy") == program


def test_what_the_form_cannot_say_is_refused_with_advice() -> None:
    with pytest.raises(InputError) as caught:
        program_to_toml(contract_program())
    keys = {problem.key for problem in caught.value.problems}
    assert keys == {"kernel[2].reads", "kernel[2].persistent"}
    assert "JSON" in str(caught.value)


def test_a_program_whose_names_the_form_cannot_say_is_refused() -> None:
    program = toml_program()
    renamed = replace(program.kernels[0], name="p.1")
    with pytest.raises(InputError, match="letters, digits"):
        program_to_toml(replace(program, kernels=(renamed, *program.kernels[1:])))


def test_every_mistake_of_a_file_is_reported_at_once() -> None:
    found = problems(
        """
seed = true
[[kernel]]
name = "up"
gemm = { m = 768, n = 6144, k = 0, dtype = "fp8" }
tile = "128x256"
block = { threads = 384, registers = 168.0, shared_kb = 196 }
time_us = 3
[[kernel]]
name = "down"
gemm = { m = 768, n = 12288, k = 6144 }
a = "upp"
tiel = "128x256x64"
block = { threads = 2000, registers = 168, shared_kib = -1 }
time_us = nan
measured_on = "h200"
"""
    )
    assert found["schema"].startswith("missing")
    assert found["seed"] == "must be an integer, not a boolean"
    assert found["kernel[0].gemm.k"] == "must be 1 or more"
    assert "fp16" in found["kernel[0].gemm.dtype"]
    assert "M x N x K" in found["kernel[0].tile"]
    assert "not a number with a fraction" in found["kernel[0].block.registers"]
    assert found["kernel[0].block.shared_kb"].startswith("unknown key; did you mean shared_kib?")
    assert found["kernel[0].block.shared_kib"].startswith("missing")
    assert "a time belongs to a machine" in found["kernel[0].measured_on"]
    assert found["kernel[1].tiel"].startswith("unknown key; did you mean tile?  allowed: a block")
    assert found["kernel[1].a"] == "no earlier kernel has this name; did you mean up?  allowed: up"
    assert found["kernel[1].block.threads"] == "must be at most 1024"
    assert found["kernel[1].block.shared_kib"] == "must be 0 to 1024"
    assert found["kernel[1].time_us"] == "must be a finite number"
    assert len(found) == 15


@pytest.mark.parametrize(
    ("text", "key", "why"),
    [
        ("", "schema", "missing"),
        ("", "kernel", "missing"),
        ('schema = "cusim.machine/2"\nsms = 3', "schema", "allowed"),
        ("schema = 1", "schema", "allowed"),
        ('schema = "cusim.program/1"\nkernel = []', "kernel", "at least one"),
        ('schema = "cusim.program/1"\n[kernel]\nname = "a"', "kernel", "headed [[kernel]]"),
        ('schema = "cusim.program/1"\nkernel = [3]', "kernel[0]", "must be a table"),
        ("schema = \n", "line 1, column 10", "is no TOML"),
        ('schema = "a', "end of document", "is no TOML"),
        ("a = " + "[" * 5000, "file", "is no TOML"),
        (UP.replace('name = "up"\n', ""), "kernel[0].name", "missing"),
        (UP.replace('"up"', '"1up"'), "kernel[0].name", "letters, digits"),
        (UP.replace('"up"', '""'), "kernel[0].name", "must not be empty"),
        (UP.replace('tile = "16x16x16"', ""), "kernel[0].tile", "missing"),
        (UP.replace("16x16x16", "16x0x16"), "kernel[0].tile", "M x N x K"),
        (UP.replace("16x16x16", "16X16x16"), "kernel[0].tile", "M x N x K"),
        (UP + "grid = [4, 3]", "kernel[0].grid", "leave it out"),
        (UP + "steps = 2", "kernel[0].steps", "leave it out"),
        (UP + "split_k = 3", "kernel[0].split_k", "without work"),
        (UP + "split_k = 0", "kernel[0].split_k", "1 or more"),
        (UP + "stages = 1.0", "kernel[0].stages", "integer"),
        (UP + 'epilogue = "gelo"', "kernel[0].epilogue", "did you mean gelu"),
        (UP + 'prologue = "gelu"', "kernel[0].prologue", "swiglu"),
        (UP + 'reduce = "atomic"', "kernel[0].reduce", "serial"),
        (UP + 'measured_on = "h200"', "kernel[0].measured_on", "no time_us"),
        (UP + 'time_us = -3\nmeasured_on = "h200"', "kernel[0].time_us", "must be"),
        (UP + 'time_us = true\nmeasured_on = "h200"', "kernel[0].time_us", "boolean"),
        (UP + 'time_us = "3"\nmeasured_on = "h200"', "kernel[0].time_us", "string"),
        (UP + f'[[kernel]]\nname = "up"\ngrid = [2, 2]\ntile_bytes = 4\n{BLOCK}', "kernel[1].name", "earlier"),
        (UP.replace("m = 64", "m = 99999999999"), "kernel[0].gemm.m", "at most"),
        (UP.replace("m = 64", f"m = 0x{'f' * 6000}"), "kernel[0].gemm.m", "at most"),
        (UP.replace("m = 64", f"m = {'9' * 6000}"), "file", "is no TOML"),
        (UP.replace("m = 64, n = 48", "m = 2147483647, n = 2147483647"), "kernel[0].grid", "blocks"),
    ],
)
def test_one_mistake_each(text: str, key: str, why: str) -> None:
    found = problems(text)
    assert why in found[key], found


G = "gemm = { m = 64, n = 16, k = %s }\n"
A = 'a = "up"\ntile = "16x16x8"\n'
OTHER = UP + '[[kernel]]\nname = "v"\n' + BLOCK


@pytest.mark.parametrize(
    ("lines", "key", "why"),
    [
        ("tile_bytes = 8", "kernel[1].grid", "missing"),
        ("grid = [2, 2]", "kernel[1].time_us", "no known cost"),
        ("grid = [0, 2]\ntile_bytes = 8", "kernel[1].grid[0]", "1 or more"),
        ("grid = [-1, 2]\ntile_bytes = 8", "kernel[1].grid[0]", "1 or more"),
        ("grid = [2]\ntile_bytes = 8", "kernel[1].grid", "2 or 3 integers"),
        ("grid = 4\ntile_bytes = 8", "kernel[1].grid", "not an integer"),
        ('grid = [2, 2]\ntile_bytes = 8\ntile = "1x1x1"', "kernel[1].tile", "only a kernel with gemm"),
        ('grid = [2, 2]\ntile_bytes = 8\na = "up"', "kernel[1].a", "only a kernel with gemm"),
        ("grid = [2, 2]\ntile_bytes = -8", "kernel[1].tile_bytes", "0 or more"),
        ("grid = [2, 2]\ntile_bytes = 8\nneeds = 3", "kernel[1].needs", "array"),
        ("grid = [2, 2]\ntile_bytes = 8\nneeds = [3]", "kernel[1].needs[0]", "string"),
        ('grid = [2, 2]\ntile_bytes = 8\nneeds = ["upp[r, :]"]', "kernel[1].needs[0]", "did you mean up"),
        ('grid = [2, 2]\ntile_bytes = 8\nneeds = ["v[r, :]"]', "kernel[1].needs[0]", "does not come earlier"),
        ('grid = [5, 2]\ntile_bytes = 8\nneeds = ["up[r, :]"]', "kernel[1].needs[0]", "row 4 of up at r = 4"),
        ('grid = [2, 2]\ntile_bytes = 8\nneeds = ["up[r, c + 2]"]', "kernel[1].needs[0]", "column 3 of up"),
        ('grid = [2, 2]\ntile_bytes = 8\nneeds = ["up[r*c, :]"]', "kernel[1].needs[0]", "affine"),
        (G % 40 + A, "kernel[1].a", "up writes 64 x 48 elements, v reads 64 x 40"),
        (G % '48, dtype = "fp32"' + A, "kernel[1].a", "up writes fp16, v reads fp32"),
        (G % 48 + A + 'prologue = "swiglu"', "kernel[1].a", "64 x 96 (two halves"),
        (G % 48 + A.replace("up", "v"), "kernel[1].a", "does not come earlier"),
        (G % 48 + A + 'needs = ["up[0, :]"]', "kernel[1].needs[0]", "tile (1, 0) of v does not read up[0, 0]"),
        (G % 48 + A + 'needs = ["up[r, 1]"]', "kernel[1].needs[0]", "tile (0, 0) of v reads up[0, 0]"),
        (G % 48 + A + 'needs = ["up[r, k]"]', "kernel[1].needs[0]", "column 5 of up"),
    ],
)
def test_mistakes_in_what_a_kernel_reads(lines: str, key: str, why: str) -> None:
    found = problems(OTHER + lines)
    assert why in found[key], found


def test_needs_of_a_gemm_that_agree_are_no_second_dependence() -> None:
    gemm = 'gemm = { m = 64, n = 16, k = 48 }\na = "up"\ntile = "16x16x16"\n'
    plain = parse_program(OTHER + gemm, "t")
    for needs in ('["up[r, :]"]', '["up[r, k]"]', '["up[r, 0]", "up[r, 2 - k]"]'):
        assert parse_program(f"{OTHER}{gemm}needs = {needs}\n", "t") == plain


def test_needs_of_a_gemm_on_another_kernel_are_read_as_well() -> None:
    v = OTHER + "grid = [4, 1]\ntile_bytes = 64\n"
    text = f'[[kernel]]\nname = "w"\ngemm = {{ m = 64, n = 16, k = 48 }}\na = "up"\ntile = "16x16x8"\n{BLOCK}'
    program = parse_program(v + text + 'needs = ["v[r, :]"]', "t")
    assert [dep.name for dep in dependences(program)] == ["up>w", "v>w"]


def test_a_refused_kernel_does_not_make_its_readers_wrong() -> None:
    text = (OTHER + 'grid = [2, 2]\ntile_bytes = 8\nneeds = ["up[r, :]"]').replace('"16x16x16"', '"16"')
    assert set(problems(text)) == {"kernel[0].tile"}


def test_slices_of_a_kernel_that_is_no_gemm_have_a_step_each() -> None:
    kernel = parse_program(OTHER + "grid = [2, 2, 3]\ntile_bytes = 8", "t").kernels[1]
    assert (kernel.grid, kernel.steps) == ((2, 2, 3), 3)


def test_times_are_whole_nanoseconds() -> None:
    cost = parse_program(UP + 'time_us = 12.3456\nmeasured_on = "h200"', "t").kernels[0].cost
    assert isinstance(cost, Measured)
    assert cost.time_ps == 12_346_000


def test_a_file_is_named_after_itself_and_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xef\xbb\xbf" + UP.replace("\n", "\r\n").encode())
    assert load_program(path).name == "mine"
    path.write_text('name = "other"\n' + UP, encoding="utf-8")
    assert load_program(path).name == "other"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        load_program(tmp_path / "none.toml")
    with pytest.raises(InputError, match="cannot be read"):
        load_program(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        load_program("a\0b.toml")
    bad = tmp_path / "bad.toml"
    bad.write_bytes(b"schema = 1\nname = '\xff'")
    with pytest.raises(InputError, match="line 2, byte 9   is no UTF-8"):
        load_program(bad)
