"""What a simulated run gives back: a prediction, or a deadlock with the tiles that wait for each other."""

from __future__ import annotations

from dataclasses import dataclass, field

from cusim.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a plan could hang (design §6.7), known before anything runs.

    *status* is ``safe by construction``, ``safe if arrival order holds`` or ``can deadlock``; *reason* says why in a
    sentence, and *cycle* names who would wait for whom (empty when safe by construction).
    """

    status: str
    reason: str
    cycle: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Prediction:
    """A finished simulated run.

    *total_ps* is event to event behind a busy kernel, less the same for an empty program; *span_ps* first block start
    to last block end; *rounds* the sum of ceil(tiles / slots) over stretches with no barrier between them. *waits*
    counts the semaphore waits that the blocks made.
    """

    total_ps: int
    span_ps: int
    rounds: int
    waits: int
    verdict: Verdict
    trace: Trace = field(repr=False)


@dataclass(frozen=True, slots=True)
class Deadlock:
    """A simulated run that stopped before its end.

    *cycle* names the tiles, semaphores and slots that wait for each other, first to last and round again; *at_ps* is
    when the last block stood still, *trace* what had run until then.
    """

    cycle: tuple[str, ...]
    at_ps: int
    unfinished_blocks: int
    verdict: Verdict
    trace: Trace = field(repr=False)
