"""The MLP blocks of GPT-3 and LLaMA: two dependent GEMMs, tensor parallel over 8 GPUs (cuSync Fig. 2, Table II)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cusim.program.build import gemm_kernel
from cusim.program.kernel import Gemm
from cusim.program.program import Program
from cusim.workloads.blocks import Architecture, Tiling, block_of


@dataclass(frozen=True, slots=True)
class Mlp:
    """An MLP whose ``up`` GEMM is m x *up_n* x *hidden* and whose ``down`` GEMM is m x *hidden* x *down_k*."""

    name: str
    hidden: int
    up_n: int
    down_k: int
    swiglu: bool
    source: str

    def gemms(self, m: int) -> tuple[Gemm, Gemm]:
        """Both GEMMs for *m* rows; GPT-3 applies GeLU when up ends, LLaMA SwiGLU when down loads its operand."""
        up = Gemm(m, self.up_n, self.hidden, epilogue="none" if self.swiglu else "gelu")
        return up, Gemm(m, self.hidden, self.down_k, prologue="swiglu" if self.swiglu else "none")

    def program(self, m: int, tilings: Sequence[Tiling], rule: Architecture) -> Program:
        """The program for *m* rows, each GEMM cut by its tiling, blocks by the architecture's rule."""
        (up, up_tiling), (down, down_tiling) = zip(self.gemms(m), tilings, strict=True)
        first, first_buffers = gemm_kernel(
            "up", up, up_tiling.tile, block_of(up, up_tiling, rule),
            split_k=up_tiling.split_k, stages=up_tiling.stages,
        )  # fmt: skip
        second, second_buffers = gemm_kernel(
            "down", down, down_tiling.tile, block_of(down, down_tiling, rule), a="up",
            split_k=down_tiling.split_k, stages=down_tiling.stages,
        )  # fmt: skip
        return Program((first, second), first_buffers + second_buffers, name=self.name)


MLPS = {
    mlp.name: mlp
    for mlp in (
        Mlp("gpt3-mlp", 12288, 6144, 6144, False, "GPT-3 175B, H = 12288, tensor parallel 8 (cuSync Table II)"),
        Mlp("llama-mlp", 8192, 5632, 2816, True, "LLaMA 65B, H = 8192, tensor parallel 8 (cuSync Table II)"),
    )
}
