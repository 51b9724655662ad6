"""Every kernel compiles to a cubin for its architecture, within its registers and without spills."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from backend_gpu import build as building
from backend_gpu.abi import FAULT, PARAMS, STAMPS, TENSOR_MAP, KernelFlag
from backend_gpu.bind import Bound, bind, glue
from backend_gpu.build import (
    BuildError,
    Resources,
    build,
    build_launchers,
    compile_source,
    find_compiler,
    parse_resources,
)
from backend_gpu.shapes import Shape, shape_of, tiles
from cusim.errors import InputError
from cusim.policies.plan import Plan
from cusim.policies.registry import build_plan
from cusim.program.build import gemm_kernel
from cusim.program.kernel import BlockResources, Gemm
from cusim.program.program import Program

BLOCK = BlockResources(384, 168, 1024)
STAGES = {
    "64x64x64": 6,
    "64x128x64": 4,
    "64x192x64": 5,
    "64x256x64": 5,
    "128x64x64": 6,
    "128x128x64": 6,
    "128x192x64": 5,
    "128x256x64": 4,
    "192x64x64": 5,
    "192x128x64": 5,
    "192x192x64": 4,
    "256x64x64": 4,
    "256x128x64": 4,
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """NVRTC, with a cache folder of the tests' own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(building.CACHE_VARIABLE, str(tmp_path_factory.mktemp("cubins")))
        try:
            find_compiler()
        except BuildError as error:
            pytest.skip(f"the kernels cannot be compiled here: {error}")
        yield


def chain(
    tile: tuple[int, int, int],
    stages: int,
    *,
    split: int = 1,
    swiglu: bool = False,
    dtype: str = "fp16",
    persistent: bool = False,
) -> Program:
    first = Gemm(1000, 2048, 512, dtype, epilogue="none" if swiglu else "gelu")
    second = Gemm(1000, 768, 1024 if swiglu else 2048, dtype, prologue="swiglu" if swiglu else "none")
    up, buffers = gemm_kernel("up", first, tile, BLOCK, split_k=split, stages=stages)
    down, more = gemm_kernel("down", second, tile, BLOCK, a="up", split_k=split, stages=stages)
    kernels = tuple(dataclasses.replace(kernel, persistent=persistent) for kernel in (up, down))
    return Program(kernels, buffers + more, name="chain")


def tile_of(text: str) -> tuple[int, int, int]:
    rows, cols, depth = map(int, text.split("x"))
    return rows, cols, depth


def forms(family: str, tile: str) -> list[tuple[Program, str]]:
    """The forms of a tile that put most on registers: split-K and waits, a persistent block, SwiGLU in bf16."""
    stages = STAGES[tile] if family == "wgmma" else 3
    few = max(2, stages // 2) if family == "wgmma" else 2
    size = tile_of(tile)
    return [
        (chain(size, stages, split=2), "down"),
        (chain(size, stages, persistent=True), "up"),
        (chain(size, few, swiglu=True, dtype="bf16"), "down"),
    ]


@pytest.mark.parametrize(
    ("family", "arch", "tile"),
    [
        *(("wgmma", "sm_90a", tile) for tile in tiles("wgmma")),
        *(("mma", "sm_80", tile) for tile in tiles("mma")),
    ],
)
def test_kernels_compile_without_spills(kept: None, family: str, arch: str, tile: str) -> None:
    for program, name in forms(family, tile):
        plan = build_plan(program, policy="tile", order="group:2", flags="R")
        bound = bind(program, plan, name, arch=arch)
        built = build(bound)
        found = built.resources[bound.function]
        assert built.cubin[:4] == b"\x7fELF"
        assert (found.spill_bytes, found.stack_bytes, found.shared_bytes) == (0, 0, 0), built.log
        assert found.registers * bound.shape.threads <= 65536
        assert "warning" not in built.log
        assert bound.shape.shared_bytes <= (232448 if family == "wgmma" else 166912)


def test_small_kernels_compile(kept: None) -> None:
    for arch in ("sm_80", "sm_90a"):
        found = build_launchers(arch).resources
        assert sorted(found) == ["cusim_busy", "cusim_next_epoch", "cusim_wait_started"]
        assert all(resources.spill_bytes == 0 for resources in found.values())


def test_a_cubin_is_kept_and_a_broken_one_is_made_again(
    kept: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(building.CACHE_VARIABLE, str(tmp_path))
    source = 'extern "C" __global__ void fresh(int* x) { *x = 7; }\n'
    built = compile_source(source, "sm_80")
    (cubin,) = tmp_path.glob("*.cubin")
    assert cubin.read_bytes() == built.cubin
    building._compiled.cache_clear()
    assert compile_source(source, "sm_80") == built
    cubin.write_bytes(b"not a cubin")
    building._compiled.cache_clear()
    assert compile_source(source, "sm_80").cubin == built.cubin
    assert len(list(tmp_path.iterdir())) == 2


def test_what_does_not_compile_is_said_with_the_log(kept: None) -> None:
    with pytest.raises(BuildError, match=r"does not compile for sm_80(?s:.)*nothing_like_it"):
        compile_source('extern "C" __global__ void f() { nothing_like_it(); }', "sm_80")


def test_the_report_of_the_assembler_is_read() -> None:
    log = """ptxas info    : Compiling entry function 'one' for 'sm_90a'
ptxas info    : Function properties for one
    24 bytes stack frame, 20 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 168 registers, used 1 barriers, 24 bytes cumulative stack size, 96 bytes smem
ptxas info    : Compiling entry function 'two' for 'sm_90a'
ptxas info    : Function properties for two
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers
"""
    assert parse_resources(log) == {"one": Resources(168, 32, 24, 96), "two": Resources(8, 0, 0, 0)}


def test_parameters_have_the_sizes_that_both_sides_assert() -> None:
    text = (Path(building.__file__).parent / "kernels" / "params.cuh").read_text(encoding="utf-8")
    assert f"sizeof(CusimParams) == {PARAMS.itemsize}" in text
    assert f"sizeof(CusimFault) == {FAULT.itemsize}" in text
    assert STAMPS.itemsize == 8 * 8
    assert TENSOR_MAP.itemsize == 128
    for flag in KernelFlag:
        assert f"CUSIM_{flag.name} = {flag.value}" in text, flag


def test_inline_ptx_stays_in_its_files() -> None:
    for name, text in building.kernel_sources().items():
        if not name.startswith("ptx"):
            assert "asm" not in text, name
            assert "threadIdx" not in text, name


def bound_of(policy: str, name: str, flags: str = "") -> Bound:
    program = chain((128, 128, 64), 4, split=2)
    return bind(program, build_plan(program, policy=policy, flags=flags), name)


def test_binding_names_semaphores_and_buffers() -> None:
    up, down = bound_of("tile", "up", "RA"), bound_of("tile", "down")
    assert [(slot.name, slot.semaphores) for slot in up.outgoing] == [("up>down", 8 * 16)]
    assert up.outgoing == down.incoming
    assert up.incoming == down.outgoing == ()
    assert up.flags == KernelFlag.TICKETED | KernelFlag.REORDER | KernelFlag.STORE_POST
    assert (up.tickets, up.slices, up.arrivals, up.partial_floats) == (256, 2, 128, 256 * 128 * 128)
    assert up.function == "cusim_up"
    assert up.tensor_maps


def test_a_stream_plan_binds_no_semaphores() -> None:
    program = chain((128, 128, 64), 4)
    text = glue(program, Plan(), "down")
    assert "fixed_waits = 0, step_waits = 0, posts = 0" in text
    assert bind(program, Plan(), "down").incoming == ()


def test_semaphores_of_unequal_totals_get_a_table() -> None:
    program = chain((128, 128, 64), 4)
    text = glue(program, build_plan(program, policy="batched:3"), "down")
    assert "cusim_totals_0[3] = {48, 48, 32};" in text


@pytest.mark.parametrize(
    ("tile", "stages", "why"),
    [
        ((96, 128, 64), 4, "no wgmma kernel; allowed: 64x64x64"),
        ((128, 128, 32), 4, "no wgmma kernel"),
        ((256, 256, 64), 3, "no wgmma kernel"),
        ((128, 256, 64), 5, "allowed: 2 to 4"),
    ],
)
def test_tiles_without_a_kernel_are_refused(tile: tuple[int, int, int], stages: int, why: str) -> None:
    with pytest.raises(InputError, match=why):
        shape_of(chain(tile, stages).kernels[0], "sm_90a")


def test_a_type_without_a_kernel_and_a_wrong_name_are_refused() -> None:
    program = chain((128, 128, 64), 4, dtype="fp32")
    with pytest.raises(InputError, match="allowed on a GPU: fp16, bf16"):
        bind(program, Plan(), "up")
    with pytest.raises(InputError, match="allowed: up, down"):
        bind(program, Plan(), "left")


def test_threads_and_shared_memory_follow_from_the_shape() -> None:
    assert Shape("wgmma", (128, 256), 4, (2,)).threads == 384
    assert Shape("wgmma", (128, 256), 4, (2,)).shared_bytes == 4 * 48 * 1024 + 1536
    assert Shape("wgmma", (128, 256), 3, (2,), 2).shared_bytes == 3 * 64 * 1024 + 1536
    assert Shape("mma", (128, 128), 4, (64, 32)).threads == 256
