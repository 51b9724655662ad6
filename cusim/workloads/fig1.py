"""The example of cuSync's Fig. 1: two GEMMs of six tiles on four SMs, 4 rounds in stream order and 3 by tiles."""

from __future__ import annotations

from cusim.program.build import gemm_kernel
from cusim.program.kernel import BlockResources, Gemm
from cusim.program.program import Program
from cusim.workloads.workload import Choice, Workload

NAME = "cusync-fig1"
SOURCE = "cuSync Fig. 1: C (12 x 8) = A x B and E = C x D in tiles of 4 x 4; every extent times 64"
#: The figure's elements stand for this many: its grids and waits stay, and a tile outlasts the latencies around it.
SCALE = 64
#: All registers of an SM, so that one block fits, on any GPU since Volta.
BLOCK = BlockResources(threads=256, registers=255, smem_bytes=64 * 1024)
_TILE = (4 * SCALE, 4 * SCALE, 32)


def fig1_program() -> Program:
    """C and E, grids 3 x 2: a tile of E reads the two tiles of C in its row, so 12 waits by tile and 6 by row."""
    rows, cols = 12 * SCALE, 8 * SCALE
    first, first_buffers = gemm_kernel("c", Gemm(rows, cols, cols), _TILE, BLOCK, stages=2)
    second, second_buffers = gemm_kernel("e", Gemm(rows, cols, cols), _TILE, BLOCK, a="c", stages=2)
    return Program((first, second), first_buffers + second_buffers, name=NAME)


def fig1_workload(machine: str) -> Workload:
    """Fig. 1 for any machine, cut down to four SMs."""
    program = fig1_program()
    flags = {"stream": "", "row": "", "tile": "R"}
    choices = {policy: Choice(program, letters, "row", SOURCE) for policy, letters in flags.items()}
    return Workload(NAME, machine, 12 * SCALE, choices, ("machine.sms=4",), SOURCE)
