"""GPT-3's MLP with 768 rows on an H200, row semaphores: the waves as measured, to be held beside the predicted ones."""

from pathlib import Path

import cusim
from cusim.plot.save import save_figure
from cusim.plot.timeline import timeline
from cusim.report.trace import shape_in

HERE = Path(__file__).parent


def main() -> None:
    """Draws ``gpt3_mlp_row_measured.png`` from the recorded timeline."""
    source = HERE.parent / "traces" / "h200" / "timelines" / "gpt3-mlp-768-row.npz"
    trace = cusim.read_trace(source)
    shape, _ = shape_in(trace, str(source))
    title = "gpt3-mlp, M = 768, H200, row"
    save_figure(timeline(trace, shape, title=title), HERE / "gpt3_mlp_row_measured.png")


if __name__ == "__main__":
    main()
