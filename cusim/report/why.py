"""Why a plan takes the time it takes: its parts beside those of stream order, and how far its gain carries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cusim.machine.machine import Machine
from cusim.report.choice import best_row, reference_row, strongest_row
from cusim.report.columns import TIME_UNITS
from cusim.report.reasons import LEAST_GAIN_PCT, Fade, PlanParts, Seen, Why
from cusim.report.result import Contender, Report, Row
from cusim.report.table import Strip

_PS_PER_NS = 1000
_WORK = "work, spread evenly over the slots"


def explained_rows(report: Report) -> list[tuple[Row, Contender]]:
    """The rows that are explained: the reference, the strongest stream order, the best policy; those there are."""
    wanted = (reference_row(report.rows), strongest_row(report.rows), best_row(report))
    return [
        (row, contender)
        for chosen in wanted
        for row, contender in zip(report.rows, report.contenders, strict=True)
        if row is chosen
    ]


def explain(report: Report, sizes: Sequence[int] = (), gain_pct: Callable[[int], float] | None = None) -> Why:
    """The parts of the rows that matter, and break-even points of the best policy.

    *gain_pct* is its gain over stream order at each of *sizes*, rows M; without it that question stays open.
    """
    from cusim.tune.break_even import gain_ends_after
    from cusim.tune.why import breakdown

    plans: list[PlanParts] = []
    partless: list[str] = []
    for row, (_, program, plan) in explained_rows(report):
        found = breakdown(program, report.machine, plan)
        if found is None:
            partless.append(row.policy)
        else:
            parts = [(part.cause, part.ps) for part in found.parts]
            plans.append(PlanParts(row.policy, row.order, row.launch, *_whole_ns(found.total_ps, parts)))
    best = best_row(report)
    fade = None
    if best is not None and gain_pct is not None and sizes:
        fade = Fade(best.policy, tuple(sizes), gain_ends_after(gain_pct, sizes, LEAST_GAIN_PCT))
    return Why(tuple(plans), tuple(_seen(report)), fade, tuple(partless))


def why_strips(why: Why, time_unit: str) -> list[Strip]:
    """A row a cause, the total last; time and percent of the total for each plan. Causes of no time are left out."""
    scale, decimals = TIME_UNITS[time_unit]
    shown: list[tuple[PlanParts, dict[str, int], dict[str, int]]] = []
    for plan in why.plans:
        times = _shares(plan, plan.total_ns * 10**decimals / scale)
        shown.append((plan, times, _shares(plan, 1000)))
    named = list(dict.fromkeys(cause for plan in why.plans for cause, _ in plan.parts))
    order = sorted(named, key=lambda cause: _last_place(cause, why.plans))
    causes = [cause for cause in order if any(times.get(cause) or pct.get(cause) for _, times, pct in shown)]
    strips = [Strip("where the time goes", (*causes, "total"))]
    for plan, times, pct in shown:
        strips.append(_strip(f"{plan.policy} {time_unit}", causes, times, decimals))
        strips.append(_strip("%", causes, pct, 1))
    return strips


def why_words(why: Why) -> Iterator[str]:
    """The break-even points as sentences."""
    for policy in why.partless:
        yield f"{policy} has no parts: it hangs where one of its delays is taken away."
    for seen in why.seen:
        yield _seen_words(seen)
    if why.fade is not None:
        yield _fade_words(why.fade)


def why_json(why: Why) -> dict[str, Any]:
    """The same as data; times in whole ns, parts sum to the total."""
    plans = [
        {
            "policy": plan.policy,
            "order": plan.order,
            "launch": plan.launch,
            "total_ns": plan.total_ns,
            "parts": [{"cause": cause, "ns": ns} for cause, ns in plan.parts],
        }
        for plan in why.plans
    ]
    seen = [
        {"policy": s.policy, "rival": s.rival, "within_ns": s.within_ns, "here_ns": s.here_ns, "unbounded": s.unbounded}
        for s in why.seen
    ]
    fade = why.fade
    size = None
    if fade is not None:
        size = {"policy": fade.policy, "least_gain_pct": LEAST_GAIN_PCT, "m": list(fade.sizes), "last_m": fade.last}
    return {"plans": plans, "post_seen": seen, "gain_by_m": size}


def _whole_ns(total_ps: int, parts: Sequence[tuple[str, int]]) -> tuple[int, tuple[tuple[str, int], ...]]:
    total = total_ps // _PS_PER_NS
    whole = {cause: ps // _PS_PER_NS for cause, ps in parts}
    whole[_WORK] += total - sum(whole.values())
    return total, tuple(whole.items())


def _shares(plan: PlanParts, whole: float) -> dict[str, int]:
    """*whole* shared out over the parts in whole numbers that sum to it."""
    found = {cause: round(ns * whole / plan.total_ns) if plan.total_ns else 0 for cause, ns in plan.parts}
    found["total"] = round(whole)
    found[_WORK] += 2 * found["total"] - sum(found.values())
    return found


def _strip(title: str, causes: Sequence[str], units: dict[str, int], decimals: int) -> Strip:
    cells = (f"{units[cause] / 10**decimals:.{decimals}f}" if cause in units else "-" for cause in (*causes, "total"))
    return Strip(title, tuple(cells), number=True)


def _last_place(cause: str, plans: Sequence[PlanParts]) -> int:
    """Where the plan with the most parts has the cause, so that all plans' parts stand in its order."""
    longest = max(plans, key=lambda plan: len(plan.parts))
    names = [name for name, _ in longest.parts]
    return names.index(cause) if cause in names else len(names)


def _seen(report: Report) -> Iterator[Seen]:
    from cusim.tune.break_even import LONGEST_PS, seen_within_ps

    best = best_row(report)
    if best is None:
        return
    contender = next(c for row, c in zip(report.rows, report.contenders, strict=True) if row is best)
    here = _here_ps(contender, report.machine)
    for rival in (reference_row(report.rows), strongest_row(report.rows)):
        if rival is None or rival.total_ns is None:
            continue
        within = seen_within_ps(contender.program, report.machine, contender.plan, rival.total_ns * _PS_PER_NS)
        yield Seen(
            best.policy, rival.policy, None if within is None else within // _PS_PER_NS, here // _PS_PER_NS,
            within == LONGEST_PS,
        )  # fmt: skip


def _here_ps(contender: Contender, machine: Machine) -> int:
    """From the start of a post to its being seen, on the machine as it is; the slowest of the plan's posts."""
    sync, plan = machine.sync, contender.plan
    stored = sync.post_store_ps + sync.visible_store_ps
    added = sync.post_ps + sync.visible_ps
    producers = [name.partition(">")[0] for name in plan.sync]
    return max((stored if plan.flags_of(name).A else added for name in producers), default=added)


def _seen_words(seen: Seen) -> str:
    if seen.within_ns is None:
        return f"{seen.policy} takes longer than {seen.rival} even if posts were seen as soon as they are made."
    here, within = f"{seen.here_ns / 1e3:.1f} us", f"{seen.within_ns / 1e3:.1f} us"
    if seen.unbounded:
        return f"{seen.policy} beats {seen.rival} even if a post is seen only {within} after its start (here {here})."
    if seen.within_ns < seen.here_ns:
        return f"{seen.policy} would beat {seen.rival} if a post were seen within {within} of its start (here {here})."
    return f"{seen.policy} beats {seen.rival} as long as a post is seen within {within} of its start (here {here})."


def _fade_words(fade: Fade) -> str:
    first, largest = fade.sizes[0], fade.sizes[-1]
    step = f", every {fade.sizes[-1] - fade.sizes[-2]}" if len(fade.sizes) > 2 else ""
    looked = f"(looked up to M = {largest}{step})"
    gain = f"The gain of {fade.policy} over stream order"
    if fade.last is None:
        return f"{gain} is below {LEAST_GAIN_PCT:g} % from M = {first} on {looked}."
    later = [size for size in fade.sizes if size > fade.last]
    if not later:
        return f"{gain} is still {LEAST_GAIN_PCT:g} % or more at M = {largest}, the largest looked at{step}."
    return f"{gain} stays below {LEAST_GAIN_PCT:g} % from M = {later[0]} on {looked}."
