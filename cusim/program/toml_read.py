"""Reads the program a user writes in TOML: kernels in issue order, GEMMs by their shape, others by ``needs``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from cusim.errors import InputError, Problems, refuse
from cusim.files import read_file
from cusim.program.buffer import Access, Buffer
from cusim.program.build import gemm_kernel, operand_mismatch, tile_kernel
from cusim.program.fields import LARGEST, Fields
from cusim.program.kernel import Kernel, Measured, Stream
from cusim.program.needs import Need, outside, parse_need, unknown_producer
from cusim.program.needs_check import first_difference
from cusim.program.program import Program, check_kernel
from cusim.program.serial import built, check_schema
from cusim.program.toml_kernel import Head, read_head

T = TypeVar("T")

TOP_KEYS = ("schema", "name", "seed", "kernel")
_PLACE = re.compile(r"(.*) \(at (line \d+, column \d+|end of document)\)$", re.DOTALL)


@dataclass(slots=True)
class _Sofar:
    """What has been read: kernels by name (None where one was refused) and the buffers of the good ones."""

    names: list[str]
    kernels: dict[str, Kernel | None] = field(default_factory=dict)
    buffers: dict[str, Buffer] = field(default_factory=dict)


def load_program(path: str | Path) -> Program:
    """The program in a TOML file, named after the file unless it gives a name; InputError for all that is wrong."""
    source = str(path)
    try:
        raw = read_file(Path(path))
    except OSError as error:
        why = error.strerror or "no such file"
        raise refuse(source, "file", None, f"cannot be read: {why[:1].lower()}{why[1:]}") from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = raw[: error.start].count(b"\n") + 1, error.start - raw.rfind(b"\n", 0, error.start)
        raise refuse(source, f"line {line}, byte {column}", None, "is no UTF-8 text") from None
    return parse_program(text, source, Path(path).stem)


def parse_program(text: str, source: str, name: str = "program") -> Program:
    """The program that a TOML *text* describes; *source* is what errors call it, *name* its name unless it has one."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        found = _PLACE.fullmatch(str(error))
        why, place = found.groups() if found else (str(error).partition(";")[0], "file")
        raise refuse(source, place, None, f"is no TOML: {why[:1].lower()}{why[1:]}") from None
    return read_program(document, source, name)


def read_program(document: object, source: str, name: str = "program") -> Program:
    """The program of a document as ``tomllib`` reads it."""
    problems = Problems(source)
    top = Fields.of(document, "", problems)
    program = _program(top, name) if top is not None and check_schema(top) else None
    problems.raise_if_any()
    assert program is not None
    return program


def _program(top: Fields, default_name: str) -> Program | None:
    top.only(TOP_KEYS)
    name = top.text("name", default=default_name or "program")
    seed = top.integer("seed", default=0, low=-LARGEST)
    if top.data.get("kernel") == []:
        top.missing("kernel", "at least one [[kernel]]")
    tables = list(top.tables("kernel", "at least one table, headed [[kernel]]"))
    sofar = _Sofar([str(fields.data.get("name", "")) for fields in tables if fields])
    for fields in tables:
        if fields is not None:
            _add(fields, sofar)
    kernels = [kernel for kernel in sofar.kernels.values() if kernel]
    if top.problems.found or name is None or seed is None:
        return None
    return built(kernels, list(sofar.buffers.values()), seed, name, top.problems)


def _add(fields: Fields, sofar: _Sofar) -> None:
    """Reads one kernel into *sofar*, unless it is wrong."""
    head = read_head(fields)
    needs = _needs(fields, sofar)
    operand = _operand(fields, head, sofar)
    if head.name in sofar.kernels:
        fields.wrong("name", "an earlier kernel has this name")
    elif not head.complete:
        sofar.kernels |= {head.name: None} if head.name else {}
    else:
        kernel, buffers = _built_kernel(fields, head, needs, operand, sofar)
        sofar.buffers |= {buffer.name: buffer for buffer in buffers}
        sofar.kernels[kernel.name] = kernel
        known = {*sofar.buffers, *filter(None, [operand])}
        before = len(fields.problems.found)
        check_kernel(kernel, fields.key, known, fields.problems)
        if len(fields.problems.found) == before:
            _check_declared(fields, {k: n for k, n in needs.items() if n.producer == operand}, kernel, sofar)


def _operand(fields: Fields, head: Head, sofar: _Sofar) -> str | None:
    """The kernel whose output is operand A; None where A comes from outside or is refused."""
    name = fields.text("a") if fields.has("a") else None
    if name is None:
        return None
    if name not in sofar.kernels:
        fields.wrong("a", unknown_producer(name, sofar.kernels, sofar.names))
        return None
    producer = sofar.kernels[name]
    if producer is not None and head.gemm is not None:
        why = operand_mismatch(producer, head.name or fields.key, head.gemm)
        if why:
            fields.wrong("a", why)
    return name


def _needs(fields: Fields, sofar: _Sofar) -> dict[str, Need]:
    """Needs by their keys; those that are wrong are reported and left out."""
    found: dict[str, Need] = {}
    texts = fields.array("needs", 'an array such as ["up[r, :]"]') if fields.has("needs") else None
    for position, text in enumerate(texts or []):
        key = f"{fields.at('needs')}[{position}]"
        if not isinstance(text, str):
            fields.problems.add(key, text, 'must be a string such as "up[r, :]"')
            continue
        try:
            need = parse_need(text)
        except InputError as error:
            fields.problems.add(key, text, error.problems[0].why)
            continue
        if need.producer not in sofar.kernels:
            fields.problems.add(key, text, unknown_producer(need.producer, sofar.kernels, sofar.names))
        else:
            found[key] = need
    return found


def _built_kernel(
    fields: Fields, head: Head, needs: Mapping[str, Need], operand: str | None, sofar: _Sofar
) -> tuple[Kernel, tuple[Buffer, ...]]:
    """The kernel, whose own keys are right; checks its needs against the grids on both sides."""
    block = _given(head.block)
    if head.gemm is None:
        grid = _given(head.grid)
        cost: Stream | Measured | None = head.cost
        assert cost is not None
        accesses = _accesses(fields, needs, grid, head.steps, sofar)
        return tile_kernel(
            _given(head.name), grid, block, cost, needs=accesses, steps=head.steps,
            stages=head.stages, reduce=head.reduce,
        )  # fmt: skip
    grid, steps = head.gemm_grid()
    accesses = _accesses(fields, {k: n for k, n in needs.items() if n.producer != operand}, grid, steps, sofar)
    return gemm_kernel(
        _given(head.name), head.gemm, _given(head.tile), block, a=operand, split_k=head.split_k,
        stages=head.stages, reduce=head.reduce, measured=head.measured, needs=accesses,
    )  # fmt: skip


def _given(value: T | None) -> T:
    """What a complete head is known to hold."""
    assert value is not None
    return value


def _accesses(
    fields: Fields, needs: Mapping[str, Need], grid: tuple[int, int, int], steps: int, sofar: _Sofar
) -> tuple[Access, ...]:
    found = []
    for key, need in needs.items():
        producer = sofar.kernels[need.producer]
        if producer is None:
            continue  # refused itself: what this kernel reads of it cannot be judged
        why = outside(need, producer, grid, steps)
        if why:
            fields.problems.add(key, str(need), why)
        else:
            buffer = sofar.buffers[need.producer]
            found.append(need.access(producer, buffer.rows, buffer.cols))
    return tuple(found)


def _check_declared(fields: Fields, needs: Mapping[str, Need], consumer: Kernel, sofar: _Sofar) -> None:
    """What is declared of operand A must be what the shapes say, for every tile."""
    if not needs:
        return
    key, need = next(iter(needs.items()))
    producer = sofar.kernels[need.producer]
    declared = _accesses(fields, needs, consumer.grid, consumer.steps, sofar)
    if producer is None or producer.gemm is None or len(declared) < len(needs):
        return
    reads = [read for read in consumer.reads if read.buffer == producer.name]
    why = first_difference(declared, reads, producer, consumer, sofar.buffers[producer.name])
    if why:
        fields.problems.add(key, str(need), why)
