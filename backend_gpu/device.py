"""What the runner needs of a device: the same for a GPU and for the null device, which has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from backend_gpu.launch import Step
from cusim.policies.plan import Plan
from cusim.program.kernel import Kernel
from cusim.program.program import Program


@dataclass(frozen=True, slots=True)
class Facts:
    """What a device says of itself; *kind* is ``cuda`` or ``null``, *timer_step_ns* the step of its stamps' clock.

    *more* holds what only goes into the record: versions, clocks, identities.
    """

    kind: str
    name: str
    sms: int
    warps_per_sm: int
    arch: str
    memory_bytes: int
    timer_step_ns: int
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A kernel on the device: *grid* blocks of *threads*; registers a thread, shared bytes a block, and how many
    blocks an SM holds by the device's own count.
    """

    kernel: str
    grid: int
    threads: int
    registers: int
    smem_bytes: int
    blocks_per_sm: int
    spilled_bytes: int = 0
    handle: Any = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Job:
    """One run to be prepared: the steps, the kernels, and a row of ``abi.PARAMS`` for each kernel.

    The addresses are those of the words that steps read: the epoch, the blocks started of each kernel, the fault.
    *graph*: the steps are captured once and replayed.
    """

    program: Program
    plan: Plan
    steps: Sequence[Step]
    loaded: Sequence[Loaded]
    params: NDArray[np.void]
    epoch_address: int
    started_addresses: Sequence[int]
    fault_address: int
    budget_ns: int
    graph: bool = False


class Commands(Protocol):
    """A run that is prepared to the last argument and may be issued again and again, one epoch each time."""

    def issue(self, epoch: int) -> None:
        """Advances the epoch counter to *epoch* (1 is the first) and runs; returns once everything is done."""

    def timed(self, epoch: int) -> int:
        """As :meth:`issue`, and the picoseconds from event to event, queued behind a busy kernel."""


class Device(Protocol):
    """Memory, kernels and streams. Arrays are those of *xp*: numpy or CuPy."""

    @property
    def facts(self) -> Facts:
        """What the device says of itself."""

    @property
    def xp(self) -> Any:
        """The array module whose arrays live on the device."""

    def zeros(self, shape: int | tuple[int, ...], dtype: Any) -> Any:
        """An array of zeros on the device."""

    def address(self, array: Any) -> int:
        """Where an array begins."""

    def to_host(self, array: Any) -> NDArray[Any]:
        """A copy of an array as numpy has it."""

    def why_not(self, program: Program, kernel: Kernel) -> str | None:
        """Why the device has no code for a kernel of the program; None where it has."""

    def load(self, program: Program, plan: Plan) -> tuple[Loaded, ...]:
        """Compiles and loads every kernel of the program, in issue order."""

    def commands(self, job: Job) -> Commands:
        """Prepares a run."""

    def empty(self, job: Job) -> Commands:
        """A run of no kernels, launched as *job* is: what :meth:`Commands.timed` says of it is subtracted."""
