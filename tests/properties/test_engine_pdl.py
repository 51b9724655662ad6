"""What holds for every run under programmatic dependent launch, whatever the program, plan, machine and dispatch."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings

from cusim.engine.setup import slots_of
from cusim.engine.verdict import SAFE, verdict
from tests.engine_random import Scene, scenes

EARLY = scenes(launches=("pdl",))


@settings(max_examples=150)
@given(EARLY)
def test_no_dispatch_hangs_it_and_none_breaks_its_gate(scene: Scene) -> None:
    judged = verdict(scene.program, scene.plan, scene.machine, slots_of(scene.program, scene.machine))
    assert (judged.status, judged.cycle) == (SAFE, ())
    run = scene.run()  # which asserts that every block ends
    early = scene.machine.launch.early_ps
    names = [kernel.name for kernel in scene.program.kernels]
    for ahead, behind in pairwise(names):
        first = min(run.of(behind, "placed"))
        loops = scene.program.kernel(ahead).persistent  # its later tickets go to blocks that have started long before
        assert loops or first >= max(run.of(ahead, "placed")) + early
        assert first >= run.event(behind, "arrive") >= run.event(ahead, "launch") + early


@settings(max_examples=100)
@given(EARLY)
def test_no_kernel_is_complete_before_the_one_ahead_of_it(scene: Scene) -> None:
    run, flush = scene.run(), scene.machine.launch.early_wait_ps
    complete = int(run.trace.events["done"][0])
    for behind in [kernel.name for kernel in scene.program.kernels][1:]:
        if not scene.plan.overlapped:  # then its blocks have not even begun to load
            assert min(run.of(behind, "first_load")) >= complete + flush
        complete = max(run.event(behind, "done"), complete + flush)
    assert run.total == complete
