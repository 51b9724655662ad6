"""Check runs, apart from timed ones: the numbers must be right when everything that could hide a fault is gone.

Before each, whatever kernels write is filled with NaN; producers are delayed by seeded random times; one run takes its
tickets in reverse. Planted faults say whether the checks can fail at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from backend_gpu.bench import Bench, Fault, Mode
from backend_gpu.numerics import references, tolerance, worst_error
from cusim.errors import CusimError
from cusim.policies.base import Post, SyncPolicy, Wait
from cusim.policies.plan import Plan
from cusim.program.depends import TileDep
from cusim.program.expr import as_expr, maximum, minimum, r

#: The most by which a producer's post is delayed, nanoseconds.
MOST_DELAY_NS = 1_000_000


class CheckFailedError(CusimError):
    """Numbers that are wrong: no time of such a run is ever given."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One check run: what it did, the worst tile's relative error by kernel, and what was allowed."""

    what: str
    errors: dict[str, float]
    allowed: dict[str, float]

    @property
    def passed(self) -> bool:
        """True when every kernel is within its tolerance."""
        return all(error <= self.allowed[name] for name, error in self.errors.items())

    def text(self) -> str:
        """The run in a line."""
        parts = [f"{name} {error:.1e} (at most {self.allowed[name]:.1e})" for name, error in self.errors.items()]
        return f"{self.what}: {', '.join(parts)}"


def modes(seed: int, runs: int = 2) -> tuple[tuple[str, Mode], ...]:
    """The check runs: plain, delayed with *runs* seeds, and in reverse ticket order."""
    delayed = [
        (f"delays up to 1 ms, seed {seed + number}", Mode(delay_ns=MOST_DELAY_NS, seed=seed + number))
        for number in range(runs)
    ]
    return (("plain", Mode()), *delayed, ("reverse ticket order", Mode(reverse=True)))


def check_runs(bench: Bench, seed: int = 0, runs: int = 2) -> list[Checked] | Fault:
    """Every check run, input sets in turn; a Fault where one was given up, CheckFailedError where one is wrong."""
    done = []
    wanted = [references(bench, number) for number in range(len(bench.buffers))]
    for place, (what, mode) in enumerate(modes(seed, runs)):
        number = place % len(bench.buffers)
        bench.spoil(number)
        fault = bench.run(bench.commands(number, mode))
        if fault is not None:
            return fault
        done.append(compare(bench, number, what, wanted[number]))
    raise_if_wrong(done)
    return done


def compare(bench: Bench, number: int, what: str, wanted: dict[str, object]) -> Checked:
    """The results in set *number* against the reference."""
    errors = {
        kernel.name: worst_error(bench, number, kernel, wanted[kernel.writes[0].buffer])
        for kernel in bench.program.kernels
    }
    return Checked(what, errors, {kernel.name: tolerance(kernel) for kernel in bench.program.kernels})


def raise_if_wrong(done: Sequence[Checked]) -> None:
    """CheckFailedError, naming every run that is wrong."""
    wrong = [each.text() for each in done if not each.passed]
    if wrong:
        raise CheckFailedError("the numbers are wrong, so no time is given\n  " + "\n  ".join(wrong))


@dataclass(frozen=True, slots=True)
class _Planted:
    """A policy with a fault planted in it."""

    inner: SyncPolicy
    fault: str

    @property
    def name(self) -> str:
        """The policy's name, marked."""
        return f"{self.inner.name} with a {self.fault}"

    def size(self, dep: TileDep) -> int:
        return self.inner.size(dep)

    def posts(self, dep: TileDep) -> tuple[Post, ...]:
        if self.fault != "missing post":
            return self.inner.posts(dep)
        return tuple(Post(post.index, post.add * minimum(r, 1)) for post in self.inner.posts(dep))

    def waits(self, dep: TileDep) -> tuple[Wait, ...]:
        found = self.inner.waits(dep)
        if self.fault == "missing wait":
            return tuple(replace(wait, count=as_expr(0)) for wait in found)
        if self.fault == "swapped index":
            size = self.size(dep)  # the neighbour's semaphores; the last tile waits for the first, done long before
            return tuple(replace(wait, index=(wait.index + 1) % maximum(size - wait.count + 1, 1)) for wait in found)
        return found


#: Faults that can be planted: no wait at all, tiles of the first row that never post, waits one semaphore off.
FAULTS = ("missing wait", "missing post", "swapped index")


def plant(plan: Plan, fault: str) -> Plan:
    """The plan with *fault*, one of :data:`FAULTS`, in every policy."""
    return replace(plan, sync={name: _Planted(policy, fault) for name, policy in plan.sync.items()})


def caught(bench: Bench, seed: int = 0) -> str | None:
    """How the checks caught the fault planted in the bench's plan; None where they did not."""
    try:
        done = check_runs(bench, seed)
    except CheckFailedError as error:
        return str(error)
    return done.text if isinstance(done, Fault) else None
