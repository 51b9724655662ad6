"""The clock under load against its closed form: it falls with the square of the tensor work that is done at once.

Blocks that keep their SMs' pipes full, on a share b of all SMs, slow down by s: the clock is 1 - droop (b / s)^2 of the
one that few blocks have, and s its inverse. So s^2 - s = droop b^2.
"""

from __future__ import annotations

import math

import pytest

from cusim.engine.cost import FULL_PIPE
from cusim.engine.soft import norm
from cusim.policies.flags import Flags
from cusim.policies.plan import Plan
from cusim.policies.row import RowPolicy
from tests.engine_programs import cost, fits, grid_kernel, plan, program_of, ran, tiny

TILE = 1_000_000


def slowdown(droop: float, busy: float) -> float:
    """The root of the module's equation."""
    return (1 + math.sqrt(1 + 4 * droop * busy**2)) / 2


@pytest.mark.parametrize("droop", [0.05, 0.12, 0.3, 0.6, 0.99])
@pytest.mark.parametrize("blocks", [1, 3, 4, 7, 8])
def test_full_pipes_on_some_of_eight_sms_slow_down_by_the_root(droop: float, blocks: int) -> None:
    program = program_of(grid_kernel("k", (blocks, 1)))
    run = ran(program, tiny(8, f"clock_droop={droop}"), Plan(), {"k": cost(TILE, pipe=FULL_PIPE)})
    assert run.total == pytest.approx(TILE * slowdown(droop, blocks / 8), rel=2e-4)


@pytest.mark.parametrize(("per_sm", "pipe"), [(1, 0.5), (2, 0.25), (2, 1.0), (3, 0.5)])
def test_what_counts_is_the_work_of_the_pipes_and_a_pipe_is_no_more_than_busy(per_sm: int, pipe: float) -> None:
    program = program_of(grid_kernel("k", (4 * per_sm, 1), block=fits(per_sm)))
    run = ran(program, tiny(4, "clock_droop=0.2"), Plan(), {"k": cost(TILE, pipe=round(pipe * FULL_PIPE))})
    shared = max(1.0, per_sm * pipe)
    assert run.total == pytest.approx(TILE * shared * slowdown(0.2, min(1.0, per_sm * pipe)), rel=2e-4)


def test_blocks_without_tensor_work_keep_the_clock() -> None:
    program = program_of(grid_kernel("k", (4, 1)))
    assert ran(program, tiny(4, "clock_droop=0.5"), Plan(), TILE).total == TILE


@pytest.mark.parametrize("order", [1.5, 4, 1000])
@pytest.mark.parametrize("asked", [0.5, 1.1, 3.0])
@pytest.mark.parametrize("droop", [0.12, 0.6])
def test_slowed_by_memory_the_pipes_do_less_at_once_and_the_clock_recovers(
    order: float, asked: float, droop: float
) -> None:
    """The speed found is one at which clock, memory and their norm agree."""
    machine = tiny(4, f"clock_droop={droop}", "hbm_bytes_per_s=4TB/s", f"contention_sharpness={order}")
    program = program_of(grid_kernel("k", (4, 1)))
    run = ran(program, machine, Plan(), {"k": cost(TILE, pipe=FULL_PIPE, hbm=round(asked * 10**12))})
    slow = run.total / TILE
    clock = 1 - droop / slow**2
    assert slow == pytest.approx(norm((1 / clock, asked), order), rel=3e-3)


@pytest.mark.parametrize(("hbm", "spared"), [(0, 0), (2 * 10**12, 500)])
def test_loads_that_run_ahead_of_a_wait_spare_what_memory_adds_and_not_what_the_clock_does(
    hbm: int, spared: int
) -> None:
    """c keeps all SMs slow, by the clock or by asking for twice what HBM has. b stands still for a with two stages of
    its own operand, half of all it loads, on their way: 1000 ps of its loop, half of which is HBM's doing.
    """
    program = program_of(
        grid_kernel("a", (1, 4)), grid_kernel("b", (1, 1), 4, a="a", stages=2), grid_kernel("c", (1, 1))
    )
    settings = ("hbm_bytes_per_s=1TB/s", "launch.event_ps=1ps", "clock_droop=0.9")
    costs = {"a": cost(10_000), "b": cost(1000), "c": cost(10**6, hbm=hbm, pipe=0 if hbm else FULL_PIPE)}
    run = ran(program, tiny(6, *settings), plan(program, policy=RowPolicy(), flags=Flags(R=True)), costs)
    slow = 2.0 if hbm else slowdown(0.9, 1 / 6)
    begin = max(run.of("a", "left"))
    assert run.of("b", "first_load") == [begin]
    assert run.of("b", "left")[0] - begin == pytest.approx((4000 - spared) * slow, abs=2)
