"""A slot just left takes the refill time until its next block starts; a slot that was free takes none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cusim.engine.dispatcher import RULES, Rule
from cusim.policies.plan import Plan
from cusim.program.kernel import BlockResources
from tests.engine_programs import cost, fits, grid_kernel, plan, program_of, ran, tiny

REFILL = "dispatch.refill_ps=50ps"


@pytest.mark.parametrize("rule", RULES)
def test_blocks_through_one_slot_are_a_refill_apart(rule: Rule) -> None:
    program = program_of(grid_kernel("k", (3, 1)))
    run = ran(program, tiny(1, REFILL), Plan(), 1000, rule)
    assert run.of("k", "placed") == [0, 1050, 2100]
    assert run.total == 3100


def test_each_slot_refills_by_itself() -> None:
    """Five blocks on two slots: the spacing of placements adds up, refills do not."""
    program = program_of(grid_kernel("k", (5, 1)))
    run = ran(program, tiny(2, REFILL, "dispatch.block_ps=10ps"), Plan(), 1000)
    assert run.of("k", "placed") == [0, 10, 1050, 1060, 2100]


def test_persistent_blocks_take_their_next_tile_at_once() -> None:
    looping, buffers = grid_kernel("k", (3, 1))
    run = ran(program_of((replace(looping, persistent=True), buffers)), tiny(1, REFILL), Plan(), 1000)
    assert run.of("k", "placed") == [0, 1000, 2000]


@pytest.mark.parametrize("per_sm", [1, 2], ids=["alike", "smaller"])
def test_another_kernels_block_refills_the_slot_too(per_sm: int) -> None:
    program = program_of(grid_kernel("a", (1, 1)), grid_kernel("b", (1, 1), block=fits(per_sm)))
    run = ran(program, tiny(1, REFILL, "launch.event_ps=300ps"), plan(program, deps=()), 1000)
    assert run.of("b", "placed") == [1050]


def test_a_slot_that_was_free_is_filled_at_once_while_others_refill() -> None:
    """b queues behind a, whose third block takes the first one's slot; b's small block fits beside the second."""
    program = program_of(grid_kernel("a", (3, 1)), grid_kernel("b", (1, 1), block=BlockResources(32, 16, 0)))
    machine = tiny(2, REFILL, "launch.event_ps=300ps", "dispatch.block_ps=10ps")
    run = ran(program, machine, plan(program, deps=()), {"a": cost(1000), "b": cost(9)})
    assert run.of("a", "placed") == [0, 10, 1050]
    assert run.of("b", "placed") == [1010]
