"""Plans: everything that is chosen for a program, and nothing that is described by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args

from cusim.policies.base import SyncPolicy
from cusim.policies.flags import Flags
from cusim.policies.orders import Order, RowOrder

Launch: TypeAlias = Literal["stream", "graph", "wait-first", "wait-all", "wait-value", "none", "pdl"]
Scheduler: TypeAlias = Literal["in-order"]

LAUNCHES: tuple[str, ...] = get_args(Launch)
SCHEDULERS: tuple[str, ...] = get_args(Scheduler)
#: Launches that need no policy: each kernel begins its work when the one before has ended. Only ``pdl`` may have them.
WITHOUT_POLICY: tuple[Launch, ...] = ("stream", "graph", "pdl")


@dataclass(frozen=True)
class Plan:
    """Policies by dependence name, orders and flags by kernel name, and how kernels are launched.

    With launch ``stream`` kernels run one after the other on one stream and no policy is used; ``graph`` replays the
    same order as a CUDA graph, with shorter gaps. With ``pdl`` (programmatic dependent launch) kernels share one stream
    and the next places blocks once all of the one before have started: they wait for that whole kernel where *sync* is
    empty, for tiles otherwise. With any other launch every kernel has a stream of its own and each dependence needs a
    policy.
    """

    sync: Mapping[str, SyncPolicy] = field(default_factory=lambda: MappingProxyType({}))
    order: Mapping[str, Order] = field(default_factory=lambda: MappingProxyType({}))
    flags: Mapping[str, Flags] = field(default_factory=lambda: MappingProxyType({}))
    launch: Launch = "stream"
    scheduler: Scheduler = "in-order"
    streams: int | None = None
    label: str = ""

    def order_of(self, kernel: str) -> Order:
        """The kernel's tile order; row order unless chosen."""
        return self.order.get(kernel, RowOrder())

    def flags_of(self, kernel: str) -> Flags:
        """The kernel's flags; none unless chosen."""
        return self.flags.get(kernel, Flags())

    @property
    def overlapped(self) -> bool:
        """True when kernels may run side by side, held apart by semaphores."""
        return bool(self.sync) if self.launch == "pdl" else self.launch not in ("stream", "graph")
