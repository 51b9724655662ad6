"""cuSync's Fig. 1: two 12 x 8 products of 4 x 4 tiles on four SMs. Stream order takes 4 rounds, tile semaphores 3."""

import pytest

from cusim.engine.cost import block_cost
from cusim.engine.predict import predict
from cusim.engine.result import Prediction
from cusim.machine.machine import Machine
from cusim.policies.base import SyncPolicy
from cusim.policies.orders import RowOrder, order_table
from cusim.policies.plan import Plan
from cusim.policies.row import RowPolicy
from cusim.policies.tile import TilePolicy
from cusim.program.build import gemm_kernel
from cusim.program.kernel import Gemm
from cusim.program.program import Program
from tests.engine_programs import fits, program_of, tiny

SMS = 4


@pytest.fixture(scope="module")
def program() -> Program:
    """C = A x B and E = C x D; a tile of E reads the two tiles of its row of C, one at each k step."""
    first = gemm_kernel("C", Gemm(12, 8, 8), (4, 4, 4), fits(1))
    second = gemm_kernel("E", Gemm(12, 8, 8), (4, 4, 4), fits(1), a="C")
    return program_of(first, second, name="figure 1")


@pytest.fixture(scope="module")
def machine() -> Machine:
    # The consumer arrives 1 ps after the producer: at the same instant the order would be the seed's to choose.
    return tiny(SMS, "launch.wait_value_ps=1ps")


def tile_ps(program: Program, machine: Machine) -> int:
    kernel = program.kernel("C")
    cost = block_cost(kernel, machine, order_table(RowOrder(), kernel.grid), 1)
    return cost.prologue_ps + kernel.steps * cost.step_ps + cost.tail_ps


def result(program: Program, machine: Machine, policy: SyncPolicy | None) -> Prediction:
    plan = Plan() if policy is None else Plan(sync={"C>E": policy}, launch="wait-value")
    predicted = predict(program, machine, plan)
    assert isinstance(predicted, Prediction)
    return predicted


def rounds_of(predicted: Prediction, kernel: str, tile: int) -> list[int]:
    """The round in which each tile ran, in row order, where every tile keeps to the rounds."""
    tiles = predicted.trace.tiles
    mine = tiles["kernel"] == predicted.trace.kernels.index(kernel)
    by_tile = sorted(zip(tiles["r"][mine], tiles["c"][mine], tiles["placed"][mine], tiles["end"][mine], strict=True))
    assert all(end - placed == tile and placed % tile == 0 for _, _, placed, end in by_tile)
    return [int(placed) // tile for _, _, placed, _ in by_tile]


def test_both_kernels_are_three_by_two_tiles_of_one_length(program: Program, machine: Machine) -> None:
    assert [kernel.grid for kernel in program.kernels] == [(3, 2, 1), (3, 2, 1)]
    assert tile_ps(program, machine) > 0


def test_stream_order_takes_four_rounds_and_leaves_four_slots_idle(program: Program, machine: Machine) -> None:
    predicted, tile = result(program, machine, None), tile_ps(program, machine)
    assert (predicted.rounds, predicted.waits) == (4, 0)
    assert predicted.span_ps == predicted.total_ps == 4 * tile
    assert rounds_of(predicted, "C", tile) == [0, 0, 0, 0, 1, 1]
    assert rounds_of(predicted, "E", tile) == [2, 2, 2, 2, 3, 3]


@pytest.mark.parametrize(("policy", "waits"), [(TilePolicy(), 12), (RowPolicy(), 6)], ids=["tile", "row"])
def test_semaphores_take_three_rounds_with_no_idle_slot(
    program: Program, machine: Machine, policy: SyncPolicy, waits: int
) -> None:
    predicted, tile = result(program, machine, policy), tile_ps(program, machine)
    assert (predicted.rounds, predicted.waits) == (3, waits)
    assert predicted.span_ps == predicted.total_ps == 3 * tile
    assert rounds_of(predicted, "C", tile) == [0, 0, 0, 0, 1, 1]
    assert rounds_of(predicted, "E", tile) == [1, 1, 2, 2, 2, 2]
    worked = (predicted.trace.tiles["end"] - predicted.trace.tiles["placed"]).sum()
    assert worked == SMS * predicted.span_ps
    assert predicted.trace.tiles["wait_total"].sum() == 0


def test_no_sm_holds_two_blocks_of_the_figure(program: Program, machine: Machine) -> None:
    tiles = result(program, machine, TilePolicy()).trace.tiles
    places = set(zip(tiles["sm"].tolist(), tiles["lane"].tolist(), tiles["placed"].tolist(), strict=True))
    assert len(places) == 12
    assert set(tiles["lane"].tolist()) == {0}
    assert set(tiles["sm"].tolist()) == set(range(SMS))
