"""cuSync's Fig. 1: two dependent kernels of six tiles on four SMs, in stream order and with tile semaphores."""

from pathlib import Path

import cusim
from cusim.plot.save import save_figure
from cusim.plot.timeline import timeline
from cusim.report.rows import shape_of

HERE = Path(__file__).parent


def main() -> None:
    """Draws ``fig1_stream.png`` (4 rounds) and ``fig1_tile.png`` (3 rounds)."""
    workload = cusim.build_workload("cusync-fig1", "h200")
    machine = cusim.with_overrides(cusim.load_machine("h200"), list(workload.machine_overrides))
    for policy in ("stream", "tile"):
        program = workload.choice(policy).program
        result = cusim.predict(program, machine, cusim.build_plan(program, policy=policy))
        assert isinstance(result, cusim.Prediction)
        title = f"cusync-fig1, {policy}: {result.rounds} rounds"
        save_figure(timeline(result.trace, shape_of(program, machine), title=title), HERE / f"fig1_{policy}.png")


if __name__ == "__main__":
    main()
