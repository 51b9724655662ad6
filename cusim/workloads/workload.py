"""A workload: the programs that contend with each other, and what to choose for each policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cusim.program.program import Program


@dataclass(frozen=True, slots=True)
class Choice:
    """What to run under one policy: a program, whose tiles and split-K may be the policy's own, flags and an order.

    *flags* are letters of W, R, T, A (empty: none) and *order* is an order's word, both for every kernel. *source*
    says where the choice comes from.
    """

    program: Program
    flags: str
    order: str
    source: str


@dataclass(frozen=True)
class Workload:
    """A named set of kernels of *m* rows for the machine named *machine*.

    *machine_overrides* are ``key=value`` settings that the workload needs of any machine (Fig. 1 has four SMs).
    *choices* has an entry for ``stream``, ``row`` and ``tile``; :meth:`choice` serves every policy word. *text* is the
    TOML of a workload that is shipped as a file, comments and all.
    """

    name: str
    machine: str
    m: int
    choices: Mapping[str, Choice]
    machine_overrides: tuple[str, ...] = ()
    source: str = ""
    text: str = ""

    @property
    def program(self) -> Program:
        """The program of the baseline, one kernel after the other."""
        return self.choices["stream"].program

    @property
    def same_programs(self) -> bool:
        """True when every policy runs the same tiles and splits, so that differences are synchronisation alone."""
        return len({choice.program.digest for choice in self.choices.values()}) == 1

    def choice(self, policy: str) -> Choice:
        """The choice for a policy such as ``tile`` or ``batched:2``; what is neither stream nor tile goes with row.

        Flags that belong to tile policies (R, A) are wrong for policies that share semaphores, hence row's.
        """
        word = policy.partition(":")[0]
        return self.choices.get(word, self.choices["row"])
