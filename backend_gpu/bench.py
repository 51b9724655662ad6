"""A program set up on a device: kernels loaded, every buffer allocated and filled, semaphores and counters at zero.

Counters only grow, so a bench is run again and again without clearing; after a fault it must be reset.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend_gpu.abi import FAULT, PARAMS, STAMPS, KernelFlag
from backend_gpu.device import Commands, Device, Job
from backend_gpu.elements import STORED, fill_nan, random_matrix
from backend_gpu.launch import Step, steps_of
from cusim.policies.plan import Plan
from cusim.program.build import operand_columns
from cusim.program.depends import TileDep, dependences
from cusim.program.kernel import Gemm, Kernel
from cusim.program.program import Program

#: Input sets that timed runs alternate between, so that a stale result is seen.
SETS = 2
#: Words between counters: each has a cache line of its own.
_LINE = 32
#: Elements that a row of a matrix is a multiple of in memory; what pads it is NaN.
_PITCH = 8
_SPIN_BUDGET_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Mode:
    """How a run differs from a plain one: *stamped*; and for check runs tickets taken in *reverse* and every tile
    posted up to *delay_ns* late, by random numbers from *seed*.
    """

    stamped: bool = False
    reverse: bool = False
    delay_ns: int = 0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Fault:
    """A run that was given up: what a block waited for when its time ran out, in the abi's numbers and in words."""

    kind: int
    kernel: int
    block: int
    slot: int
    index: int
    value: int
    target: int
    text: str


class Bench:
    """See the module. *budget_ns* is how long a block may wait for anything before the run is given up."""

    def __init__(
        self, device: Device, program: Program, plan: Plan, *, seed: int = 0, budget_ns: int = _SPIN_BUDGET_NS
    ) -> None:
        self.device, self.program, self.plan, self.budget_ns = device, program, plan, budget_ns
        self.deps: tuple[TileDep, ...] = dependences(program) if plan.overlapped else ()
        self.loaded = device.load(program, plan)
        self.epoch = 0
        kernels = program.kernels
        self._words = device.zeros(_LINE * (2 + 2 * len(kernels)), np.uint32)
        self._semaphores = [device.zeros(plan.sync[dep.name].size(dep), np.uint32) for dep in self.deps]
        self.stamps = [device.zeros(kernel.blocks * STAMPS.itemsize // 8, np.uint64) for kernel in kernels]
        split = [kernel.grid[2] > 1 for kernel in kernels]
        self._arrivals = [
            device.zeros(k.output_tiles if z else 1, np.uint32) for k, z in zip(kernels, split, strict=True)
        ]
        self._partials = [
            device.zeros(k.blocks * k.tile[0] * k.tile[1] if z else 1, np.float32)
            for k, z in zip(kernels, split, strict=True)
        ]
        self.produced = {write.buffer for kernel in kernels for write in kernel.writes}
        self.buffers = [self._fill(seed + number) for number in range(SETS)]
        self._empty = device.empty(self._job(0, Mode(), None))

    def commands(self, number: int, mode: Mode, steps: Sequence[Step] | None = None) -> Commands:
        """The run over input set *number*, prepared; *steps* replaces the plan's own."""
        return self.device.commands(self._job(number, mode, steps))

    def run(self, commands: Commands) -> Fault | None:
        """One epoch; what went wrong, if anything did."""
        self.epoch += 1
        commands.issue(self.epoch)
        return self.fault()

    def timed(self, commands: Commands) -> int:
        """One epoch, in picoseconds from event to event."""
        self.epoch += 1
        return commands.timed(self.epoch)

    def empty_ps(self) -> int:
        """The same of a program without kernels; no epoch passes."""
        return self._empty.timed(0)

    def spoil(self, number: int) -> None:
        """Fills everything that kernels write with NaN."""
        for name in self.produced:
            fill_nan(self.buffers[number][name], self.dtype_of(name))

    def reset(self) -> None:
        """Counters and semaphores back to zero: the next run is epoch 1 again."""
        self.epoch = 0
        for array in (self._words, *self._semaphores, *self._arrivals):
            array.fill(0)

    def fault(self) -> Fault | None:
        """What the fault record holds."""
        row = self.device.to_host(self._words[: FAULT.itemsize // 4]).view(FAULT)[0]
        if not row["abort"]:
            return None
        kind, kernel, block, slot, index, value, target = (int(row[name]) for name in FAULT.names[1:])  # type: ignore[index]
        return Fault(
            kind, kernel, block, slot, index, value, target, self._told(kind, kernel, block, slot, index, value, target)
        )

    def dtype_of(self, buffer: str) -> str:
        """The element type of a buffer: that of the first matrix product that touches it."""
        for kernel in self.program.kernels:
            names = {access.buffer for access in (*kernel.reads, *kernel.writes)}
            if buffer in names and kernel.gemm is not None:
                return kernel.gemm.dtype
        raise KeyError(buffer)

    def _told(self, kind: int, kernel: int, block: int, slot: int, index: int, value: int, target: int) -> str:
        names = [k.name for k in self.program.kernels]
        who = f"block {block} of {names[kernel]}" if kernel < len(names) else "a wait-kernel"
        if kind == 1 and kernel < len(names):
            incoming = [dep for dep in self.deps if dep.consumer == names[kernel]]
            what = incoming[slot].name if slot < len(incoming) else f"dependence {slot}"
            # Counters grow from run to run: the figures are of this run alone.
            missing = (target - value) & 0xFFFFFFFF
            return f"{who} waits for semaphore {index} of {what}, which lacks {missing} of its posts"
        if kind == 3:
            return f"a wait-kernel waits for {(target - value) & 0xFFFFFFFF} more blocks of {names[kernel]} to start"
        return f"{who} waits inside its pipeline"

    def _job(self, number: int, mode: Mode, steps: Sequence[Step] | None) -> Job:
        own = steps_of(self.program, self.plan)
        return Job(
            self.program, self.plan, own if steps is None else tuple(steps), self.loaded, self._params(number, mode),
            self._word(1), [self._word(2 + 2 * place + 1) for place in range(len(self.loaded))], self._word(0),
            self.budget_ns, graph=self.plan.launch == "graph" and steps is None,
        )  # fmt: skip

    def _word(self, line: int) -> int:
        return self.device.address(self._words) + 4 * _LINE * line

    def _fill(self, seed: int) -> dict[str, Any]:
        """The buffers of one input set: random where kernels only read, NaN where they write."""
        found: dict[str, Any] = {}
        scales = {
            access.buffer: _scale(kernel, access.buffer) for kernel in self.program.kernels for access in kernel.reads
        }
        for place, buffer in enumerate(self.program.buffers):
            shape, dtype = (buffer.rows, buffer.cols), self.dtype_of(buffer.name)
            held = self.device.zeros((buffer.rows, pitch(buffer.cols)), STORED[dtype])
            fill_nan(held, dtype)
            found[buffer.name] = held[:, : buffer.cols]
            if buffer.name not in self.produced:
                scale = scales.get(buffer.name, 1.0)
                found[buffer.name][:] = random_matrix(self.device.xp, shape, scale, dtype, seed * 1000 + place)
        return found

    def _params(self, number: int, mode: Mode) -> NDArray[np.void]:
        rows = np.zeros(len(self.program.kernels), PARAMS)
        for place, kernel in enumerate(self.program.kernels):
            self._operands(rows[place], kernel, number)
            self._signals(rows[place], place, mode)
        return rows

    def _operands(self, row: Any, kernel: Kernel, number: int) -> None:
        gemm = gemm_of(kernel)
        buffers, at = self.buffers[number], self.device.address
        a, b, c = operands(kernel)
        row["a"], row["b"], row["c"] = (at(buffers[name]) for name in (a, b, c))
        row["m"], row["n"], row["k"] = gemm.m, gemm.n, gemm.k
        row["lda"], row["ldb"], row["ldc"] = pitch(operand_columns(gemm)), pitch(gemm.n), pitch(gemm.n)

    def _signals(self, row: Any, place: int, mode: Mode) -> None:
        kernel, at = self.program.kernels[place], self.device.address
        for side, end in (("sem_in", "consumer"), ("sem_out", "producer")):
            mine = [s for dep, s in zip(self.deps, self._semaphores, strict=True) if getattr(dep, end) == kernel.name]
            for slot, semaphores in enumerate(mine):
                row[side][slot] = at(semaphores)
        split = kernel.grid[2] > 1
        row["arrivals"] = at(self._arrivals[place]) if split else 0
        row["partials"] = at(self._partials[place]) if split else 0
        row["fault"], row["epoch"] = self._word(0), self._word(1)
        row["tickets"], row["started"] = self._word(2 + 2 * place), self._word(3 + 2 * place)
        row["stamps"] = at(self.stamps[place]) if mode.stamped else 0
        row["spin_budget_ns"], row["kernel_id"] = self.budget_ns, place
        row["delay_seed"], row["delay_max_ns"] = mode.seed, mode.delay_ns
        row["flags"] = int(self._flags(place) | (KernelFlag.REVERSE if mode.reverse else KernelFlag(0)))

    def _flags(self, place: int) -> KernelFlag:
        plan, name = self.plan, self.program.kernels[place].name
        chosen = plan.flags_of(name)
        synced = any(name in (dep.producer, dep.consumer) for dep in self.deps)
        early = plan.launch == "pdl"
        wait = KernelFlag.PDL_WAIT_END if plan.overlapped else KernelFlag.PDL_WAIT_START
        bits = {
            KernelFlag.REORDER: chosen.R,
            KernelFlag.TICKETED: synced and not chosen.T,
            KernelFlag.STORE_POST: chosen.A and synced,
            KernelFlag.PDL_TRIGGER: early and place < len(self.program.kernels) - 1,
            wait: early and place > 0,
        }
        found = KernelFlag(0)
        for bit, given in bits.items():
            found |= bit if given else KernelFlag(0)
        return found


def pitch(cols: int) -> int:
    """Elements from one row of a matrix to the next."""
    return -(-cols // _PITCH) * _PITCH


def gemm_of(kernel: Kernel) -> Gemm:
    """The kernel's matrix product; every kernel that a device has code for is one."""
    assert kernel.gemm is not None
    return kernel.gemm


def operands(kernel: Kernel) -> tuple[str, str, str]:
    """The names of the buffers that are operands A and B and the result of a matrix product."""
    return kernel.reads[0].buffer, _second(kernel), kernel.writes[0].buffer


def _second(kernel: Kernel) -> str:
    """Operand B: the read that is neither operand A nor one of the extra needs, ``<kernel>.b``."""
    return f"{kernel.name}.b"


def _scale(kernel: Kernel, buffer: str) -> float:
    """Standard deviation of an input, so that results stay near 1 however long the sum."""
    return float(gemm_of(kernel).k) ** -0.5 if buffer == _second(kernel) else 1.0
