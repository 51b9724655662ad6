"""Small programs and plans for the GPU backend's tests, and one way to set them up on the null device."""

from __future__ import annotations

from backend_gpu.bench import Bench
from backend_gpu.null_device import NullDevice
from cusim.policies.plan import Plan
from cusim.policies.registry import build_plan
from cusim.program.build import gemm_kernel
from cusim.program.kernel import BlockResources, Gemm
from cusim.program.program import Program

#: Two of these fit an SM.
BLOCK = BlockResources(256, 128, 100 * 1024)
#: What a plan may be made of: policy and launch.
PLANS = (
    ("stream", None), ("stream", "graph"), ("stream", "pdl"), ("row", "wait-first"), ("row", "wait-all"),
    ("row", "pdl"), ("tile", "wait-value"), ("tile", "none"), ("tile", "pdl"), ("batched:2", "wait-first"),
)  # fmt: skip


def pair(*, split: int = 1, dtype: str = "fp16", swiglu: bool = False) -> Program:
    """``up`` (3 x 4 tiles, with GeLU) and ``down`` (3 x 5 tiles), which reads its rows; sizes that no tile divides."""
    wide = 250 if swiglu else 125
    up, up_buffers = gemm_kernel(
        "up", Gemm(90, wide, 64, dtype, epilogue="none" if swiglu else "gelu"), (32, 32, 16), BLOCK, split_k=split
    )  # fmt: skip
    down, down_buffers = gemm_kernel(
        "down", Gemm(90, 150, 125, dtype, prologue="swiglu" if swiglu else "none"), (32, 32, 16), BLOCK, a="up"
    )  # fmt: skip
    return Program((up, down), up_buffers + down_buffers, name="pair")


def plan_of(program: Program, policy: str, launch: str | None = None, *, order: str = "row", flags: str = "") -> Plan:
    """The plan of the command line's words."""
    return build_plan(program, policy=policy, launch=launch, order=order, flags=flags)


def bench_of(program: Program, plan: Plan, *, sms: int = 4) -> Bench:
    """The program set up on a null device of *sms* SMs, two blocks each."""
    return Bench(NullDevice(sms), program, plan, budget_ns=1_000_000)
