"""Writes a program in the user's TOML form; what is written reads back as an equal program, or nothing is written."""

from __future__ import annotations

import json
from dataclasses import fields

from cusim.errors import InputError, Problems
from cusim.program.build import DEFAULT_STAGES
from cusim.program.encode import SCHEMA
from cusim.program.kernel import Gemm, Kernel, Measured, Stream
from cusim.program.needs import need_of
from cusim.program.program import Program
from cusim.program.toml_read import parse_program

_ADVICE = "the TOML form cannot say this; keep the program as JSON (program_to_json)"


def program_to_toml(program: Program) -> str:
    """The program as TOML text that :func:`parse_program` reads back to an equal program.

    Raises InputError that names what the form cannot say: accesses that no operand or need describes, names outside
    letters, digits, _ and -, measured times with fractions of a nanosecond.
    """
    head = [f'schema = "{SCHEMA}"', f"name = {_text(program.name)}"]
    if program.seed:
        head.append(f"seed = {program.seed}")
    text = "\n\n".join(["\n".join(head), *(_kernel(kernel, program) for kernel in program.kernels)]) + "\n"
    try:
        back = parse_program(text, program.name, program.name)
    except InputError as error:
        raise InputError(program.name, [*error.problems]) from None
    _compare(program, back)
    return text


def _kernel(kernel: Kernel, program: Program) -> str:
    lines = [f"name = {_text(kernel.name)}"]
    lines += _gemm_lines(kernel, kernel.gemm, program) if kernel.gemm else _other_lines(kernel)
    block = kernel.block
    shared = block.smem_bytes / 1024
    parts = f"threads = {block.threads}, registers = {block.registers}, shared_kib = {_number(shared)}"
    cluster = f", cluster = {block.cluster}" if block.cluster != 1 else ""
    lines.append(f"block = {{ {parts}{cluster} }}")
    if kernel.stages != DEFAULT_STAGES:
        lines.append(f"stages = {kernel.stages}")
    if kernel.reduce != "serial":
        lines.append(f"reduce = {_text(kernel.reduce)}")
    needs = _needs(kernel, program)
    if needs:
        lines.append(f"needs = [{', '.join(map(_text, needs))}]")
    if isinstance(kernel.cost, Measured):
        lines.append(f"time_us = {_number(kernel.cost.time_ps / 1e6)}")
        lines.append(f"measured_on = {_text(kernel.cost.measured_on)}")
    return "\n".join(["[[kernel]]", *lines])


def _gemm_lines(kernel: Kernel, gemm: Gemm, program: Program) -> list[str]:
    lines = [f"gemm = {{ m = {gemm.m}, n = {gemm.n}, k = {gemm.k}, dtype = {_text(gemm.dtype)} }}"]
    operand = _operand(kernel)
    earlier = {other.name for other in program.kernels[: program.position(kernel.name)]}
    if operand in earlier:
        lines.append(f"a = {_text(operand)}")
    lines.append(f'tile = "{"x".join(map(str, kernel.tile))}"')
    if kernel.grid[2] != 1:
        lines.append(f"split_k = {kernel.grid[2]}")
    for key, value in (("prologue", gemm.prologue), ("epilogue", gemm.epilogue)):
        if value != "none":
            lines.append(f"{key} = {_text(value)}")
    return lines


def _operand(kernel: Kernel) -> str:
    return kernel.reads[0].buffer if kernel.reads else ""


def _other_lines(kernel: Kernel) -> list[str]:
    rows, cols, slices = kernel.grid
    lines = [f"grid = [{rows}, {cols}]" if slices == 1 else f"grid = [{rows}, {cols}, {slices}]"]
    if kernel.steps != slices:
        lines.append(f"steps = {kernel.steps}")
    work = kernel.cost.work if isinstance(kernel.cost, Measured) else kernel.cost
    if isinstance(work, Stream):
        lines += [f"tile_bytes = {work.tile_bytes}", f"tile_flops = {work.tile_flops}"]
    return lines


def _needs(kernel: Kernel, program: Program) -> list[str]:
    """Reads that are no operand of a GEMM, as needs; those that have no such form are found when comparing."""
    operands = {f"{kernel.name}.b", _operand(kernel)} if kernel.gemm else set()
    found = []
    for read in kernel.reads:
        known = read.buffer in {other.name for other in program.kernels}
        if read.buffer in operands or not known:
            continue
        buffer = program.buffer(read.buffer)
        need = need_of(read, program.kernel(read.buffer), buffer.rows, buffer.cols)
        if need is not None:
            found.append(str(need))
    return found


def _compare(program: Program, back: Program) -> None:
    """Raises InputError naming every field in which what was written differs from the program."""
    problems = Problems(program.name)
    for position, (kernel, read) in enumerate(zip(program.kernels, back.kernels, strict=True)):
        for field in fields(kernel):
            if getattr(kernel, field.name) != getattr(read, field.name):
                problems.add(f"kernel[{position}].{field.name}", kernel.name, _ADVICE)
    if not problems.found and program.buffers != back.buffers:
        problems.add("buffers", None, _ADVICE)
    problems.raise_if_any()


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


def _text(value: str) -> str:
    """A TOML basic string: JSON's escapes, but DEL must be escaped too."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
