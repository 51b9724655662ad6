"""Micro-benchmarks that run matrix products, on made-up stamps and readings: what they say must be what was put in."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from backend_gpu import micro_blocks, micro_clock
from backend_gpu.abi import STAMPS
from backend_gpu.micro_blocks import blocks
from backend_gpu.micro_clock import clock, steps
from backend_gpu.micro_record import Findings
from backend_gpu.null_device import NullDevice
from cusim.policies.plan import Plan
from cusim.program.program import Program
from tests.gpu_programs import pair

NS = 1000
#: The clock of an idle SM, while all settle, and from then until the product ends.
IDLE_GHZ, SWINGING_GHZ, BUSY_GHZ = 1.98, 1.5, 1.75
#: When the product's last block starts, and its first one ends.
BEGIN_NS, END_NS = 300_000, 1_900_000


class MadeUp:
    """Products whose stamps and times *of* and *lasts* make up; ``started`` counts those that ran beside something."""

    started = 0
    stamps_of: Callable[[Program, Plan, int], Any]
    lasts_ps: Callable[[Program], int]

    def __init__(self, device: Any, program: Program, plan: Plan) -> None:
        self.program, self.plan, self.epoch = program, plan, 0
        self.stamps = [type(self).stamps_of(program, plan, number) for number in range(len(program.kernels))]
        self.buffers = [{"a": np.ones(4)}]

    def commands(self, number: int, mode: Any, steps: Any = None) -> Any:
        return SimpleNamespace(issue_beside=self._beside)

    def _beside(self, epoch: int) -> None:
        assert epoch == self.epoch == 2  # the run that warmed up was the first
        MadeUp.started += 1

    def run(self, commands: Any) -> None:
        self.epoch += 1

    def timed(self, commands: Any) -> int:
        return type(self).lasts_ps(self.program)


def stamped(**columns: Any) -> Any:
    """Stamps of as many blocks as the columns have, as the device keeps them."""
    rows = np.zeros(len(next(iter(columns.values()))), STAMPS)
    for name, values in columns.items():
        rows[name] = values
    return rows.view(np.uint64)


class Bench(SimpleNamespace):
    """What the parts need of a device: readings of a clock that swings and falls while a product runs."""

    def __init__(self) -> None:
        super().__init__(
            found=Findings(), sms=132, streams=[None, None], device=SimpleNamespace(to_host=lambda array: array)
        )
        self.seen = MadeUp.started

    def zeros(self, count: int, dtype: Any) -> Any:
        return np.zeros(count, dtype)

    def launch(self, *given: Any, **more: Any) -> Any:
        return SimpleNamespace(go=lambda: None)

    def read(self, readings: Any) -> Any:
        """A reading each 2000 ns; the last hundred were never made."""
        timer = np.arange(1, len(readings) // 2 + 1) * 2000
        runs, self.seen = MadeUp.started > self.seen, MadeUp.started
        settled = BEGIN_NS + micro_clock._SETTLED_NS
        ghz = np.where(
            (timer > settled) & (timer <= END_NS), BUSY_GHZ, np.where(timer > END_NS, IDLE_GHZ, SWINGING_GHZ)
        )
        clocks = np.cumsum(2000 * (ghz if runs else np.full(len(timer), IDLE_GHZ)))
        rows = np.stack([timer, clocks.round()], axis=1).astype(np.int64)
        rows[-100:] = 0
        return rows.reshape(-1)


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> type[MadeUp]:
    class Here(MadeUp):
        """One test's own."""

    for module in (micro_blocks, micro_clock):
        monkeypatch.setattr(module, "Products", Here)
    monkeypatch.setattr(MadeUp, "started", 0)
    return Here


def samples(bench: Bench, name: str) -> list[float]:
    return list(bench.found.quantities[name].samples)


def test_the_clock_is_read_while_all_blocks_run_and_once_it_has_settled(made_up: type[MadeUp]) -> None:
    made_up.stamps_of = lambda program, plan, number: stamped(placed=[0, BEGIN_NS], end=[END_NS, END_NS + 9999])
    bench: Any = Bench()
    clock(bench)
    assert set(samples(bench, "clock_idle")) == {IDLE_GHZ}
    names = {name for name in bench.found.quantities if name.startswith("clock_tensor_")}
    assert names == {f"clock_tensor_{busy}" for busy in (1, 12, 36, 64, 81, 100, 121, 130)}
    for name in (*names, "clock_zeros"):
        assert set(samples(bench, name)) == {BUSY_GHZ}
    stretches = (END_NS - BEGIN_NS - micro_clock._SETTLED_NS) // 20_000
    assert len(samples(bench, "clock_zeros")) in (stretches - 1, stretches)
    assert len(samples(bench, "clock_tensor_1")) == 3 * len(samples(bench, "clock_zeros"))


def test_a_steps_clocks_are_what_deeper_products_take_beyond_their_products(made_up: type[MadeUp]) -> None:
    """23 clocks a step beyond the products, at the clock of a lone busy SM; what does not grow with k falls out."""

    def lasts(program: Program) -> int:
        kernel = program.kernels[0]
        assert kernel.grid == (1, 1, 1)
        products = 2 * kernel.tile[0] * kernel.tile[1] * 64 / 4096
        return 5_000_000 + round(kernel.steps * (products + 23) / BUSY_GHZ * NS)

    made_up.stamps_of = lambda program, plan, number: stamped(placed=[0])
    made_up.lasts_ps = lasts
    bench: Any = Bench()
    bench.found.add("clock_tensor_1", "GHz", "how", [BUSY_GHZ])
    steps(bench)
    found = [name for name in bench.found.quantities if name.startswith("step_clocks_")]
    assert len(found) == len(micro_clock._STEP_TILES)
    for name in found:
        assert samples(bench, name) == pytest.approx([23] * 9, abs=1e-3)


#: Start to ready, to first load, to end, to posted, in ns: of the first kernel and of the second, by policy.
PARTS = {
    "stream": ((10, 900, 5000, 0), (12, 950, 7000, 0)),
    "row": ((250, 900, 5000, 350), (255, 1300, 7100, 0)),
    "tile": ((260, 900, 5000, 330), (270, 1400, 7600, 0)),
}


def test_what_signals_cost_a_block_is_told_from_its_stamps(made_up: type[MadeUp]) -> None:
    def stamps_of(program: Program, plan: Plan, number: int) -> Any:
        policy = next(iter(plan.sync.values())).name if plan.sync else "stream"
        times = np.cumsum(PARTS[policy][number])
        placed = np.arange(5) * 10_000
        late = np.array([0, 0, 0, 0, 3000])  # one block in five is slow throughout: medians don't see it
        columns = {name: placed + time + late for name, time in zip(STAMPS.names[1:5], times, strict=True)}  # type: ignore[index]
        return stamped(placed=placed, **columns)

    made_up.stamps_of = stamps_of
    made_up.lasts_ps = lambda program: 0
    bench: Any = Bench()
    blocks(bench)
    told = {name: set(quantity.samples) for name, quantity in bench.found.quantities.items()}
    assert told == {
        "block_first_load": {910},
        "block_ticket_row": {240}, "block_first_wait_row": {350}, "block_work_row": {100}, "block_post_row": {350},
        "block_ticket_tile": {250}, "block_first_wait_tile": {450}, "block_work_tile": {600}, "block_post_tile": {330},
    }  # fmt: skip
    assert {len(quantity.samples) for quantity in bench.found.quantities.values()} == {micro_blocks._RUNS}


def test_blocks_of_real_plans_are_stamped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same part on the null device, from plans to stamps; its times mean nothing."""
    choice = SimpleNamespace(program=pair(), flags="")
    workload = SimpleNamespace(choice=lambda policy: choice)
    monkeypatch.setattr(micro_blocks, "build_workload", lambda name, machine, m: workload)
    bench: Any = Bench()
    bench.device = NullDevice()
    blocks(bench)
    assert {len(quantity.samples) for quantity in bench.found.quantities.values()} == {micro_blocks._RUNS}
    assert len(bench.found.quantities) == 9
