"""The words of the command line for policies, orders and launches, and what they stand for."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from cusim.errors import did_you_mean, refuse
from cusim.files import read_file
from cusim.policies.base import SyncPolicy
from cusim.policies.batched import BatchedPolicy
from cusim.policies.orders import ColumnOrder, GroupOrder, Order, RowOrder, TableOrder
from cusim.policies.plan import LAUNCHES, Launch
from cusim.policies.row import RowPolicy
from cusim.policies.tile import TilePolicy
from cusim.program.fields import LARGEST

#: Words that stand alone, and words that take a number after a colon.
_PLAIN: Mapping[str, Callable[[], SyncPolicy]] = {"row": RowPolicy, "tile": TilePolicy}
_NUMBERED: Mapping[str, Callable[[int], SyncPolicy]] = {"batched": BatchedPolicy}
_ORDERS: Mapping[str, Callable[[], Order]] = {"row": RowOrder, "column": ColumnOrder}
_ORDER_FORMS = ("row", "column", "group:G", "a .json table")
_GROUP = re.compile(r"(?:group:|g=)(\d+)")


def policy_names() -> tuple[str, ...]:
    """Every registered policy, as it is written; ``batched`` takes a number of rows: ``batched:4``."""
    return tuple(sorted((*_PLAIN, *_NUMBERED)))


def parse_policy(word: str) -> SyncPolicy:
    """The policy of a word: ``tile``, ``row`` or ``batched:4``; InputError for any other."""
    name, colon, number = word.strip().partition(":")
    if name in _PLAIN and not colon:
        return _PLAIN[name]()
    if name in _NUMBERED:
        count = 2 if not colon else _positive(number)
        if count is not None:
            return _NUMBERED[name](count)
        raise refuse("--policy", "policy", word, f"after {name}: stands a number from 1, as in {name}:4")
    if name in _PLAIN:
        raise refuse("--policy", "policy", word, f"{name} takes no number")
    forms = (*_PLAIN, *(f"{name}:N" for name in _NUMBERED), "stream")
    raise refuse("--policy", "policy", word, did_you_mean(name, forms))


def describe(policy: SyncPolicy | str) -> str:
    """The first sentence of a policy's docstring, for lists."""
    kind = type(parse_policy(policy) if isinstance(policy, str) else policy)
    text = " ".join((inspect.getdoc(kind) or "").split())
    return re.split(r"(?<=\.)\s", text, maxsplit=1)[0]


def parse_order(word: str) -> Order:
    """The order of a word: ``row``, ``column``, ``group:8``, ``g=8`` or the path of a ``.json`` table.

    A table is an array of [r, c, z], or of [r, c] where nothing is split, in the sequence of the tickets. InputError
    for any other word and for a file that holds something else.
    """
    return _table(word.strip()) if word.strip().endswith(".json") else parse_order_word(word)


def parse_order_word(word: str) -> Order:
    """As :func:`parse_order`, without files."""
    given = word.strip()
    if given in _ORDERS:
        return _ORDERS[given]()
    group = _GROUP.fullmatch(given)
    if group is not None and (rows := _positive(group[1])) is not None:
        return GroupOrder(rows)
    if given.startswith(("group", "g=")):
        raise refuse("--order", "order", word, "a group has a number of rows from 1, as in group:8")
    raise refuse("--order", "order", word, did_you_mean(given, _ORDER_FORMS))


def parse_launch(word: str) -> Launch:
    """The launch protocol of a word; InputError for one that is not in ``LAUNCHES``."""
    given = word.strip()
    if given not in LAUNCHES:
        raise refuse("--launch", "launch", word, did_you_mean(given, LAUNCHES))
    return cast(Launch, given)


def _positive(text: str) -> int | None:
    """The integer of *text* if it is one from 1 to the largest allowed."""
    digits = text if text.isascii() and text.isdigit() and len(text) <= 10 else "0"
    return int(digits) if 1 <= int(digits) <= LARGEST else None


def _table(path: str) -> TableOrder:
    try:
        rows = json.loads(read_file(Path(path)).decode())
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not a text file"
        raise refuse("--order", "order", path, f"cannot be read: {why}") from None
    except (ValueError, RecursionError) as error:
        why = f"{error.msg} in line {error.lineno}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise refuse(path, "order", None, f"not JSON: {why.partition(';')[0]}") from None
    if not isinstance(rows, list) or not rows:
        raise refuse(path, "order", None, "must be an array of [r, c, z] or [r, c], one for each ticket")
    for ticket, row in enumerate(rows):
        if not _is_tile(row):
            raise refuse(path, f"order[{ticket}]", row, f"must be [r, c, z] or [r, c], each 0 to {LARGEST}")
    tiles = tuple((row[0], row[1], row[2] if len(row) == 3 else 0) for row in rows)
    return TableOrder(tiles, path)


def _is_tile(row: object) -> bool:
    if not isinstance(row, list) or len(row) not in (2, 3):
        return False
    return all(isinstance(x, int) and not isinstance(x, bool) and 0 <= x <= LARGEST for x in row)
