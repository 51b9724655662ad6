"""Simulated above measured: recorded runs of GPT-3's MLP on an H200, and what the model says of them.

Two of the sealed set, and the one of the others that the model is most wrong about.
"""

from pathlib import Path

import cusim
from cusim.plot.overlay import overlay
from cusim.plot.save import save_figure
from cusim.recording.timelines import read_timelines
from cusim.report.rows import shape_of

HERE = Path(__file__).parent
TIMELINES = HERE.parent / "traces" / "h200" / "timelines"


def main() -> None:
    """Draws ``h200_overlay_704_row.png``, ``h200_overlay_1664_tile.png`` and ``h200_overlay_2560_row.png``."""
    machine = cusim.load_machine("h200")
    for run in ("704-row", "1664-tile", "2560-row"):
        (timeline,) = read_timelines(TIMELINES / f"gpt3-mlp-{run}.npz", machine.name)
        result = cusim.predict(timeline.program, machine, timeline.plan)
        assert isinstance(result, cusim.Prediction)
        title = f"gpt3-mlp, M = {timeline.cell.m}, H200, {timeline.cell.policy}, order {timeline.cell.order}"
        figure = overlay(result.trace, timeline.trace, shape_of(timeline.program, machine), title=title)
        save_figure(figure, HERE / f"h200_overlay_{run.replace('-', '_')}.png")


if __name__ == "__main__":
    main()
