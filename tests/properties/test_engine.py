"""What holds for every simulated run, whatever the program, plan, machine and dispatch."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from hypothesis import given, settings

from cusim.engine.cost import FULL_PIPE, BlockCost
from cusim.engine.deadlock import waiting_cycle
from cusim.engine.setup import slots_of
from cusim.engine.verdict import CAN_DEADLOCK, IF_ARRIVAL, SAFE, verdict
from cusim.policies.orders import RowOrder, order_table
from cusim.policies.plan import Plan
from cusim.policies.row import RowPolicy
from cusim.policies.tile import TilePolicy
from cusim.program.depends import TileDep, dependences, needed_tiles
from cusim.program.kernel import Kernel
from cusim.trace.metrics import MachineShape, metrics
from tests.engine_programs import Ran
from tests.engine_random import Scene, scenes

EXAMPLES = settings(max_examples=60)
MANY = settings(max_examples=200)


def finished(scene: Scene) -> Ran | None:
    """The run, None where it hangs as it may."""
    run = scene.run(stuck=True)
    return None if run.finished.unfinished else run


def steps_of(kernel: Kernel, slice_: int) -> int:
    return min(kernel.slice_steps, kernel.steps - slice_ * kernel.slice_steps)


def work_ps(kernel: Kernel, cost: BlockCost, slice_: int) -> int:
    """A block's time at full speed, without what synchronisation adds."""
    return cost.prologue_ps + steps_of(kernel, slice_) * cost.step_ps + cost.tail_ps


def blocks_of(scene: Scene, run: Ran) -> Iterator[tuple[Kernel, int, dict[str, int]]]:
    """(kernel, row of the trace, its columns and when it left its slot) of every block that ran."""
    columns = {name: column.tolist() for name, column in run.trace.tiles.items()}
    left = run.left.tolist()
    for row in range(run.trace.blocks):
        at = {name: column[row] for name, column in columns.items()}
        yield scene.program.kernels[at["kernel"]], row, {**at, "left": left[row]}


@EXAMPLES
@given(scenes())
def test_every_tile_runs_exactly_once_and_tickets_follow_the_order(scene: Scene) -> None:
    run = finished(scene)
    if run is None:
        return
    for kernel in scene.program.kernels:
        order = RowOrder() if scene.plan.flags_of(kernel.name).T else scene.plan.order_of(kernel.name)
        table = order_table(order, kernel.grid).tolist()
        seen = zip(run.of(kernel.name, "r"), run.of(kernel.name, "c"), run.of(kernel.name, "z"), strict=True)
        assert [list(tile) for tile in seen] == table
        assert run.of(kernel.name, "ticket") == list(range(kernel.blocks))
        placed = run.of(kernel.name, "placed")
        assert kernel.persistent or placed == sorted(placed)


@EXAMPLES
@given(scenes())
def test_a_hung_run_has_run_no_tile_twice_and_says_who_waits(scene: Scene) -> None:
    run = scene.run(stuck=True)
    keys = list(zip(*(run.trace.tiles[name].tolist() for name in ("kernel", "r", "c", "z")), strict=True))
    assert len(keys) == len(set(keys))
    total = sum(kernel.blocks for kernel in scene.program.kernels)
    assert len(keys) + run.finished.unfinished == total
    if run.finished.unfinished:
        cycle = waiting_cycle(run.finished)
        assert cycle
        assert run.total == -1


@EXAMPLES
@given(scenes())
def test_no_two_blocks_share_a_lane_and_an_instant(scene: Scene) -> None:
    run = scene.run(stuck=True)
    lanes: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for _, _, at in blocks_of(scene, run):
        assert 0 <= at["sm"] < scene.machine.limits.sms
        assert at["left"] > at["placed"]
        lanes.setdefault((at["sm"], at["lane"]), []).append((at["placed"], at["left"]))
    for spans in lanes.values():
        assert all(early[1] <= late[0] for early, late in pairwise(sorted(spans)))


@EXAMPLES
@given(scenes())
def test_no_sm_ever_holds_more_than_it_has(scene: Scene) -> None:
    """Warps, registers in units of 256 a warp, shared memory with its reserve in units of 128 bytes, block slots."""
    run = scene.run(stuck=True)
    most = scene.machine.limits
    room = (most.warps_per_sm, most.registers_per_sm, most.smem_per_sm_bytes, most.blocks_per_sm)
    changes: list[tuple[int, int, int, tuple[int, ...]]] = []
    for kernel, _, at in blocks_of(scene, run):
        warps = -(-kernel.block.threads // 32)
        registers = -(-kernel.block.registers * 32 // 256) * 256 * warps
        takes = (warps, registers, -(-(kernel.block.smem_bytes + 1024) // 128) * 128, 1)
        changes += [(at["sm"], at["placed"], 1, takes), (at["sm"], at["left"], -1, takes)]
    held = {sm: [0] * len(room) for sm in range(most.sms)}
    for sm, _, sign, takes in sorted(changes):
        held[sm] = [have + sign * take for have, take in zip(held[sm], takes, strict=True)]
        assert all(have <= limit for have, limit in zip(held[sm], room, strict=True))


def reads_at(dep: TileDep, row: int, col: int, slice_: int, step: int) -> set[tuple[int, int]]:
    """Producer tiles that one k step of a consumer's slice reads."""
    one = replace(dep, slice_steps=1, steps=step + 1)
    found: set[tuple[int, int]] = set()
    for span in dep.spans:
        if span.at_k is None:
            at = {"r": row, "c": col, "z": slice_, "k": step}
            r_lo, r_hi, c_lo, c_hi = (int(b.eval(**at)) for b in (span.r_lo, span.r_hi, span.c_lo, span.c_hi))
            found |= {(i, j) for i in range(r_lo, r_hi) for j in range(c_lo, c_hi)}
        elif step == slice_ * dep.slice_steps + span.at_k:
            found |= needed_tiles(replace(one, spans=(span,), slice_steps=dep.slice_steps), row, col, slice_)
    return found


def tile_ends(scene: Scene, run: Ran) -> dict[tuple[str, int, int], int]:
    """When each output tile has left its slot for good, the last of its slices."""
    ends: dict[tuple[str, int, int], int] = {}
    for kernel, _, at in blocks_of(scene, run):
        key = (kernel.name, at["r"], at["c"])
        ends[key] = max(ends.get(key, 0), at["left"])
    return ends


@EXAMPLES
@given(scenes())
def test_no_tile_uses_what_is_not_yet_there(scene: Scene) -> None:
    """From the accesses alone: after a tile is seen, all steps of the reader from the one that reads it are to come."""
    run = finished(scene)
    if run is None:
        return
    ends, sync = tile_ends(scene, run), scene.machine.sync
    for dep in dependences(scene.program):
        stored = scene.plan.overlapped and scene.plan.flags_of(dep.producer).A
        visible = 0 if not scene.plan.overlapped else sync.visible_store_ps if stored else sync.visible_ps
        for kernel, _, at in blocks_of(scene, run):
            if kernel.name != dep.consumer:
                continue
            cost, first = scene.costs[kernel.name], at["z"] * kernel.slice_steps
            for done in range(steps_of(kernel, at["z"])):
                needs = reads_at(dep, at["r"], at["c"], at["z"], first + done)
                seen = max((ends[dep.producer, *tile] + visible for tile in needs), default=0)
                rest = (steps_of(kernel, at["z"]) - done) * cost.step_ps + cost.tail_ps
                assert at["end"] >= seen + rest


@EXAMPLES
@given(scenes(launches=("stream",)))
def test_in_stream_order_a_kernel_starts_after_the_one_before_has_ended(scene: Scene) -> None:
    run = scene.run()
    gap = scene.machine.launch.gap_ps
    for before, after in pairwise(scene.program.kernels):
        assert min(run.of(after.name, "placed")) >= max(run.of(before.name, "left")) + gap
    assert run.trace.tiles["wait_total"].sum() == 0 or any(kernel.grid[2] > 1 for kernel in scene.program.kernels)


@EXAMPLES
@given(scenes())
def test_slices_meet_in_sequence_and_a_tile_posts_after_all_of_them(scene: Scene) -> None:
    run = finished(scene)
    if run is None:
        return
    for kernel in scene.program.kernels:
        rows = [(at["r"], at["c"], at["z"], at["left"]) for k, _, at in blocks_of(scene, run) if k is kernel]
        for early in rows:
            for late in rows:
                if kernel.reduce == "serial" and early[:2] == late[:2] and late[2] == early[2] + 1:
                    tail = scene.costs[kernel.name].tail_ps
                    assert late[3] >= early[3] + scene.machine.sync.visible_ps + tail


def earliest_ends(scene: Scene) -> int:
    """Length of the critical path: each block at full speed from the moment all that it reads is there."""
    ends: dict[tuple[str, int, int], int] = {}
    barrier = 0
    deps = dependences(scene.program)
    for kernel in scene.program.kernels:
        rows, cols, slices = kernel.grid
        cost = scene.costs[kernel.name]
        for row in range(rows):
            for col in range(cols):
                end = 0
                for slice_ in range(slices):
                    alone = barrier + work_ps(kernel, cost, slice_)
                    for dep in deps if scene.plan.overlapped else ():
                        if dep.consumer != kernel.name:
                            continue
                        for done in range(steps_of(kernel, slice_)):
                            step = slice_ * kernel.slice_steps + done
                            seen = [ends[dep.producer, *t] for t in reads_at(dep, row, col, slice_, step)]
                            rest = (steps_of(kernel, slice_) - done) * cost.step_ps + cost.tail_ps
                            alone = max(alone, max(seen, default=0) + rest)
                    serial = end + cost.tail_ps if kernel.reduce == "serial" and slice_ else 0
                    end = max(end, alone, serial)
                ends[kernel.name, row, col] = end
        if not scene.plan.overlapped:
            barrier = max(ends[kernel.name, i, j] for i in range(rows) for j in range(cols))
    return max(ends.values())


@EXAMPLES
@given(scenes())
def test_no_run_is_shorter_than_its_critical_path(scene: Scene) -> None:
    run = finished(scene)
    if run is not None:
        assert int(run.left.max() - run.trace.tiles["placed"].min()) >= earliest_ends(scene)
        assert run.total >= int(run.left.max())


@EXAMPLES
@given(scenes())
def test_no_run_does_more_than_slots_pipes_and_memory_can(scene: Scene) -> None:
    """Area bounds: resources held, tensor work and bytes moved, each over what the machine has in the time.

    What a block with R loads while it stands still draws on no memory in the engine, so it is left out here.
    """
    run = finished(scene)
    if run is None:
        return
    most, rates = scene.machine.limits, scene.machine.rates
    span = int(run.left.max() - run.trace.tiles["placed"].min())
    pipe = l2 = hbm = smem = warps = 0
    for kernel, _, at in blocks_of(scene, run):
        cost = scene.costs[kernel.name]
        loop = steps_of(kernel, at["z"]) * cost.step_ps  # least that any model must count: the main loop
        if scene.plan.flags_of(kernel.name).R and at["wait_total"]:
            loop -= min(steps_of(kernel, at["z"]), kernel.stages) * cost.step_ps
        pipe, l2, hbm = (
            pipe + loop * cost.pipe_load, l2 + loop * cost.l2_bytes_per_s, hbm + loop * cost.hbm_bytes_per_s,
        )  # fmt: skip
        whole = work_ps(kernel, cost, at["z"])
        smem += whole * (kernel.block.smem_bytes + 1024)
        warps += whole * -(-kernel.block.threads // 32)
    assert span * most.sms * FULL_PIPE >= pipe * (1 - 1e-9)
    assert span * rates.l2_bytes_per_s >= l2 * (1 - 1e-9)
    assert span * rates.hbm_bytes_per_s >= hbm * (1 - 1e-9)
    assert span * most.sms * most.smem_per_sm_bytes >= smem
    assert span * most.sms * most.warps_per_sm >= warps


@EXAMPLES
@given(scenes())
def test_the_same_scene_gives_the_same_bytes(scene: Scene) -> None:
    first, second = scene.run(stuck=True), scene.run(stuck=True)
    assert first.total == second.total
    assert first.finished.last_ps == second.finished.last_ps
    assert all(
        pickle.dumps(column.tolist()) == pickle.dumps(second.trace.tables[label][name].tolist())
        for label, table in first.trace.tables.items()
        for name, column in table.items()
    )


@MANY
@given(scenes(launches=("wait-first", "wait-all", "wait-value", "none"), rules=("adversarial", "random")))
def test_what_is_safe_by_construction_hangs_under_no_dispatch(scene: Scene) -> None:
    judged = verdict(scene.program, scene.plan, scene.machine, slots_of(scene.program, scene.machine))
    assert judged.status in (SAFE, IF_ARRIVAL, CAN_DEADLOCK)
    if judged.status == SAFE:
        assert not judged.cycle
        scene.run()  # which asserts that every block ends
    else:
        assert judged.cycle


@MANY
@given(scenes(rules=("arrival",)))
def test_in_order_of_arrival_only_what_can_deadlock_hangs(scene: Scene) -> None:
    judged = verdict(scene.program, scene.plan, scene.machine, slots_of(scene.program, scene.machine))
    if judged.status != CAN_DEADLOCK:
        scene.run()


@EXAMPLES
@given(scenes())
def test_working_waiting_and_empty_are_all_of_the_time(scene: Scene) -> None:
    run = finished(scene)
    if run is None:
        return
    kernels = scene.program.kernels
    slots = slots_of(scene.program, scene.machine)
    per_sm = {kernel.name: slots[kernel.name] // scene.machine.limits.sms for kernel in kernels}
    warps = {kernel.name: -(-kernel.block.threads // 32) for kernel in kernels}
    shape = MachineShape(scene.machine.limits.sms, scene.machine.limits.warps_per_sm, per_sm, warps)
    found = metrics(run.trace, shape)
    shares = (found.working_pct, found.waiting_pct, found.empty_pct)
    assert abs(sum(shares) - 100) < 1e-6
    assert min(shares) >= -1e-9
    assert (found.waiting_pct > 0) == bool(run.trace.tiles["wait_total"].sum())


@MANY
@given(scenes(rules=("arrival",), launches=("wait-value",), free=True, mixed=False, loops=False, shared=False))
def test_where_semaphores_cost_nothing_finer_ones_are_never_slower(scene: Scene) -> None:
    """Equal blocks on slots that share nothing, handed out in one order: an earlier start ends no tile later.

    With unequal blocks, a shared pipe or another order of kernels this need not hold (Graham's anomalies).
    """
    plan = replace(scene.plan, flags={}, streams=None)
    deps = [dep.name for dep in dependences(scene.program)]
    tile, row = (scene.run(replace(plan, sync=dict.fromkeys(deps, policy))) for policy in (TilePolicy(), RowPolicy()))
    slack = len(deps)  # each wait for a first block takes 1 ps
    if in_program_order(tile) and in_program_order(row):
        stream = scene.run(Plan(order=plan.order))
        assert tile.total <= row.total + slack
        assert row.total <= stream.total + slack


def in_program_order(run: Ran) -> bool:
    arrivals = run.trace.events["arrive"].tolist()
    return all(early < late for early, late in pairwise(arrivals))


@EXAMPLES
@given(scenes(rules=("arrival",)))
def test_policies_change_when_tiles_run_but_not_which(scene: Scene) -> None:
    if not scene.plan.overlapped:
        return
    judged = verdict(scene.program, scene.plan, scene.machine, slots_of(scene.program, scene.machine))
    if judged.status == CAN_DEADLOCK:
        return
    deps = [dep.name for dep in dependences(scene.program)]
    seen = []
    for policy in (TilePolicy(), RowPolicy()):
        run = scene.run(replace(scene.plan, sync=dict.fromkeys(deps, policy)))
        columns = (run.trace.tiles[name].tolist() for name in ("kernel", "ticket", "r", "c", "z"))
        seen.append(list(zip(*columns, strict=True)))
    assert seen[0] == seen[1]
