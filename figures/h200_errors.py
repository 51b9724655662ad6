"""Every judged cell of the H200, predicted over measured, by what ran: from the JSON that ``make report`` writes."""

import json
import sys
from pathlib import Path
from typing import Any

import cusim
from cusim.plot.errors import ErrorPoint, error_scatter
from cusim.plot.save import save_figure

HERE = Path(__file__).parent


def kind_of(row: dict[str, Any], kind: str) -> str:
    """One kernel alone, at a tile that calibration saw or not, or the policy between two; PDL and split-K apart."""
    if kind.startswith("single"):
        return "one kernel" if kind == "single-seen" else "one kernel, unseen tile"
    if row["split_k"] != "1":
        return "split-K"
    if row["tile"] == "64x256x64":
        return "chain, unseen tile"
    return "PDL" if row["launch"] == "pdl" else str(row["policy"])


def draw(tables: dict[str, Any], what: str, name: str) -> None:
    """The cells of one set, each at the mean of its occasions, as a picture called *name*."""
    machine = cusim.load_machine("h200")
    points = [
        ErrorPoint(kind_of(row, kind), row["measured_ns"], row["predicted_ns"])
        for kind, table in tables.items()
        for row in table["rows"]
        if row["predicted_ns"]
    ]
    title = f"{what}, {machine.gpu} ({machine.state})"
    save_figure(error_scatter(points, band_pct=machine.band_pct, title=title), HERE / name)


def main() -> None:
    """Draws ``h200_errors.png`` (dev) and ``h200_sealed.png``."""
    tables = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["tables"]
    draw(tables["dev"], "Dev: chains that the model's structure was built on", "h200_errors.png")
    draw(tables["sealed"], "Sealed: predicted before they were recorded", "h200_sealed.png")


if __name__ == "__main__":
    main()
