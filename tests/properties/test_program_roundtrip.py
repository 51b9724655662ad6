"""Random programs survive JSON and TOML and depend as their elements overlap; random input is read or refused."""

from __future__ import annotations

import contextlib
import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cusim.errors import InputError
from cusim.program.affine import Affine
from cusim.program.build import gemm_kernel, tile_kernel
from cusim.program.depends import dependences, needed_tiles
from cusim.program.expr import Expr, Lookup, as_expr, c, k, maximum, minimum, parse_expr, r, t, z
from cusim.program.kernel import BlockResources, Gemm, Kernel, Measured, Stream
from cusim.program.needs import Need, outside, parse_need
from cusim.program.program import Program
from cusim.program.segments import segments
from cusim.program.serial import program_from_json, program_to_json
from cusim.program.toml_read import parse_program, read_program
from cusim.program.toml_write import program_to_toml
from tests.fixtures import contract_program, elements, overlapping_tiles, toml_program

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,5}", fullmatch=True)
blocks = st.builds(
    BlockResources, st.integers(1, 1024), st.integers(1, 255), st.integers(0, 232_448), st.sampled_from([1, 2, 8])
)
times = st.none() | st.tuples(st.integers(1, 10**12).map(lambda ns: ns * 1000), st.sampled_from(["h200", "my gpu"]))
common = {"stages": st.integers(1, 8), "reduce": st.sampled_from(["serial", "last_arriver"])}


@st.composite
def affines(draw: st.DrawFn) -> Affine:
    return Affine(*(draw(st.integers(-2, 3)) for _ in range(4)))


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Up to four kernels; GEMMs may take an earlier one's output, others need tiles that lie inside."""
    kernels: dict[str, tuple[Kernel, Any]] = {}
    for name in draw(st.lists(names, min_size=1, max_size=4, unique=True)):
        options = {key: draw(value) for key, value in common.items()}
        made = [kernel for kernel, _ in kernels.values() if kernel.gemm]
        if draw(st.booleans()):
            grid, needs = tuple(draw(st.integers(1, 4)) for _ in range(3)), []
            steps = draw(st.integers(1, 3)) * grid[2]
            for producer, buffers in kernels.values():
                need = Need(producer.name, draw(st.none() | affines()), draw(st.none() | affines()))
                if outside(need, producer, grid, steps) is None:
                    needs.append(need.access(producer, buffers[0].rows, buffers[0].cols))
            work = Stream(draw(st.integers(0, 9999)), draw(st.integers(0, 9999)))
            time = draw(times)
            cost = work if time is None else Measured(*time, work=draw(st.sampled_from([None, work])))
            kernels[name] = tile_kernel(name, grid, draw(blocks), cost, needs=tuple(needs), steps=steps, **options)
            continue
        producer = draw(st.sampled_from([None, *made]))
        gemm = Gemm(draw(st.integers(1, 20)), draw(st.integers(1, 20)), draw(st.integers(1, 20)))
        if producer is not None and producer.gemm is not None:
            halves = producer.gemm.n % 2 == 0 and draw(st.booleans())
            depth = producer.gemm.n // 2 if halves else producer.gemm.n
            gemm = Gemm(producer.gemm.m, gemm.n, depth, "fp16", "none", "swiglu" if halves else "none")
        tile = tuple(draw(st.integers(1, 9)) for _ in range(3))
        split = draw(st.integers(1, 3))
        steps = -(-gemm.k // tile[2])
        if (split - 1) * -(-steps // split) >= steps:
            split = 1
        kernels[name] = gemm_kernel(
            name, gemm, tile, draw(blocks), a=producer.name if producer else None, split_k=split, measured=draw(times),
            **options,
        )  # fmt: skip
    parts = kernels.values()
    buffers = tuple(buffer for _, made_buffers in parts for buffer in made_buffers)
    return Program(
        tuple(kernel for kernel, _ in parts),
        buffers,
        draw(st.integers(-5, 5)),
        draw(st.text('aé"\\\n\x7f', min_size=1)),
    )


@given(programs())
def test_programs_survive_json(program: Program) -> None:
    copy = program_from_json(json.loads(json.dumps(program_to_json(program))), "copy")
    assert copy == program
    assert copy.digest == program.digest


@given(programs())
def test_programs_survive_toml(program: Program) -> None:
    assert parse_program(program_to_toml(program), "copy") == program


@given(programs())
def test_dependences_equal_the_overlap_of_elements(program: Program) -> None:
    deps = {(dep.producer, dep.consumer): dep for dep in dependences(program)}
    last = len(program.kernels) - 1
    consumer = program.kernels[last]
    for producer in program.kernels[:last]:
        dep = deps.get((producer.name, consumer.name))
        for row in range(consumer.grid[0]):
            touched = overlapping_tiles(program, producer, consumer, row, consumer.grid[1] - 1, consumer.grid[2] - 1)
            found = needed_tiles(dep, row, consumer.grid[1] - 1, consumer.grid[2] - 1) if dep else set()
            assert found == touched


@given(programs())
def test_segments_cover_every_element(program: Program) -> None:
    kernel = program.kernels[-1]
    found = segments(kernel, program)
    for access in (*kernel.reads, *kernel.writes):
        buffer = program.buffer(access.buffer)
        parts = [s for s in (found.reads if access.mode == "r" else found.writes) if s.buffer == buffer.name]
        for at in ({"r": 0, "c": 0, "z": 0, "k": 0}, {"r": kernel.grid[0] - 1, "c": 0, "z": 0, "k": kernel.steps - 1}):
            for i, j in elements(access, buffer, at):
                byte = (i * buffer.cols + j) * buffer.elem_bytes
                assert any(s.start_bytes <= byte < s.end_bytes for s in parts)
        assert all(0 <= s.start_bytes < s.end_bytes <= buffer.size_bytes for s in parts)


@given(names, st.none() | affines(), st.none() | affines())
def test_needs_survive_text(name: str, row: Affine | None, col: Affine | None) -> None:
    need = Need(name, row, col)
    assert parse_need(str(need)) == need


expressions: st.SearchStrategy[Expr] = st.recursive(
    st.sampled_from([r, c, z, k, t]) | st.integers(-9, 9).map(as_expr),
    lambda inner: st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a - b, inner, inner),
        st.builds(lambda a, b: a * b, inner, inner),
        st.builds(minimum, inner, inner),
        st.builds(maximum, inner, inner),
        st.builds(lambda a, n: a // n, inner, st.integers(1, 9)),
        st.builds(lambda a, n: a % n, inner, st.integers(1, 9)),
        st.builds(lambda a: Lookup((4, -2, 0), a % 3), inner),
    ),
    max_leaves=12,
)


@given(expressions)
def test_expressions_survive_text(expr: Expr) -> None:
    assert parse_expr(str(expr)) == expr


WORDS = ["up", "p", "16x16x16", "up[r,:]", "p[k,c]", "fp16", "swiglu", "h200", "r", "min(r,k)", "r//c"]
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([10**400, -(10**30), -1, 0]),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(WORDS),
)
KEYS = """schema name seed kernel kernels buffers gemm m n k dtype tile block threads registers shared_kib grid needs a
cost kind reads writes rows cols mode at_k steps stages split_k time_us measured_on tile_bytes prologue zz"""
keys = st.sampled_from(KEYS.split())
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=5), max_leaves=15
)


@given(anything)
def test_any_document_is_a_program_or_an_input_error(document: Any) -> None:
    for read in (read_program, program_from_json):
        if isinstance(document, dict):
            document = {**document, "schema": "cusim.program/1"}
        with contextlib.suppress(InputError):
            assert isinstance(read(document, "fuzz"), Program)


def _spots(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(spot for key, inner in items for spot in _spots(inner, (*path, key)))]


def _planted(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    copy = dict(document) if isinstance(document, dict) else list(document)
    copy[path[0]] = _planted(copy[path[0]], path[1:], value)
    return copy


TOML_DOCUMENT = tomllib.loads(program_to_toml(toml_program()))
JSON_DOCUMENT = program_to_json(contract_program())


@given(st.data(), anything)
def test_one_wrong_value_is_read_or_refused(data: st.DataObject, value: Any) -> None:
    for document, read in ((TOML_DOCUMENT, read_program), (JSON_DOCUMENT, program_from_json)):
        path = data.draw(st.sampled_from(_spots(document)))
        with contextlib.suppress(InputError):
            assert isinstance(read(_planted(document, path, value), "fuzz"), Program)


@given(st.text() | st.lists(st.sampled_from(program_to_toml(toml_program()).split("\n"))).map("\n".join))
def test_any_text_is_a_program_or_an_input_error(text: str) -> None:
    with contextlib.suppress(InputError):
        assert isinstance(parse_program(text, "fuzz"), Program)


@given(st.text(max_size=30) | st.text("rck0123456789+-*/%(),:[] min", max_size=20).map(lambda s: f"up[{s}]"))
def test_any_text_is_a_need_or_an_input_error(text: str) -> None:
    try:
        need = parse_need(text)
    except InputError:
        return
    assert parse_need(str(need)) == need


@given(st.text(max_size=20) | st.text("rckzt0123456789+-*/%(), min", max_size=20))
def test_any_text_is_an_expression_or_an_input_error(text: str) -> None:
    try:
        expr = parse_expr(text)
    except InputError:
        return
    assert parse_expr(str(expr)) == expr


@pytest.mark.parametrize("program", [contract_program(), toml_program()])
def test_the_fixtures_have_what_they_promise(program: Program) -> None:
    heights = {kernel.tile[0] for kernel in program.kernels}
    fan_in: dict[str, int] = {}
    for dep in dependences(program):
        fan_in[dep.consumer] = fan_in.get(dep.consumer, 0) + 1
    assert len(program.kernels) >= 3
    assert len(heights) > 1
    assert max(fan_in.values()) == 2
