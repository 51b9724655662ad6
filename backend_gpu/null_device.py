"""A device without a GPU: the whole path from plan to trace, computed by numpy on a clock that is made up.

Its times mean nothing. Its numbers do: they come out right only if the plan waits for what it reads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend_gpu.abi import FAULT, FaultKind
from backend_gpu.device import Commands, Facts, Job, Loaded
from backend_gpu.null_block import WORD, Code, block_routine, words_at
from backend_gpu.null_run import Clock, Run, Waiting, stuck
from cusim.machine.load import load_machine
from cusim.machine.occupancy import occupancy
from cusim.policies.plan import Plan
from cusim.program.kernel import Kernel
from cusim.program.program import Program

_PS_PER_NS = 1000
#: What the null device takes a block's needs to an SM from.
MACHINE = "h200"


class NullDevice:
    """*sms* SMs that hold as many blocks as those of an H200."""

    xp: Any = np

    def __init__(self, sms: int = 4) -> None:
        self._machine = load_machine(MACHINE)
        self._memory: dict[int, NDArray[Any]] = {}
        self.facts = Facts(
            "null", "null device (no GPU, times made up)", sms, self._machine.limits.warps_per_sm, self._machine.arch,
            0, 1, {"driver": None, "cupy": None},
        )  # fmt: skip

    def zeros(self, shape: int | tuple[int, ...], dtype: Any) -> NDArray[Any]:
        return self._known(np.zeros(shape, dtype))

    def address(self, array: NDArray[Any]) -> int:
        return self._known(array).ctypes.data

    def to_host(self, array: NDArray[Any]) -> NDArray[Any]:
        return array.copy()

    def why_not(self, program: Program, kernel: Kernel) -> str | None:
        return None if kernel.gemm is not None else "the null device multiplies matrices only"

    def load(self, program: Program, plan: Plan) -> tuple[Loaded, ...]:
        return tuple(self._load(kernel) for kernel in program.kernels)

    def commands(self, job: Job) -> Commands:
        return NullCommands(job, self._memory, self.facts.sms)

    def empty(self, job: Job) -> Commands:
        return NullCommands(None, self._memory, self.facts.sms)

    def _load(self, kernel: Kernel) -> Loaded:
        block = kernel.block
        fits = occupancy(self._machine, block.threads, block.registers, block.smem_bytes, block.cluster)
        return Loaded(
            kernel.name, kernel.blocks, block.threads, block.registers, block.smem_bytes, max(1, fits.blocks_per_sm)
        )  # fmt: skip

    def _known(self, array: NDArray[Any]) -> NDArray[Any]:
        self._memory[array.ctypes.data] = array
        return array


class NullCommands:
    """A run prepared for the null device."""

    def __init__(self, job: Job | None, memory: dict[int, NDArray[Any]], sms: int) -> None:
        self._job, self._memory, self._sms = job, memory, sms

    def issue(self, epoch: int) -> None:
        """Runs to the end, or to where nothing moves; the fault record then says what was waited for."""
        self.timed(epoch)

    def timed(self, epoch: int) -> int:
        """The made-up time of the run in picoseconds."""
        job = self._job
        if job is None:
            return 0
        words_at(self._memory, job.epoch_address)[0] = epoch & WORD
        codes = [Code(job, number, self._memory) for number in range(len(job.loaded))]
        stamps = [self._memory.get(int(row["stamps"])) if row["stamps"] else None for row in job.params]
        clock = Clock()
        clock.now = 1_000_000 * epoch
        begun = clock.now

        def started(number: int) -> int:
            value = int(words_at(self._memory, job.started_addresses[number])[0])
            return (value - (epoch - 1) * job.loaded[number].grid) & WORD

        run = Run(
            clock, job, self._sms,
            lambda grid, block, sm: block_routine(
                codes[grid.number], clock, epoch, grid, block, sm, stamps[grid.number]
            ),
            started,
        )  # fmt: skip
        held = stuck(run.go())
        if held is not None:
            clock.now += job.budget_ns
            self._give_up(job, held)
        return (clock.now - begun) * _PS_PER_NS

    def _give_up(self, job: Job, held: Waiting) -> None:
        record = words_at(self._memory, job.fault_address)[: FAULT.itemsize // 4].view(FAULT)[0]
        kind = held.kind or int(FaultKind.PIPELINE)
        values = (1, kind, held.kernel, held.block, held.slot, held.index, held.seen() & WORD, held.target)
        for name, value in zip(FAULT.names or (), values, strict=True):
            record[name] = value
