"""What there is to choose from, each with its first sentence."""

from __future__ import annotations

from collections.abc import Sequence

from cusim.machine.load import load_machine, machine_names
from cusim.policies.plan import LAUNCHES
from cusim.policies.registry import describe, parse_policy, policy_names
from cusim.report.line import Line, facts, prose
from cusim.report.result import STREAM_BEST
from cusim.workloads import build_workload, workload_names

_ORDERS = (
    ("row", "row after row, as a GPU numbers the blocks of a grid"),
    ("column", "column after column"),
    ("group:G", "bands of G rows, each walked column after column: the L2-friendly swizzle"),
    ("FILE.json", "a table of [r, c, z], one for each ticket"),
)
_LAUNCHES = {
    "stream": "kernels one after the other on one stream",
    "wait-first": "a wait-kernel holds the consumer back until the first producer block has started",
    "wait-all": "a wait-kernel holds the consumer back until every producer block has started",
    "wait-value": "as wait-first, by a stream wait-value: no block, no slot",
    "none": "nothing holds the consumer back (flag W)",
    "graph": "stream order replayed as a CUDA graph (policy stream): shorter gaps between kernels",
    "pdl": "programmatic dependent launch: one stream, the next kernel comes once all blocks of the one before have "
    "started, and waits for that kernel (policy stream) or for tiles; no wait-kernel, no deadlock",
}
_STREAMS = {
    "stream": "Kernels run one after the other, without semaphores; every policy is compared with it.",
    STREAM_BEST: (
        "The stronger rival: stream order with each kernel at the tile, order and split-K that suit it best on the "
        "machine, as far as the model can tell (to a percent). Kernels whose time was measured keep their tile. Only a "
        "policy that beats it too, beyond the error band, is recommended; --no-best-stream leaves it out."
    ),
}
_FLAGS = (
    ("W", "no wait-kernel: launch none"),
    ("R", "the operand that is not waited for is loaded first"),
    ("T", "no custom tile order: blocks take the tile of their block index"),
    ("A", "post by a release store instead of an atomic add"),
)
_WORDS = (
    ("waves", "tiles / (blocks per SM x SMs) of one kernel, a fraction, as Nsight Compute prints it"),
    (
        "rounds",
        "whole waves: the sum of ceil(tiles / slots) over stretches with no barrier between them; it adds kernels up "
        "though a tile of one may take longer than a tile of another, so compare times, not rounds",
    ),
    ("working, waiting, empty", "shares of the SMs' time: computing, held by a block that waits, held by nobody"),
    ("vs stream, vs best", "how many times as fast as the best stream plan at the tiles asked for, and as stream-best"),
    (
        "deadlock",
        "safe: whatever the order of blocks; if arrival order: while kernels place blocks in the order in which they "
        "arrive; can deadlock: an order of blocks that nothing forbids hangs it",
    ),
)


def catalogue_lines() -> list[Line]:
    """Workloads, policies, orders, flags, launches, machines, and the words of the tables."""
    sections = (
        ("workloads", [(name, _workload(name)) for name in workload_names()]),
        ("policies", [*_STREAMS.items(), *((n, _plain(describe(n))) for n in policy_names())]),
        ("orders", _ORDERS),
        ("flags", _FLAGS),
        ("launches", [(name, _LAUNCHES.get(name, "")) for name in LAUNCHES]),
        ("machines", [(name, _machine(name)) for name in machine_names()]),
        ("words", _WORDS),
    )
    width = max(len(name) for _, rows in sections for name, _ in rows)
    lines: list[Line] = []
    for title, rows in sections:
        lines += [Line(title, "head"), *_section(rows, width), Line("")]
    return [*lines, prose("cusim show NAME shows one of the workloads, policies or machines in detail.")]


def policy_lines(word: str) -> list[Line]:
    """A policy's whole docstring, and that of its semaphores, posts and waits."""
    if word in _STREAMS:
        return [Line(word, "head"), prose(_STREAMS[word])]
    policy = parse_policy(word)
    kind = type(policy)
    parts = (("", kind), ("size", kind.size), ("posts", kind.posts), ("waits", kind.waits))
    rows = [(name, _plain(part.__doc__)) for name, part in parts if name]
    return [Line(policy.name, "head"), prose(_plain(kind.__doc__)), Line(""), *_section(rows, 5)]


def _plain(docstring: str | None) -> str:
    """A docstring on one line, without its emphasis."""
    return " ".join((docstring or "").split()).replace("*", "").replace("``", "")


def _section(rows: Sequence[tuple[str, str]], width: int) -> list[Line]:
    return facts([(f"  {name:<{width}}", text) for name, text in rows])


def _workload(name: str) -> str:
    return build_workload(name, "h200").source


def _machine(name: str) -> str:
    machine = load_machine(name)
    return f"{machine.gpu}, {machine.limits.sms} SMs, {machine.state}, times ±{machine.band_pct:g} %"
