"""Every combination of policy, order, flags and launch that was asked for, as plans for a subject."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from cli.inputs import gathered
from cli.subject import Subject
from cli.sweep import words
from cusim.errors import InputError, Problems

if TYPE_CHECKING:
    from cusim.policies.plan import Plan
    from cusim.report.rows import Contender

STREAM = "stream"
DEFAULT_POLICIES = (STREAM, "row", "tile", "batched:2")
#: Launches, other than stream order's own, that policy stream takes.
IN_ORDER = ("graph", "pdl")


@dataclass(frozen=True, slots=True)
class PlanWords:
    """What was typed for the plan, one entry for each use of an option; nothing typed is an empty tuple."""

    policy: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    launch: tuple[str, ...] = ()

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> PlanWords:
        """The words among all options of a command."""
        return cls(given["policy"], given["order"], given["flags"], given["launch"])


@dataclass(slots=True)
class Combinations:
    """Plans for one subject, and the combinations that were left out with the reason."""

    contenders: list[Contender] = field(default_factory=list)
    skipped: list[tuple[str, InputError]] = field(default_factory=list)


class _Words(NamedTuple):
    """A combination; None takes what the subject has for the policy, or the launch that goes with the flags."""

    policy: str
    order: str | None
    flags: str | None
    launch: str | None

    def __str__(self) -> str:
        options = zip(("--policy", "--order", "--flags", "--launch"), self, strict=True)
        return " ".join(f"{option} {word}" for option, word in options if word is not None)


def contenders_of(subject: Subject, typed: PlanWords) -> Combinations:
    """Every combination that is legal; others are skipped, unless nothing overlapped that was asked for is left.

    The words are taken as checked (:func:`check_words`). InputError has the reasons of the first combination where none
    is legal.
    """
    from cusim.report.rows import Contender

    found = Combinations()
    for combination in _combinations(subject, typed):
        program = subject.choice(combination.policy).program
        try:
            plan = _plan(subject, combination)
        except InputError as error:
            found.skipped.append((str(combination), error))
            continue
        contender = Contender(_label(plan), program, plan)
        if contender not in found.contenders:
            found.contenders.append(contender)
    overlapped = [contender for contender in found.contenders if contender.plan.overlapped]
    if found.skipped and not overlapped and (typed.policy or not found.contenders):
        raise found.skipped[0][1]
    return found


def _combinations(subject: Subject, typed: PlanWords) -> Iterator[_Words]:
    """Stream order comes always, as the reference, and again under the launches asked for that need no policy; it takes
    no flags. Policies that nobody typed are left alone by ``graph``, which can have none.
    """
    from cusim.policies.registry import split_sweep
    from cusim.program.depends import dependences

    deps = [dep.name for dep in dependences(subject.program)]
    kernels = [kernel.name for kernel in subject.program.kernels]
    policies = [value for text in typed.policy for value in split_sweep(text, deps)]
    policies = policies or list(DEFAULT_POLICIES if deps else (STREAM,))
    orders: list[str | None] = [v for text in typed.order for v in split_sweep(text, kernels)] or [None]
    flags: list[str | None] = [v for text in typed.flags for v in split_sweep(text, kernels)] or [None]
    launches: list[str | None] = [*words(typed.launch)] or [None]
    alone = [launch for launch in launches if launch in IN_ORDER and STREAM in policies]
    for launch in (None, *alone):
        for order in orders:
            yield _Words(STREAM, order, None, launch)
    rest = [launch for launch in launches if launch != STREAM and (launch != "graph" or typed.policy)]
    for policy in dict.fromkeys(policies):
        if policy != STREAM:
            yield from itertools.starmap(_Words, itertools.product([policy], orders, flags, rest))


def check_words(subject: Subject | None, typed: PlanWords, problems: Problems) -> None:
    """Records every word that means nothing, before any combination is judged.

    Without a *subject*, values by the name of a kernel or dependence cannot be judged, and the rest can.
    """
    from cusim.policies.registry import parse_assignment, parse_launch, split_sweep
    from cusim.program.depends import dependences

    deps = dependences(subject.program) if subject else ()
    named = [dep.name for dep in deps]
    policies = [value for text in typed.policy for value in split_sweep(text, named)]
    for policy in policies:
        if policy != STREAM and (subject or _plain(policy)):
            gathered(problems, parse_assignment, policy, deps)
    _check_by_kernel(subject, typed, problems)
    for launch in words(typed.launch):
        gathered(problems, parse_launch, launch)
    if set(policies) == {STREAM}:
        for option, texts in (("--flags", typed.flags), ("--launch", typed.launch)):
            known = {STREAM, "-", *(IN_ORDER if option == "--launch" else ())}
            if texts and set(words(texts)) - known:
                problems.add(option, ",".join(texts), "stream order has no waits that this could change; leave it out")


def _check_by_kernel(subject: Subject | None, typed: PlanWords, problems: Problems) -> None:
    from cusim.policies.flags import parse_flags
    from cusim.policies.registry import is_assignment, parse_names, parse_order, split_sweep

    kernels = [kernel.name for kernel in subject.program.kernels] if subject else []
    parsers: tuple[tuple[str, Sequence[str], Callable[[str], object]], ...]
    parsers = (("--order", typed.order, parse_order), ("--flags", typed.flags, parse_flags))
    for option, texts, parse in parsers:
        for text in (value for given in texts for value in split_sweep(given, kernels)):
            if is_assignment(text, kernels):
                gathered(problems, parse_names, option, text, kernels, parse)
            elif subject or _plain(text):
                gathered(problems, parse, text)


def _plain(text: str) -> bool:
    """True for a value that names no kernel or dependence."""
    return not re.search(r">|:(?!\d+$)", text)


def _plan(subject: Subject, combination: _Words) -> Plan:
    from cusim.policies.registry import build_plan

    choice = subject.choice(combination.policy)
    return build_plan(
        choice.program,
        policy=combination.policy,
        order=choice.order if combination.order is None else combination.order,
        flags=_flags(choice.flags, combination),
        launch=combination.launch,
    )


def _flags(own: str, combination: _Words) -> str:
    """The flags typed, else the subject's own; a launch that was typed overrules a W that was not."""
    if combination.flags is not None:
        return combination.flags
    return own if combination.launch in (None, "none") else own.replace("W", "")


def _label(plan: Plan) -> str:
    """The policy's own name where all dependences share it, else each one's."""
    if not plan.overlapped:
        return STREAM
    names = {policy.name for policy in plan.sync.values()}
    return names.pop() if len(names) == 1 else ",".join(f"{dep}:{p.name}" for dep, p in plan.sync.items())
