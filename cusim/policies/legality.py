"""Whether the flags W, R, T and A of a plan are legal: cuSync's two published rules, judged with numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np

from cusim.policies.base import SyncPolicy
from cusim.policies.plan import Plan
from cusim.policies.semaphores import posted
from cusim.program.depends import TileDep, dependences
from cusim.program.kernel import Kernel
from cusim.program.program import Program

Status: TypeAlias = Literal["legal", "warn", "refused"]


@dataclass(frozen=True, slots=True)
class FlagVerdict:
    """What is to be said of one *flag* (``W R T A``) at one dependence or kernel, *where*; *reason* is a sentence."""

    where: str
    flag: str
    status: Status
    reason: str


def legality(program: Program, plan: Plan, slots: Mapping[str, int]) -> tuple[FlagVerdict, ...]:
    """The verdicts of an overlapped plan, flag by flag in the order W, R, T, A; a stream plan has none.

    *slots*: by kernel, the blocks that the whole GPU holds at once (blocks per SM x SMs). The rules for W and T are
    those of the paper (§IV-C) and of the repository's comments; neither is proved, so *warn* never means *wrong*: the
    deadlock analysis decides that.
    """
    if not plan.overlapped:
        return ()
    deps = dependences(program)
    waves = {kernel.name: Fraction(kernel.blocks, slots[kernel.name]) for kernel in program.kernels}
    return (
        *_wait_kernel(deps, plan, waves),
        *_reordered(program, deps, plan),
        *_hardware_order(program, deps, plan, waves),
        *_stores(deps, plan),
    )


def store_refusal(policy: SyncPolicy, dep: TileDep) -> str | None:
    """Why flag A is wrong with this policy, or None: a store may replace an atomic add where only one post arrives."""
    posts = posted(policy, dep)
    arrivals = np.bincount(posts.index, minlength=1)
    busiest = int(np.argmax(arrivals))
    if arrivals[busiest] <= 1:
        return None
    tiles = len(set(posts.tile[posts.index == busiest].tolist()))
    posters = f"{tiles} tiles" if tiles > 1 else "one tile more than once"
    return f"semaphore {busiest} of policy {policy.name} is posted by {posters}: a store keeps only the last post"


def _wait_kernel(deps: Sequence[TileDep], plan: Plan, waves: Mapping[str, Fraction]) -> Iterator[FlagVerdict]:
    for dep in deps:
        if not (plan.flags_of(dep.producer).W or plan.flags_of(dep.consumer).W):
            continue
        pair = waves[dep.producer] + waves[dep.consumer]
        stages = _connected(dep, deps)
        total = sum((waves[name] for name in stages), Fraction(0))
        yield _judged(
            dep.name, "W",
            (pair < 2, f"both kernels take {_shown(pair)} waves, and the paper allows less than 2"),
            (total <= 1, f"all {len(stages)} stages take {_shown(total)}, and the repository allows 1"),
        )  # fmt: skip


def _hardware_order(
    program: Program, deps: Sequence[TileDep], plan: Plan, waves: Mapping[str, Fraction]
) -> Iterator[FlagVerdict]:
    for kernel in program.kernels:
        if not plan.flags_of(kernel.name).T:
            continue
        incoming = [dep for dep in deps if dep.consumer == kernel.name]
        if not incoming:
            why = "the kernel waits for no other, so the hardware's order changes its time, not its safety"
            yield FlagVerdict(kernel.name, "T", "legal", why)
        for dep in incoming:
            pair = waves[dep.producer] + waves[dep.consumer]
            stages = _connected(dep, deps)
            total = sum((waves[name] for name in stages), Fraction(0))
            most = len(stages) - 1
            yield _judged(
                dep.name, "T",
                (pair <= 2, f"both kernels take {_shown(pair)} waves, and the paper allows 2"),
                (total <= most, f"all {len(stages)} stages take {_shown(total)}, and the repository allows {most}"),
            )  # fmt: skip


def _judged(where: str, flag: str, paper: tuple[bool, str], repository: tuple[bool, str]) -> FlagVerdict:
    """Legal when both rules hold; otherwise a warning that gives the numbers of those that fail."""
    failed = [text for holds, text in (paper, repository) if not holds]
    if not failed:
        return FlagVerdict(where, flag, "legal", "inside the paper's rule and the repository's")
    heads = {(False, False): "outside both rules", (False, True): "outside the paper's rule"}
    head = heads.get((paper[0], repository[0]), "outside the repository's rule")
    return FlagVerdict(where, flag, "warn", f"{head}: {'; '.join(failed)}; it relies on the launch order")


def _reordered(program: Program, deps: Sequence[TileDep], plan: Plan) -> Iterator[FlagVerdict]:
    """R against the waits that cuSync's own multistage CUTLASS kernel makes: prologue without R, k loop with R."""
    for dep in deps:
        kernel = program.kernel(dep.consumer)
        reordered = plan.flags_of(dep.consumer).R
        policy = plan.sync.get(dep.name)
        missed = policy is not None and _multistage_misses(kernel, policy, dep, reordered)
        if missed and policy is not None:
            yield FlagVerdict(dep.name, "R", "warn", _missed(kernel, policy, reordered))
        elif reordered:
            why = "the operand that is not waited for is loaded before the wait"
            yield FlagVerdict(dep.name, "R", "legal", why)


def _multistage_misses(kernel: Kernel, policy: SyncPolicy, dep: TileDep, reordered: bool) -> bool:
    if kernel.gemm is None or kernel.stages <= 2:
        return False
    waits = policy.waits(dep)
    return any((wait.at_k is None) != reordered for wait in waits)


def _missed(kernel: Kernel, policy: SyncPolicy, reordered: bool) -> str:
    made, lost = ("its k loop", "the one in the prologue") if reordered else ("its prologue", "those of the k loop")
    given = "with R" if reordered else "without R"
    return (
        f"{given}, cuSync's own kernel of {kernel.stages} stages waits only in {made} and would miss {lost} that "
        f"policy {policy.name} needs; cusim's kernels wait at the derived points, so the result is right"
    )


def _stores(deps: Sequence[TileDep], plan: Plan) -> Iterator[FlagVerdict]:
    for dep in deps:
        policy = plan.sync.get(dep.name)
        if policy is None or not plan.flags_of(dep.producer).A:
            continue
        refusal = store_refusal(policy, dep)
        why = refusal or "every semaphore has one poster that posts once"
        yield FlagVerdict(dep.name, "A", "refused" if refusal else "legal", why)


def _connected(dep: TileDep, deps: Sequence[TileDep]) -> frozenset[str]:
    """The stages that the dependence's kernels are linked to, directly or through others, themselves included."""
    found = {dep.producer, dep.consumer}
    while True:
        linked = [other for other in deps if found & {other.producer, other.consumer}]
        grown = found | {name for other in linked for name in (other.producer, other.consumer)}
        if grown == found:
            return frozenset(found)
        found = grown


def _shown(waves: Fraction) -> str:
    return f"{float(waves):.2f}".rstrip("0").rstrip(".")
