"""What the model must beat on recordings: rules without a simulator, and times from less than the whole plan."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace

from cusim.machine.machine import Machine
from cusim.validate.judged import BASELINE, Judged, Known
from cusim.validate.judging import judge
from cusim.validate.regret import always
from cusim.validate.rivals import Rated, best_fixed, ceil_wave_ps, kernel_sum_ps, roofline_ps
from cusim.validate.scores import Scored
from cusim.validate.summary import Summary

_ROW = "row"


def recorded_rivals(rows: Sequence[Judged], machine: Machine) -> tuple[dict[str, Summary], dict[str, str]]:
    """The summary of each rival by its name, in a fixed order, and the rule that each of the fixed ones follows.

    *no-gain*: the model's stream order for every plan. *always-row*: row semaphores in the order in which they cost the
    least; *best-fixed*: the policy and order that do, both known only after measuring. *sum-of-kernels*, *ceil-wave*:
    the model's kernels alone, added up, or with waves instead of ceilings where kernels overlap. *roofline*: peak and
    HBM. *constant*: the median measured time, whatever the cell. Where the model has no prediction, none has. Single
    kernels have no policies, so only the last three and the fixed order say anything there.
    """
    scored = [row.scored for row in rows]
    found: dict[str, Summary] = {}
    rules: dict[str, str] = {}
    chains = any(row.pooled.cell.gemm is None for row in rows)
    if chains:
        found["no-gain"] = judge([replace(row, predicted_ps=time) for row, time in _streamed(scored)])
    for name, policies in (("always-row", [_ROW]), ("best-fixed", [])):
        if not policies or any(row.policy in policies for row in scored):
            rule = best_fixed(scored, policies)
            rules[name] = f"{rule.policy} {rule.order}"
            found[name] = judge([replace(row, predicted_ps=None) for row in scored], always(*rule))
    if chains:
        found["sum-of-kernels"] = _timed(rows, lambda row, _: kernel_sum_ps(row, machine))
        found["ceil-wave"] = _timed(rows, lambda row, known: ceil_wave_ps(row, machine, known.plan.overlapped))
    found["roofline"] = _timed(rows, lambda row, _: roofline_ps(row.program, machine))
    middle = round(statistics.median(row.measured_ps for row in scored))
    found["constant"] = _timed(rows, lambda *_: middle)
    return found, rules


def _streamed(scored: Sequence[Scored]) -> list[tuple[Scored, int | None]]:
    """Each row with what the model says of stream order at the same shape, order and cut."""
    base = {(row.shape, row.order, row.cut): row.predicted_ps for row in scored if row.policy == BASELINE}
    return [(row, None if row.given else base.get((row.shape, row.order, row.cut))) for row in scored]


def _timed(rows: Sequence[Judged], time: Callable[[Rated, Known], int]) -> Summary:
    timed = []
    for row in rows:
        if row.known is None:
            timed.append(row.scored)
            continue
        rated = Rated(row.scored, row.known.program, dict(row.known.alone_ps), row.scored.predicted_ps or 0)
        timed.append(replace(row.scored, predicted_ps=time(rated, row.known)))
    return judge(timed)
