"""cuSync §II-A, §III-B, §IV-C and §IV: what its safety rests on, and whether it holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from cusim.engine.dispatcher import Rule
from cusim.engine.result import Deadlock
from cusim.engine.setup import slots_of
from cusim.errors import InputError
from cusim.policies.legality import legality
from cusim.policies.orders import TableOrder, order_table
from cusim.reproduce.claim import Answer, Question
from cusim.reproduce.cusync_waves import GPU, MLP
from cusim.reproduce.judge import judged, numbers, words
from cusim.reproduce.lab import Lab, plan_of, waves_of

FINISHES, DEADLOCKS = "finishes", "deadlocks"
_OUTSIDE = "outside both rules"
_BIJECTION = "bijection"


def safety_questions(paper: Mapping[str, Any]) -> Iterator[Question]:
    """Legality of the shipped flags, the order of dispatch, and the formula for tile orders."""
    rules = paper["legality"]
    where = rules["where"]
    for shipped in rules["shipped"]:
        text = f"{shipped['workload']} on {shipped['machine']}: sizes whose flags W and T break both rules"
        name = f"legality.{shipped['workload']}.{shipped['machine']}"
        yield Question(name, text, where, "none", "", partial(_legal, shipped))
    text = "shipped W and T inside a rule: deadlocks if blocks come in the worst order"
    yield Question("legality.inside", text, where, "0", "", partial(_inside, rules["shipped"]))
    text = "shipped W and T outside both rules: deadlocks if blocks come in the worst order"
    yield Question("legality.outside", text, where, "0", "", partial(_outside, rules["shipped"]))
    yield from _dispatch_questions(paper["dispatch"])
    order = paper["order"]
    text = f"the printed order, position = linear / N + i, for N = {order['n']}"
    yield Question("order.formula", text, order["where"], _BIJECTION, "", partial(_order, order))


def _dispatch_questions(chain: Mapping[str, Any]) -> Iterator[Question]:
    arrival: Rule = "arrival"
    worst: Rule = "adversarial"
    for name, text, where, printed, launch, dispatch in (
        ("launch-order", "no wait-kernel, blocks in launch order", "assumption", FINISHES, "none", arrival),
        ("any-order", "no wait-kernel, consumer blocks first", "admitted", DEADLOCKS, "none", worst),
        ("wait-first", "wait-kernel released by the first block, then the worst order", "protocol", FINISHES,
         "wait-first", worst),
        ("wait-all", "wait-kernel released by the last block instead, the worst order", "changed", FINISHES,
         "wait-all", worst),
    ):  # fmt: skip
        answer = partial(_dispatched, chain, printed, launch, dispatch)
        yield Question(f"dispatch.{name}", f"GPT-3 B = {chain['m']}: {text}", chain[where], printed, "", answer)


@dataclass(frozen=True, slots=True)
class _Setting:
    """A shipped setting: whether it breaks both rules, its waves, the static verdict and the worst dispatch's."""

    m: int
    policy: str
    flags: str
    outside: bool
    waves: float
    static: str
    worst: str
    arrival: str

    @property
    def text(self) -> str:
        """``B = 256 row WT (2.4 waves): can deadlock; worst order deadlocks``."""
        return (
            f"B = {self.m} {self.policy} {self.flags} ({self.waves:.2g} waves): {self.static}; "
            f"worst order {self.worst}, launch order {self.arrival}"
        )


def _settings(shipped: Mapping[str, Any], lab: Lab) -> list[_Setting]:
    """Every size and policy of a workload on a machine whose flags have W or T."""
    machine = lab.machine(shipped["machine"])
    found = []
    for m in shipped["m"]:
        workload = lab.workload(shipped["workload"], shipped["machine"], m)
        for policy in ("row", "tile"):
            choice = workload.choice(policy)
            if not set(choice.flags) & set("WT"):
                continue
            plan = plan_of(choice, policy)
            judged_flags = legality(choice.program, plan, slots_of(choice.program, machine))
            outside = any(v.flag in "WT" and v.reason.startswith(_OUTSIDE) for v in judged_flags)
            worst = lab.outcome(choice.program, machine, plan, "adversarial")
            arrival = lab.outcome(choice.program, machine, plan)
            waves = sum(waves_of(choice.program, machine))
            static = worst.verdict.status
            ends = [DEADLOCKS if isinstance(run, Deadlock) else FINISHES for run in (worst, arrival)]
            found.append(_Setting(m, policy, choice.flags, outside, waves, static, ends[0], ends[1]))
    return found


def _legal(shipped: Mapping[str, Any], lab: Lab) -> Answer:
    """Sizes outside both rules; the rival: more than two waves in all."""
    settings = _settings(shipped, lab)
    broken = [setting for setting in settings if setting.outside]
    ours = _sizes(broken)
    over = _sizes([setting for setting in settings if setting.waves > 2])
    why = "; ".join(setting.text for setting in broken)
    note = f"{len(settings)} settings of W and T; rules: §IV-C and the repository's comments; the rival: over 2 waves"
    return judged(not broken, ours, baseline=over, why=why, note=note)


def _sizes(settings: list[_Setting]) -> str:
    return ", ".join(dict.fromkeys(str(setting.m) for setting in settings)) or "none"


def _inside(shipped: list[Mapping[str, Any]], lab: Lab) -> Answer:
    return _deadlocks([s for each in shipped for s in _settings(each, lab) if not s.outside], "")


def _outside(shipped: list[Mapping[str, Any]], lab: Lab) -> Answer:
    why = "such settings work only while blocks are dispatched in launch order, which no document promises"
    return _deadlocks([s for each in shipped for s in _settings(each, lab) if s.outside], why)


def _deadlocks(settings: list[_Setting], why: str) -> Answer:
    """How many deadlock; the rival is the static verdict, which runs nothing."""
    hung = sum(setting.worst == DEADLOCKS for setting in settings)
    static = sum(setting.static == "can deadlock" for setting in settings)
    ordered = sum(setting.arrival == DEADLOCKS for setting in settings)
    note = f"of {len(settings)} settings; in launch order {ordered} deadlock; the rival: static verdict `can deadlock`"
    return numbers("0", hung, baseline=static, why=why, note=note)


def _dispatched(chain: Mapping[str, Any], printed: str, launch: str, dispatch: Rule, lab: Lab) -> Answer:
    """How a run ends; the rival is the verdict that runs nothing."""
    choice = lab.workload(MLP, GPU, chain["m"]).choice(chain["policy"])
    plan = plan_of(choice, chain["policy"], flags="W" if launch == "none" else "", launch=launch)
    outcome = lab.outcome(choice.program, lab.machine(GPU), plan, dispatch)
    hung = isinstance(outcome, Deadlock)
    why = "a wait-kernel that the first block releases does not place the other blocks" if hung else ""
    note = " -> ".join(outcome.cycle[:3]) if isinstance(outcome, Deadlock) else ""
    return words(printed, DEADLOCKS if hung else FINISHES, baseline=outcome.verdict.status, why=why, note=note)


def _order(order: Mapping[str, Any], lab: Lab) -> Answer:
    """Positions by the printed formula, given to the check that every order passes; then the corrected formula."""
    n, tiles = order["n"], order["tiles"]
    printed = [linear // n + linear % n for linear in range(tiles)]
    corrected = [linear // n * n + linear % n for linear in range(tiles)]
    fault, other = _fault(printed), _fault(corrected)
    where = ", ".join(map(str, printed))
    note = f"with (linear / N) x N + i: {other or _BIJECTION}"
    return judged(
        not fault, f"no {_BIJECTION}" if fault else _BIJECTION, baseline=f"{len(set(printed))} of {tiles} positions",
        why=f"tiles 0 to {tiles - 1} come to positions {where}; {fault}", note=note,
    )  # fmt: skip


def _fault(positions: list[int]) -> str:
    """What the bijection check says of positions in a row of as many tiles; empty where it passes."""
    try:
        order_table(TableOrder(tuple((0, position, 0) for position in positions)), (1, len(positions), 1))
    except InputError as error:
        return "; ".join(problem.why for problem in error.problems)
    return ""
