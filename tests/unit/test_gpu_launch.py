"""Launches as steps, and what becomes of stamps: without a device."""

import numpy as np
import pytest

from backend_gpu.abi import STAMPS
from backend_gpu.bench import Mode, operands
from backend_gpu.device import Loaded
from backend_gpu.elements import EPSILON, fill_nan, narrow, random_matrix, widen
from backend_gpu.launch import Fork, Hold, Join, Start, consumer_first, steps_of, streams_of, withheld
from backend_gpu.record import lanes, make_trace, stamped_all
from cusim.errors import InputError
from cusim.policies.flags import Flags
from cusim.policies.orders import order_table
from cusim.policies.plan import LAUNCHES, Plan
from cusim.policies.registry import build_plan
from cusim.trace.formats import read_trace, write_trace
from tests.engine_programs import tiny
from tests.gpu_programs import bench_of, pair, plan_of


def test_one_stream_launches() -> None:
    program = pair()
    assert steps_of(program, Plan()) == (Start(0, 0), Start(1, 0))
    assert steps_of(program, Plan(launch="graph")) == (Start(0, 0), Start(1, 0))
    assert steps_of(program, plan_of(program, "row", "pdl")) == (Start(0, 0), Start(1, 0, early=True))


@pytest.mark.parametrize(
    ("launch", "hold"),
    [
        ("wait-first", [Hold(1, 0, 1, "kernel")]),
        ("wait-all", [Hold(1, 0, None, "kernel")]),
        ("wait-value", [Hold(1, 0, 1, "value")]),
        ("none", []),
    ],
)
def test_side_by_side_launches_fork_hold_and_join(launch: str, hold: list[Hold]) -> None:
    program = pair()
    steps = steps_of(program, plan_of(program, "row", launch))
    assert steps == (Fork(1), Start(0, 0), *hold, Start(1, 1), Join(1))
    assert streams_of(steps) == 2


def test_flag_w_leaves_the_hold_out() -> None:
    program = pair()
    plan = plan_of(program, "row", "wait-first")
    free = Plan(plan.sync, flags={"down": Flags(W=True)}, launch="wait-first")
    assert not [step for step in steps_of(program, free) if isinstance(step, Hold)]


def test_fewer_streams_than_kernels() -> None:
    program = pair()
    one = Plan(plan_of(program, "row").sync, launch="none", streams=1)
    assert steps_of(program, one) == (Start(0, 0), Start(1, 0))


def test_planted_deadlocks_leave_out_or_put_first() -> None:
    program = pair()
    assert withheld(steps_of(program, plan_of(program, "row", "wait-first")), 0) == (Fork(1), Start(1, 1), Join(1))
    first = consumer_first(program, 1, 8)
    assert first.index(Start(1, 0)) < first.index(Hold(1, 1, 8, "value")) < first.index(Start(0, 1))


def test_what_graph_and_pdl_issue_is_what_the_simulator_predicts() -> None:
    """One stream, and an early start exactly where the simulator lets a kernel come before the one ahead has ended."""
    from cusim.engine.predict import predict
    from cusim.engine.result import Prediction

    assert {"graph", "pdl"} <= set(LAUNCHES)
    program = pair()
    for policy, launch, overlapped in (("stream", "graph", False), ("stream", "pdl", False), ("row", "pdl", True)):
        plan = build_plan(program, policy=policy, launch=launch)
        assert (plan.launch, plan.overlapped) == (launch, overlapped)
        result = predict(program, tiny(4, "launch.early_wait_ps=1ps", "launch.early_ps=1ps"), plan)
        assert isinstance(result, Prediction)
        steps = steps_of(program, plan)
        assert streams_of(steps) == 1
        events = result.trace.events
        early = [isinstance(step, Start) and step.early for step in steps]
        assert early[1] == bool(events["arrive"][1] < events["done"][0])
    with pytest.raises(InputError, match="an overlapped plan has no stream order"):
        build_plan(program, policy="row", launch="graph")


def test_lanes_are_the_lowest_that_are_free() -> None:
    sm = np.array([0, 0, 1, 0, 0])
    begin, end = np.array([0, 5, 5, 10, 12]), np.array([10, 20, 9, 15, 30])
    assert lanes(sm, begin, end).tolist() == [0, 1, 0, 0, 2]


def stamped(program_grid: tuple[int, int, int], start: int) -> np.ndarray:
    count = int(np.prod(program_grid))
    rows = np.zeros(count, STAMPS)
    for place, row in enumerate(rows):
        begin = start + 100 * place
        row["placed"], row["ready"], row["first_load"], row["end"], row["posted"] = begin + np.array(
            [0, 10, 20, 90, 95]
        )
        row["where"] = place % 3 | (count - 1 - place) << 32
        row["waited"] = 7
    return rows.view(np.uint64)


def test_stamps_become_a_trace_that_files_keep(tmp_path: object) -> None:
    program = pair()
    plan = plan_of(program, "row", "pdl", order="up:column,down:row")
    loaded = [Loaded(k.name, k.blocks, 256, 128, 0, 2) for k in program.kernels]
    stamps = [stamped(kernel.grid, 1_000_000 + 400 * place) for place, kernel in enumerate(program.kernels)]
    assert stamped_all(stamps)
    trace = make_trace(program, plan, loaded, stamps, {"kind": "measured"}, epoch=4)
    tiles = trace.tiles
    assert (tiles["placed"][0], tiles["placed"][12], trace.span_ps) == (0, 400_000, (400 + 1400 + 90) * 1000)
    assert tiles["block"][:12].tolist() == list(range(12))[::-1]
    assert set(tiles["sm"]) == {0, 1, 2}
    assert set(tiles["epoch"]) == {4}
    assert set(tiles["wait_total"]) == {7000}
    table = order_table(plan.order_of("up"), program.kernel("up").grid)
    assert np.array_equal(np.stack([tiles[x][:12] for x in "rcz"], axis=1), table)
    assert (tiles["posted"][12:] == -1).all()  # nobody reads down
    assert trace.events["launch"].tolist() == [0, 400_000]
    assert trace.meta["timer_clamped"] == 0
    path = f"{tmp_path}/measured.npz"
    write_trace(trace, path)
    assert read_trace(path) == trace


def test_stamps_that_a_coarse_timer_turns_round_are_put_level_and_counted() -> None:
    program = pair()
    stamps = [stamped(kernel.grid, 1_000) for kernel in program.kernels]
    stamps[0].view(STAMPS)["first_load"][3] -= np.uint64(32)
    loaded = [Loaded(k.name, k.blocks, 256, 128, 0, 2) for k in program.kernels]
    trace = make_trace(program, Plan(), loaded, stamps, {})
    assert trace.meta["timer_clamped"] == 1
    assert (trace.tiles["first_load"] >= trace.tiles["ready"]).all()


def test_a_ticket_without_stamps_is_seen() -> None:
    rows = stamped((2, 2, 1), 1_000)
    rows.view(STAMPS)["placed"][2] = 0
    assert not stamped_all([rows])


@pytest.mark.parametrize("dtype", ["fp16", "bf16", "fp32"])
def test_elements_round_to_the_nearest_and_back(dtype: str) -> None:
    values = np.random.default_rng(1).standard_normal(1000, dtype=np.float32)
    back = widen(np, narrow(np, values, dtype), dtype)
    assert np.max(np.abs(back - values) / np.abs(values)) <= EPSILON[dtype] / 2
    stored = random_matrix(np, (4, 5), 0.5, dtype, 3)
    fill_nan(stored, dtype)
    assert np.isnan(widen(np, stored, dtype)).all()


@pytest.mark.parametrize(("launch", "flags"), [("wait-first", (2, 2)), ("pdl", (2 | 8, 2 | 16))])
def test_parameters_name_the_operands_and_carry_the_plans_flags(launch: str, flags: tuple[int, int]) -> None:
    program = pair()
    bench = bench_of(program, plan_of(program, "row", launch))
    rows = bench._params(0, Mode())
    assert tuple(rows["flags"].tolist()) == flags
    assert rows["sem_out"][0, 0] == rows["sem_in"][1, 0] != 0
    assert rows["a"][1] == rows["c"][0]
    assert rows["lda"][1] == 128  # 125 columns in rows of a multiple of 8
    assert operands(program.kernel("down")) == ("up", "down.b", "down")


def test_plain_pdl_waits_at_the_start_and_stream_order_takes_no_tickets() -> None:
    program = pair()
    pdl = bench_of(program, Plan(launch="pdl"))._params(0, Mode())
    assert pdl["flags"].tolist() == [8, 32]
    assert bench_of(program, Plan())._params(0, Mode())["flags"].tolist() == [0, 0]
