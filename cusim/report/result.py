"""What a comparison is made of: contenders, the row of each, and the report that holds them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from cusim.engine.result import Deadlock, Prediction
from cusim.engine.verdict import CAN_DEADLOCK, IF_ARRIVAL, SAFE
from cusim.machine.machine import Machine
from cusim.policies.plan import WITHOUT_POLICY, Plan
from cusim.program.program import Program
from cusim.report.kernels import KernelRow
from cusim.report.reasons import Why

Dispatch: TypeAlias = Literal["arrival", "random", "adversarial"]
Outcome: TypeAlias = Prediction | Deadlock
Predict: TypeAlias = Callable[..., Outcome]

__all__ = ["CAN_DEADLOCK", "DEADLOCKS", "IF_ARRIVAL", "SAFE", "STREAM_BEST", "Contender", "Footnote", "Report", "Row"]

#: What the ``deadlock`` field says of a row that did deadlock; of others it has the engine's verdict.
DEADLOCKS = "deadlocks"
#: The policy of the row in which stream order runs at its own best tile, order and split-K.
STREAM_BEST = "stream-best"


class Contender(NamedTuple):
    """A plan for a program under the name it was asked for; contenders may differ in tiles and split-K."""

    label: str
    program: Program
    plan: Plan


class Footnote(NamedTuple):
    """What a row of the table stands for: *lead*, the same in every case of a sweep, and what it is in this one."""

    lead: str
    detail: str

    @property
    def text(self) -> str:
        """Both as one sentence."""
        return f"{self.lead}: {self.detail}."


@dataclass(frozen=True, slots=True)
class Row:
    """What one contender is predicted to do; times in nanoseconds, None where it deadlocks.

    *speedup_vs_stream* is the best stream row's total over this one's, at the tiles that were asked for;
    *speedup_vs_best_stream* that of all stream orders, :data:`STREAM_BEST` too (None where it was not looked for).
    *deadlock* is the verdict's status,
    or ``deadlocks`` where the run stood still, and *reason* says why. *warnings* are those of its flags. *advice* puts
    it against the reference.
    """

    policy: str
    order: str
    flags: str
    launch: str
    scheduler: str
    m: int | None
    tile: str
    split_k: str
    total_ns: int | None
    span_ns: int | None
    speedup_vs_stream: float | None
    rounds: int | None
    waits: int | None
    working_pct: float | None
    waiting_pct: float | None
    empty_pct: float | None
    deadlock: str
    reason: str
    warnings: tuple[str, ...] = ()
    reference: bool = False
    recommended: bool = False
    advice: str = ""
    speedup_vs_best_stream: float | None = None

    @property
    def overlapped(self) -> bool:
        """True for a row that lets kernels run side by side, held apart by semaphores."""
        in_order = self.launch in WITHOUT_POLICY and (self.launch != "pdl" or self.policy in ("stream", STREAM_BEST))
        return not in_order

    @property
    def strongest(self) -> bool:
        """True for the row of stream order at its own best tile, order and split-K."""
        return self.policy == STREAM_BEST

    @property
    def gain_pct(self) -> float | None:
        """Time saved against the best stream row, in percent of it; negative for a loss."""
        return _gain_pct(self.speedup_vs_stream)

    @property
    def best_gain_pct(self) -> float | None:
        """Time saved against the strongest stream order, in percent of it; None where it was not looked for."""
        return _gain_pct(self.speedup_vs_best_stream)


@dataclass(frozen=True)
class Report:
    """One comparison: all rows share the machine, the problem's size, dispatch and seed.

    *held* is the recommended plan under launch ``wait-all``, where its own launch is safe only if arrival order holds.
    *unlike* are the options with which stream order and the best policy run the same tiles, where they do not.
    *verdict* is the answer in words, *caveats* what it rests on, *notes* what the reader should know beside it,
    *footnotes* what a row of the table stands for. *contenders* are those of the rows, one each; *why* is where the
    time of the best of them goes, if that was asked for.
    """

    programs: tuple[Program, ...]
    machine: Machine
    dispatch: str
    seed: int
    rows: tuple[Row, ...]
    kernels: tuple[KernelRow, ...]
    held: Row | None = None
    unlike: str = ""
    verdict: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    footnotes: tuple[Footnote, ...] = ()
    contenders: tuple[Contender, ...] = ()
    why: Why | None = None

    @property
    def program(self) -> Program:
        """The first contender's program; the others differ from it only in tiles and split-K."""
        return self.programs[0]

    @property
    def deadlocked(self) -> bool:
        """True when a row stood still."""
        return any(row.deadlock == DEADLOCKS for row in self.rows)


def _gain_pct(speedup: float | None) -> float | None:
    return None if not speedup else 100.0 * (1.0 - 1.0 / speedup)
