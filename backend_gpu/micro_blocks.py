"""Micro-benchmarks of a GEMM's blocks: what tickets, waits that are already satisfied, and posts add to each.

Two chained products run one after the other in one stream, with the semaphores of a policy all the same: when the
second begins, everything has been posted. What its blocks' stamps differ by from those of a run without semaphores is
the semaphores' own cost.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend_gpu.abi import STAMPS
from backend_gpu.bench import Bench as Products
from backend_gpu.bench import Mode
from backend_gpu.launch import Start
from backend_gpu.micro_device import Bench
from cusim.policies.registry import build_plan
from cusim.workloads import build_workload

_ROWS, _ORDER, _RUNS = 1024, "group:2", 9

#: What is compared, with that of blocks that neither take tickets nor wait.
_HOW = {
    "ticket": "block start to its ticket, beyond that of blocks that take none",
    "first_wait": "ticket to first load with everything posted, beyond that of blocks without waits",
    "work": "first load to end with everything posted, beyond that of blocks without waits",
}

Times = dict[str, NDArray[np.float64]]


def blocks(b: Bench) -> None:
    """A block's way to its first load, and what each policy's signals cost where nobody has to wait."""
    plain = {"producer": _times(b, "stream", 0), "consumer": _times(b, "stream", 1)}
    starts = plain["producer"]["ready"] + plain["producer"]["loads"]
    b.found.add("block_first_load", "ns", "block start to its first load, no ticket and no wait", starts.tolist())
    for policy in ("row", "tile"):
        first, second = _times(b, policy, 0), _times(b, policy, 1)
        for name, part, found, without in (
            ("ticket", "ready", first, plain["producer"]),
            ("first_wait", "loads", second, plain["consumer"]),
            ("work", "work", second, plain["consumer"]),
        ):
            beyond = (found[part] - np.median(without[part])).tolist()
            how = f"{_HOW[name]}; medians over blocks, {_RUNS} runs"
            b.found.add(f"block_{name}_{policy}", "ns", how, beyond)
        b.found.add(f"block_post_{policy}", "ns", "end of a block to its posts' leaving", first["posts"].tolist())


def _times(b: Bench, policy: str, number: int) -> Times:
    """Medians over the blocks of kernel *number*, a run each, ns: start to ready, to first load, to end, to posted."""
    workload = build_workload("gpt3-mlp", "h200", m=_ROWS)
    choice = workload.choice(policy)
    flags = "" if policy == "stream" else choice.flags
    plan = build_plan(choice.program, policy=policy, order=_ORDER, flags=flags)
    products = Products(b.device, choice.program, plan)
    commands: Any = products.commands(0, Mode(stamped=True), (Start(0, 0), Start(1, 0)))
    products.run(commands)
    found: dict[str, list[float]] = {"ready": [], "loads": [], "work": [], "posts": []}
    for _ in range(_RUNS):
        products.timed(commands)
        rows = b.device.to_host(products.stamps[number]).view(STAMPS)
        at = {name: rows[name].astype(np.int64) for name in ("placed", "ready", "first_load", "end", "posted")}
        for name, (start, end) in _PARTS.items():
            found[name].append(float(np.median(at[end] - at[start])))
    return {name: np.array(values) for name, values in found.items()}


_PARTS = {
    "ready": ("placed", "ready"), "loads": ("ready", "first_load"), "work": ("first_load", "end"),
    "posts": ("end", "posted"),
}  # fmt: skip
