"""Plans as JSON (schema ``cusim.plan/1``), read back strictly, and the digest that names a plan."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, TypeVar, cast

import numpy as np

from cusim.errors import InputError, Problems, refuse
from cusim.policies.base import SyncPolicy
from cusim.policies.flags import Flags, parse_flags
from cusim.policies.orders import Order, TableOrder, Tile
from cusim.policies.plan import LAUNCHES, SCHEDULERS, Launch, Plan, Scheduler
from cusim.policies.tabulated import Entries, TabulatedPolicy, WaitTable
from cusim.policies.words import parse_order_word, parse_policy
from cusim.program.fields import LARGEST, Fields, kind_of

SCHEMA = "cusim.plan/1"
_KEYS = ("schema", "launch", "scheduler", "streams", "label", "sync", "order", "flags")
_WAIT = ("index", "target", "count")
_TABULATED = (
    "name", "semaphores", "producer_grid", "consumer_grid", "steps", "slice_steps", "post_index", "post_add",
    "wait_tables",
)  # fmt: skip

T = TypeVar("T")


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """The plan as a JSON document; tables are written out.

    InputError for a policy that is neither registered nor tabulated: :func:`cusim.policies.tabulated.tabulate` it.
    """
    return _document(plan, _policy_to_json)


def plan_from_json(document: object, source: str) -> Plan:
    """The plan of a JSON document; InputError, naming *source*, with everything wrong in it."""
    problems = Problems(source)
    top = Fields.of(document, "", problems)
    plan = None if top is None else _plan(top)
    problems.raise_if_any()
    assert plan is not None
    return plan


def plan_digest(plan: Plan) -> str:
    """Twelve hex digits that name what the plan chooses; its label and the names of tables do not count."""
    document = _document(plan, _policy_to_digest)
    del document["label"]
    for order in document["order"].values():
        if isinstance(order, dict):
            del order["name"]
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:12]


def _document(plan: Plan, policy: Callable[[str, SyncPolicy], Any]) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "launch": plan.launch,
        "scheduler": plan.scheduler,
        "streams": plan.streams,
        "label": plan.label,
        "sync": {name: policy(name, plan.sync[name]) for name in sorted(plan.sync)},
        "order": {name: _order_to_json(plan.order[name]) for name in sorted(plan.order)},
        "flags": {name: str(plan.flags[name]) for name in sorted(plan.flags)},
    }


def _policy_to_json(name: str, policy: SyncPolicy) -> Any:
    if isinstance(policy, TabulatedPolicy):
        return json.loads(json.dumps(asdict(policy)))
    try:
        known = parse_policy(policy.name) == policy
    except InputError:
        known = False
    if not known:
        raise refuse("plan", f"sync.{name}", policy.name, "only registered and tabulated policies can be written")
    return policy.name


def _policy_to_digest(name: str, policy: SyncPolicy) -> Any:
    try:
        return _policy_to_json(name, policy)
    except InputError:
        return {"policy": f"{type(policy).__module__}.{type(policy).__qualname__}", "value": repr(policy)}


def _order_to_json(order: Order) -> Any:
    if isinstance(order, TableOrder):
        return {"name": order.name, "table": [list(tile) for tile in order.tiles]}
    return order.name


def _plan(top: Fields) -> Plan | None:
    if top.data.get("schema") != SCHEMA:
        top.wrong("schema", f'this is not a plan that cusim reads; allowed: "{SCHEMA}"')
        return None
    top.only(_KEYS)
    launch = top.choice("launch", LAUNCHES)
    scheduler = top.choice("scheduler", SCHEDULERS, "in-order")
    streams = top.integer("streams") if top.has("streams") else None
    label = top.data.get("label", "")
    if not isinstance(label, str):
        top.wrong("label", f"must be a string, not {kind_of(label)}")
    sync = _each(top, "sync", _policy)
    order = _each(top, "order", _order)
    flags = _each(top, "flags", _flags)
    if top.problems.found:
        return None
    return Plan(sync, order, flags, cast(Launch, launch), cast(Scheduler, scheduler), streams, str(label))


def _each(top: Fields, name: str, read: Callable[[object, str, Problems], T | None]) -> dict[str, T]:
    """The entries of an optional table, each read by *read*; what is wrong is recorded and left out."""
    table = top.table(name) if top.has(name) else None
    if table is None:
        return {}
    pairs = ((key, read(value, table.at(key), top.problems)) for key, value in table.data.items())
    return {key: value for key, value in pairs if value is not None}


def _policy(value: object, key: str, problems: Problems) -> SyncPolicy | None:
    if isinstance(value, Mapping):
        return _tabulated(Fields(value, key, problems))
    return _word(value, key, problems, parse_policy)


def _order(value: object, key: str, problems: Problems) -> Order | None:
    if not isinstance(value, Mapping):
        return _word(value, key, problems, parse_order_word)
    fields = Fields(value, key, problems)
    fields.only(("name", "table"))
    name = fields.text("name")
    tiles = _triples(fields)
    return None if name is None or tiles is None else TableOrder(tiles, name)


def _flags(value: object, key: str, problems: Problems) -> Flags | None:
    return _word(value, key, problems, parse_flags)


def _word(value: object, key: str, problems: Problems, parse: Callable[[str], T]) -> T | None:
    if not isinstance(value, str):
        problems.add(key, value, f"must be a string, not {kind_of(value)}")
        return None
    try:
        return parse(value)
    except InputError as error:
        for problem in error.problems:
            problems.add(key, value, problem.why)
        return None


def _triples(fields: Fields) -> tuple[Tile, ...] | None:
    rows = fields.array("table", "an array of [r, c, z]")
    if rows is None:
        return None
    good = all(isinstance(row, list) and len(row) == 3 and all(map(_is_small, row)) for row in rows)
    if not good:
        fields.wrong("table", f"must be an array of [r, c, z], all integers of 0 to {LARGEST}")
        return None
    return tuple((row[0], row[1], row[2]) for row in rows)


def _tabulated(fields: Fields) -> TabulatedPolicy | None:
    """The policy of a table, or None where a field is wrong or an array has another length than its grid."""
    before = len(fields.problems.found)
    fields.only(_TABULATED)
    name = fields.text("name")
    numbers = [fields.integer(key) for key in ("semaphores", "steps", "slice_steps")]
    grids = [fields.integers(key, (3,)) for key in ("producer_grid", "consumer_grid")]
    if len(fields.problems.found) > before:
        return None
    semaphores, steps, slice_steps = cast(list[int], numbers)
    producer, consumer = cast(list[Tile], grids)
    posts = [_entries(fields, key, producer[0] * producer[1]) for key in ("post_index", "post_add")]
    waits = [_wait_table(table, consumer[0] * consumer[1] * steps) for table in fields.tables("wait_tables")]
    if len(fields.problems.found) > before:
        return None
    post_index, post_add = cast(list[Entries], posts)
    policy = TabulatedPolicy(
        str(name), semaphores, producer, consumer, steps, slice_steps, post_index, post_add,
        tuple(cast(list[WaitTable], waits)),
    )  # fmt: skip
    if policy.semaphores < _most(policy):
        fields.wrong("semaphores", f"the tables use semaphores up to {_most(policy) - 1}")
        return None
    return policy


def _most(policy: TabulatedPolicy) -> int:
    waits = (np.asarray(table.index) + np.asarray(table.count) for table in policy.wait_tables)
    return max(max(policy.post_index) + 1, *(int(ends.max()) for ends in waits), 0)


def _wait_table(fields: Fields | None, length: int) -> WaitTable | None:
    if fields is None:
        return None
    fields.only(_WAIT)
    index, target, count = (_entries(fields, key, length) for key in _WAIT)
    return None if index is None or target is None or count is None else WaitTable(index, target, count)


def _entries(fields: Fields, name: str, length: int) -> Entries | None:
    values = fields.array(name, f"an array of {length} integers")
    if values is None:
        return None
    if len(values) != length or not all(map(_is_small, values)):
        fields.wrong(name, f"must hold {length} integers, all 0 or more and at most {LARGEST}")
        return None
    return tuple(values)


def _is_small(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST
