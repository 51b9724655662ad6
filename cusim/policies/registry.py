"""From the words of the command line to a plan: one word for all, or one for each dependence or kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from cusim.errors import InputError, Problems, did_you_mean
from cusim.policies.base import SyncPolicy, check_places
from cusim.policies.flags import Flags, parse_flags
from cusim.policies.legality import store_refusal
from cusim.policies.orders import Order, RowOrder, order_table
from cusim.policies.plan import WITHOUT_POLICY, Launch, Plan
from cusim.policies.words import describe, parse_launch, parse_order, parse_policy, policy_names
from cusim.program.depends import TileDep, dependences, hazards
from cusim.program.program import Program

__all__ = [
    "build_plan",
    "describe",
    "is_assignment",
    "parse_assignment",
    "parse_launch",
    "parse_names",
    "parse_order",
    "parse_policy",
    "policy_names",
    "split_sweep",
]

T = TypeVar("T")


def parse_assignment(text: str, deps: Sequence[TileDep]) -> dict[str, SyncPolicy]:
    """A policy for every dependence: ``row`` for all, or ``qkv>t:row,r>t:tile`` for each by name.

    InputError, with every mistake, for unknown words or names, a name given twice or one left out.
    """
    names = tuple(dict.fromkeys(dep.name for dep in deps))
    if not is_assignment(text, names):
        policy = parse_policy(text)
        return dict.fromkeys(names, policy)
    return parse_names("--policy", text, names, parse_policy, complete=True)


def is_assignment(text: str, names: Iterable[str]) -> bool:
    """True when *text* gives values by name (``up:row,down:column``), false for one value or a list of them."""
    known = tuple(names)
    return any(">" in item.partition(":")[0] or _split(item, known) is not None for item in text.split(","))


def split_sweep(text: str, names: Iterable[str]) -> tuple[str, ...]:
    """The values of a sweep: ``row,tile`` is two, ``qkv>t:row,r>t:tile`` one, a name that returns begins another."""
    known = tuple(names)
    values: list[list[str]] = []
    seen: set[str] | None = None
    for item in (part.strip() for part in text.split(",")):
        pair = _split(item, known)
        name = None if pair is None else pair[0]
        if name is None or seen is None or name in seen:
            values.append([])
            seen = None if name is None else set()
        values[-1].append(item)
        if name is not None and seen is not None:
            seen.add(name)
    return tuple(",".join(value) for value in values)


def parse_names(
    option: str, text: str, names: Sequence[str], parse: Callable[[str], T], *, complete: bool = False
) -> dict[str, T]:
    """The values of ``name:value,name:value``; *complete* refuses names that are left out."""
    problems = Problems(option)
    found: dict[str, T] = {}
    for item in text.split(","):
        pair = _split(item, names)
        if pair is None:
            name = item.partition(":")[0].strip()
            problems.add(item.strip() or "nothing", None, f"no such name before a colon; {did_you_mean(name, names)}")
        elif pair[0] in found:
            problems.add(pair[0], pair[1], "given twice")
        else:
            value = _parsed(problems, pair[0], pair[1], parse)
            if value is not None:
                found[pair[0]] = value
    given = {pair[0] for item in text.split(",") if (pair := _split(item, names)) is not None}
    for name in names:
        if complete and name not in given:
            problems.add(name, None, "not given; every dependence needs a policy")
    problems.raise_if_any()
    return found


def build_plan(
    program: Program,
    *,
    policy: str = "stream",
    order: str = "row",
    flags: str = "",
    launch: str | None = None,
) -> Plan:
    """The plan that four words describe, checked against the program; InputError has everything that is wrong.

    *policy*: ``stream`` (kernels one after the other), or what :func:`parse_assignment` reads. *order* and *flags*:
    one for all kernels, or ``up:group:8,down:row``. *launch* is ``wait-first`` unless given; flag W means ``none``.
    """
    problems = Problems("plan")
    kernels = tuple(kernel.name for kernel in program.kernels)
    deps = dependences(program)
    orders = _for_kernels(problems, "--order", order, kernels, parse_order)
    chosen = _for_kernels(problems, "--flags", flags, kernels, parse_flags)
    streamed = policy.strip() == "stream"
    sync = {} if streamed else _collected(problems, lambda: parse_assignment(policy, deps))
    started = None if launch is None else _collected(problems, lambda: parse_launch(launch))
    problems.raise_if_any()
    started = _launch(problems, streamed, started, chosen, kernels)
    _check_orders(problems, program, orders, chosen)
    if not streamed:
        _check_waits(problems, deps, sync or {})
        _check_stores(problems, deps, sync or {}, chosen)
        _check_hazards(problems, program)
        if started == "none":
            chosen = {name: replace(chosen.get(name, Flags()), W=True) for name in kernels}
    problems.raise_if_any()
    return Plan(
        sync or {},
        {name: value for name, value in orders.items() if value != RowOrder()},
        {name: value for name, value in chosen.items() if value != Flags()},
        started,
        label=policy.strip(),
    )


def _split(item: str, names: Iterable[str]) -> tuple[str, str] | None:
    """The longest name that the item begins with, before a colon, and what follows it."""
    given = item.strip()
    fits = [name for name in names if given.startswith(f"{name}:")]
    name = max(fits, key=len, default=None)
    return None if name is None else (name, given[len(name) + 1 :].strip())


def _parsed(problems: Problems, name: str, word: str, parse: Callable[[str], T]) -> T | None:
    try:
        return parse(word)
    except InputError as error:
        for problem in error.problems:
            problems.add(name, word, problem.why)
        return None


def _collected(problems: Problems, make: Callable[[], T]) -> T | None:
    """What *make* returns; where it refuses, None and its problems under the option they belong to."""
    try:
        return make()
    except InputError as error:
        problems.extend(error, "" if error.source == "plan" else f"{error.source}: ")
        return None


def _for_kernels(
    problems: Problems, option: str, text: str, kernels: Sequence[str], parse: Callable[[str], T]
) -> dict[str, T]:
    """One value for all kernels or one each; kernels left out keep the default."""
    plain = ":" not in text or text.strip().startswith("group:") or text.strip().endswith(".json")
    if is_assignment(text, kernels) or not plain:
        return _collected(problems, lambda: parse_names(option, text, kernels, parse)) or {}
    value = _collected(problems, lambda: parse(text))
    return {} if value is None else dict.fromkeys(kernels, value)


def _launch(
    problems: Problems, streamed: bool, given: Launch | None, flags: Mapping[str, Flags], kernels: Sequence[str]
) -> Launch:
    """The launch of the plan; what contradicts policy and flags is recorded."""
    if streamed:
        if given not in (None, *WITHOUT_POLICY):
            problems.add("launch", given, "policy stream runs kernels one after the other; leave the launch out")
        for name in kernels:
            if flags.get(name, Flags()) != Flags():
                problems.add(f"flags.{name}", str(flags[name]), "policy stream has no waits to which flags apply")
        return given if given in WITHOUT_POLICY else "stream"
    if given in ("stream", "graph"):
        problems.add("launch", given, "an overlapped plan has no stream order; for that, policy stream")
    without = [name for name in kernels if not flags.get(name, Flags()).W]
    if len(without) == len(kernels):
        return given or "wait-first"
    for name in without if given != "none" else []:
        problems.add(f"flags.{name}", str(flags.get(name, Flags())), "W is for the whole plan: give it to every kernel")
    if given not in (None, "none", "stream", "graph"):
        problems.add("launch", given, "flag W means no wait-kernel, launch none")
    return "none"


def _check_orders(
    problems: Problems, program: Program, orders: Mapping[str, Order], flags: Mapping[str, Flags]
) -> None:
    """Orders must be bijections onto their grids, and the hardware's own where flag T leaves the choice to it."""
    for kernel in program.kernels:
        order = orders.get(kernel.name, RowOrder())
        try:
            table = order_table(order, kernel.grid)
        except InputError as error:
            for problem in error.problems:
                problems.add(f"order.{kernel.name}", order.name, problem.why)
            continue
        hardware = flags.get(kernel.name, Flags()).T
        if hardware and not np.array_equal(table, order_table(RowOrder(), kernel.grid)):
            why = "flag T leaves the order to the hardware, which is row; drop T or the order"
            problems.add(f"order.{kernel.name}", order.name, why)


def _check_waits(problems: Problems, deps: Iterable[TileDep], sync: Mapping[str, SyncPolicy]) -> None:
    """Waits that are too many, or that differ at too many places, to be worked out."""
    for dep in deps:
        try:
            for wait in sync[dep.name].waits(dep):
                check_places(wait.exprs(), dep)
        except InputError as error:
            problems.extend(error)


def _check_stores(
    problems: Problems, deps: Iterable[TileDep], sync: Mapping[str, SyncPolicy], flags: Mapping[str, Flags]
) -> None:
    for dep in deps:
        if flags.get(dep.producer, Flags()).A:
            refusal = store_refusal(sync[dep.name], dep)
            if refusal is not None:
                problems.add(f"flags.{dep.producer}", str(flags[dep.producer]), f"flag A: {refusal}")


def _check_hazards(problems: Problems, program: Program) -> None:
    """A buffer that is used again needs a barrier, which no tile policy gives."""
    verbs = {"war": "reads", "waw": "writes"}
    for hazard in hazards(program):
        why = (
            f"{hazard.later} writes what {hazard.earlier} {verbs[hazard.kind]}; no tile policy orders that: use stream"
        )
        problems.add(f"buffer.{hazard.buffer}", None, why)
