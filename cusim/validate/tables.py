"""The tables of a validation: predicted rows beside measured ones, their summary, their rivals and their aims.

A set of published times gives two predictions. *Anchored*: the kernels' own times in stream order are given, so stream
rows are reproduced by construction and count in no error. *Cold*: nothing but the machine, stream rows included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from cusim.engine.setup import slots_of
from cusim.machine.machine import Machine
from cusim.validate.bound import work_conserving_ps
from cusim.validate.cases import Case, Shape, shapes_of
from cusim.validate.held_out import HeldOut, held_out
from cusim.validate.machines import judged_machine, settings_of
from cusim.validate.predict_rows import alone_ps, anchored_ps, cold_ps, kernel_times
from cusim.validate.published import PublishedSet
from cusim.validate.rivals import Rated, rivals
from cusim.validate.scores import Errors, Scored, errors
from cusim.validate.summary import Summary, by_policy, summarise

BASELINE = "stream"
Predicted: TypeAlias = Literal["anchored", "cold"]
Watch: TypeAlias = Callable[[str], None]


@dataclass(frozen=True)
class RowResult:
    """A row as it is shown: the case, what is scored of it, and the bound that scheduling cannot pass (where the
    kernels' times are given).
    """

    case: Case
    rated: Rated
    bound_ps: int | None

    @property
    def scored(self) -> Scored:
        """What the scores see of the row."""
        return self.rated.scored

    @property
    def below_bound(self) -> bool:
        """True for a measured time that no scheduling of the stream row's work can reach."""
        return self.bound_ps is not None and self.scored.measured_ps < self.bound_ps


@dataclass(frozen=True)
class Table:
    """One table of a validation. *held_out* stands where a setting of the machine was fitted on the same rows."""

    prediction: Predicted
    name: str
    machine: Machine
    rows: tuple[RowResult, ...]
    summary: Summary
    policies: dict[str, Errors]
    rivals: dict[str, Summary]
    held_out: HeldOut | None = None

    @property
    def reachable(self) -> Errors:
        """Errors of the rows whose measured time scheduling can reach: those that do not lie below their bound."""
        return errors([row.scored for row in self.rows if not row.below_bound], BASELINE)


def tables_of(published: PublishedSet, watch: Watch = lambda _: None) -> Iterator[Table]:
    """The tables of one GPU's published times: anchored ones first; *watch* hears what is being predicted.

    Raises InputError where the set's workload or GPU is not known.
    """
    shapes, machine, gpu = shapes_of(published), judged_machine(published.gpu), published.gpu
    fitted = any(setting.fitted for setting in settings_of(gpu))
    rows = [row for shape in shapes for row in _anchored(shape, machine, watch)]
    same, changed = _apart(rows)
    # Where most rows keep the tiles of stream order, their table is simply the GPU's.
    plain = gpu if _judged(same) > _judged(changed) else f"{gpu}_unchanged"
    if same:
        yield _table("anchored", plain, machine, same, held_out(shapes, gpu, watch) if fitted else None)
    if changed:
        yield _table("anchored", f"{gpu}_changed", machine, changed)
    yield _table("cold", gpu, machine, [row for shape in shapes for row in _cold(shape, machine, watch)])


def _apart(rows: Sequence[RowResult]) -> tuple[list[RowResult], list[RowResult]]:
    """Rows cut as in stream order, and rows that are not, each with the stream rows that they are judged against."""
    found = []
    for wanted in (False, True):
        judged = [row for row in rows if not row.case.anchors and bool(row.case.changed) is wanted]
        shapes = {row.scored.shape for row in judged}
        found.append([row for row in rows if row in judged or (row.case.anchors and row.scored.shape in shapes)])
    return found[0], found[1]


def _judged(rows: Sequence[RowResult]) -> int:
    return sum(not row.scored.given for row in rows)


def _anchored(shape: Shape, machine: Machine, watch: Watch) -> Iterator[RowResult]:
    """Stream rows are what they were measured to be: the engine finds them again within its rounding."""
    stream = shape.stream
    total = stream.reading.total_ps
    own = kernel_times(stream, shape, machine)
    bound = work_conserving_ps(own, stream.program, slots_of(stream.program, machine))
    for case in shape.cases:
        watch(f"anchored {machine.name} m={shape.m} {case.policy}")
        predicted = total if case.anchors else anchored_ps(case, shape, machine)
        times = kernel_times(case, shape, machine)
        scored = _scored(case, shape, predicted, given=case.anchors)
        yield RowResult(case, Rated(scored, case.program, times, total), bound)


def _cold(shape: Shape, machine: Machine, watch: Watch) -> Iterator[RowResult]:
    stream_ps = cold_ps(shape.stream, machine)
    for case in shape.cases:
        watch(f"cold {machine.name} m={shape.m} {case.policy}")
        predicted = stream_ps if case.anchors else cold_ps(case, machine)
        times = {kernel.name: alone_ps(kernel, case.program, machine) for kernel in case.program.kernels}
        scored = _scored(case, shape, predicted, given=False)
        yield RowResult(case, Rated(scored, case.program, times, stream_ps), None)


def _scored(case: Case, shape: Shape, predicted: int, *, given: bool) -> Scored:
    reading = case.reading
    noise = reading.stdev_ps or 0
    return Scored(f"m={shape.m}", shape.group, case.policy, reading.total_ps, noise, predicted, given)


def _table(
    prediction: Predicted, name: str, machine: Machine, rows: Sequence[RowResult], left_out: HeldOut | None = None
) -> Table:
    scored = [row.scored for row in rows]
    return Table(
        prediction, name, machine, tuple(rows), summarise(scored, BASELINE), by_policy(scored, BASELINE),
        rivals([row.rated for row in rows], machine, BASELINE), left_out,
    )  # fmt: skip
