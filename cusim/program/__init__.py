"""The program room: kernels, buffers and accesses, what depends on what, and programs as TOML and JSON."""

from cusim.program.buffer import Access, Buffer
from cusim.program.build import gemm_kernel, tile_kernel
from cusim.program.depends import Hazard, TileDep, TileSpan, dependences, hazards
from cusim.program.kernel import BlockResources, Gemm, Kernel, Measured, Stream
from cusim.program.program import Program
from cusim.program.segments import Segment, Segments, segments
from cusim.program.serial import program_from_json, program_to_json
from cusim.program.toml_read import load_program, parse_program
from cusim.program.toml_write import program_to_toml

__all__ = [
    "Access",
    "BlockResources",
    "Buffer",
    "Gemm",
    "Hazard",
    "Kernel",
    "Measured",
    "Program",
    "Segment",
    "Segments",
    "Stream",
    "TileDep",
    "TileSpan",
    "dependences",
    "gemm_kernel",
    "hazards",
    "load_program",
    "parse_program",
    "program_from_json",
    "program_to_json",
    "program_to_toml",
    "segments",
    "tile_kernel",
]
