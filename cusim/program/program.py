"""Programs: kernels in issue order, with the buffers that connect them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from cusim.errors import Problems
from cusim.program.buffer import Buffer
from cusim.program.encode import parts_to_json
from cusim.program.kernel import Kernel

#: Most thread blocks of a program: simulating one takes about half a KiB, so these take a GiB, as much as a laptop has.
MOST_BLOCKS = 2**21
#: Most k steps of a tile; k = 2**26 in steps of 64.
MOST_STEPS = 2**20
#: Most tiles x k steps at which one expression is evaluated: 128 MiB of integers.
MOST_PLACES = 2**24

_TOO_MANY = f"at most {MOST_BLOCKS} are simulated, which takes about a GiB: take larger tiles or a smaller problem"


@dataclass(frozen=True)
class Program:
    """Kernels in the order in which the host issues them, and their buffers (schema ``cusim.program/1``).

    Raises InputError, with every mistake at once, for names that repeat, grids and tiles that are not positive, and
    accesses to buffers that do not exist.
    """

    kernels: tuple[Kernel, ...]
    buffers: tuple[Buffer, ...]
    seed: int = 0
    name: str = "program"

    def __post_init__(self) -> None:
        problems = Problems(self.name)
        _check_names(self, problems)
        for position, kernel in enumerate(self.kernels):
            check_kernel(kernel, f"kernel[{position}]", {b.name for b in self.buffers}, problems)
        problems.raise_if_any()
        blocks = sum(kernel.blocks for kernel in self.kernels)
        if blocks > MOST_BLOCKS:
            problems.add("kernel", None, f"all kernels together have {blocks} blocks; {_TOO_MANY}")
        problems.raise_if_any()

    def __hash__(self) -> int:
        return hash(self.digest)  # worked out once; the contents are hundreds of expressions

    def kernel(self, name: str) -> Kernel:
        """The kernel of that name; KeyError if there is none."""
        return self.kernels[self.position(name)]

    def position(self, name: str) -> int:
        """Place of the kernel in issue order; KeyError if there is none."""
        for position, kernel in enumerate(self.kernels):
            if kernel.name == name:
                return position
        raise KeyError(name)

    def buffer(self, name: str) -> Buffer:
        """The buffer of that name; KeyError if there is none."""
        for buffer in self.buffers:
            if buffer.name == name:
                return buffer
        raise KeyError(name)

    @cached_property
    def digest(self) -> str:
        """Twelve hex digits that name the contents; equal programs have equal digests."""
        text = json.dumps(parts_to_json(self.name, self.seed, self.buffers, self.kernels), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def _check_names(program: Program, problems: Problems) -> None:
    if not program.kernels:
        problems.add("kernel", None, "a program needs at least one kernel")
    for label, names in (
        ("kernel", [kernel.name for kernel in program.kernels]),
        ("buffer", [buffer.name for buffer in program.buffers]),
    ):
        for position, name in enumerate(names):
            if name in names[:position]:
                problems.add(f"{label}[{position}].name", name, f"an earlier {label} has this name")
    for position, buffer in enumerate(program.buffers):
        if min(buffer.rows, buffer.cols, buffer.elem_bytes) < 1:
            problems.add(f"buffer[{position}]", buffer.name, "rows, cols and elem_bytes must be 1 or more")


def check_kernel(kernel: Kernel, key: str, buffers: Collection[str], problems: Problems) -> None:
    """Records what no program allows of a kernel: sizes that are not positive, empty slices, unknown buffers."""
    sizes = {"grid": kernel.grid, "tile": kernel.tile, "steps": (kernel.steps,), "stages": (kernel.stages,)}
    for field, values in sizes.items():
        if min(values) < 1:
            shown = list(values) if len(values) > 1 else values[0]
            problems.add(f"{key}.{field}", shown, "must be 1 or more")
    block = kernel.block
    for field, value in (
        ("threads", block.threads),
        ("registers", block.registers),
        ("cluster", block.cluster),
    ):
        if value < 1:
            problems.add(f"{key}.block.{field}", value, "must be 1 or more")
    if block.smem_bytes < 0:
        problems.add(f"{key}.block.smem_bytes", block.smem_bytes, "must be 0 or more")
    if min(kernel.grid) >= 1 and kernel.blocks > MOST_BLOCKS:
        problems.add(f"{key}.grid", list(kernel.grid), f"has {kernel.blocks} blocks; {_TOO_MANY}")
    if kernel.steps > MOST_STEPS:
        why = f"too many k steps of a tile: at most {MOST_STEPS} are simulated; take a larger tile k"
        problems.add(f"{key}.steps", kernel.steps, why)
    slices, steps = kernel.grid[2], kernel.steps
    if min(slices, steps) >= 1 and (slices - 1) * kernel.slice_steps >= steps:
        why = f"the last slice is left without work: {steps} k steps in slices of {kernel.slice_steps}"
        problems.add(f"{key}.split_k", slices, why)
    for access in (*kernel.reads, *kernel.writes):
        if access.buffer not in buffers:
            problems.add(f"{key}.accesses", access.buffer, "no buffer has this name")
