"""Every recorded row of the H200 that the model has a prediction for: predicted over measured, by what ran."""

from pathlib import Path

import cusim
from cusim.plot.errors import ErrorPoint, error_scatter
from cusim.plot.save import save_figure
from cusim.recording.rows import Row, read_recording
from cusim.validate.recorded import predict_rows

HERE = Path(__file__).parent
RECORDINGS = HERE.parent / "traces" / "h200"


def kind_of(row: Row) -> str:
    """One kernel alone, or the policy between two; early starts (PDL) and split-K apart."""
    if row.workload.startswith(("gemm-", "swiglu-")):
        return "one kernel"
    if row.split_k != "1":
        return "split-K"
    return "PDL" if row.launch == "pdl" else row.policy


def draw(pattern: str, what: str, name: str) -> None:
    """The rows of all recordings that *pattern* names, as a picture called *name*."""
    machine = cusim.load_machine("h200")
    rows = [row for path in sorted(RECORDINGS.glob(pattern)) for row in read_recording(path)[0] if row.total_ns]
    points = [
        ErrorPoint(kind_of(row), row.total_ns, round(total_ps / 1000))
        for row, total_ps in zip(rows, predict_rows(rows, machine), strict=True)
        if row.total_ns and total_ps
    ]
    title = f"{what}, on {machine.gpu} ({machine.state})"
    save_figure(error_scatter(points, band_pct=machine.band_pct, title=title), HERE / name)


def main() -> None:
    """Draws ``h200_errors.png`` and ``h200_sealed.png``."""
    draw("occasion-*.csv", "Chains that the model was built on, and single kernels", "h200_errors.png")
    draw("sealed-*.csv", "Sealed: predicted before they were recorded", "h200_sealed.png")


if __name__ == "__main__":
    main()
