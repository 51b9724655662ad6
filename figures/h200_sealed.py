"""The sealed set of traces/h200: predictions written before it is recorded, and what recording said of them.

``python figures/h200_sealed.py predict COMMIT`` writes ``traces/h200/predictions/sealed.csv`` for the model of that
commit; ``python figures/h200_sealed.py compare REPORT.json`` lays the predictions of that file beside what was recorded
after it, and beside those in the report that ``cusim validate`` wrote.
"""

import csv
import json
import statistics
import sys
import tomllib
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import cusim
from cusim.recording.cells import Cell, cells_of
from cusim.recording.rows import Row, read_recording
from cusim.validate.recorded import predict_rows

H200 = Path(__file__).resolve().parent.parent / "traces" / "h200"
DESIGN, PREDICTIONS = H200 / "design-sealed.toml", H200 / "predictions" / "sealed.csv"
RECORDINGS = ("sealed-1.csv", "sealed-2.csv")
SCHEMA = "# cusim.predictions/1 "
KEY = ("group", "workload", "m", "tile", "split_k", "policy", "order", "flags", "launch")


def row_of(cell: Cell) -> Row:
    """The row that recording the cell will fill."""
    flags = "default" if cell.flags is None else cell.flags
    return Row(
        cell.group, cell.label, cell.workload, cell.m, cell.tile, cell.split_k, cell.policy, cell.order, flags,
        cell.launch, 0, None, None, None,
    )  # fmt: skip


def predict(commit: str) -> None:
    """Writes a prediction for every cell of the design, with the commit of the model that made it."""
    machine = cusim.load_machine("h200")
    rows = [row_of(cell) for cell in cells_of(tomllib.loads(DESIGN.read_text(encoding="utf-8")))]
    said = predict_rows(rows, machine)
    head = {
        "commit": commit, "machine": machine.name, "machine_digest": machine.digest, "design": DESIGN.name,
        "kind": "predicted", "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), "rows": len(rows),
    }  # fmt: skip
    with PREDICTIONS.open("w", encoding="utf-8", newline="") as file:
        file.write(SCHEMA + json.dumps(head, sort_keys=True) + "\n")
        table = csv.writer(file, lineterminator="\n")
        table.writerow((*KEY, "predicted_ns"))
        for row, ps in zip(rows, said, strict=True):
            table.writerow((*(getattr(row, name) for name in KEY), "" if ps is None else ps // 1000))


def committed() -> tuple[dict[str, object], dict[tuple[str, ...], int]]:
    """What the file of predictions says of itself, and the predictions in ns by cell."""
    head, _, body = PREDICTIONS.read_text(encoding="utf-8").partition("\n")
    table = csv.DictReader(body.splitlines())
    found = {tuple(line[name] for name in KEY): int(line["predicted_ns"]) for line in table if line["predicted_ns"]}
    return json.loads(head.removeprefix(SCHEMA)), found


def compare(report: Path) -> None:
    """Prints the errors of the committed predictions by group, and whether the model of today still makes them.

    *report* is the JSON of ``cusim validate``.
    """
    head, said = committed()
    measured: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for row in (row for name in RECORDINGS for row in read_recording(H200 / name)[0] if row.total_ns):
        measured[tuple(str(getattr(row, name)) for name in KEY)].append(row.total_ns or 0)
    errors: dict[str, list[float]] = defaultdict(list)
    for key, times in measured.items():
        errors[key[0]].append(100 * (said[key] / statistics.fmean(times) - 1))
    print(f"predicted by {head['commit']} on {head['date']}, machine {head['machine_digest']}")
    for group, found in errors.items():
        size = [abs(each) for each in found]
        mean, middle, bias = statistics.fmean(size), statistics.median(size), statistics.fmean(found)
        worst = max(found, key=abs)
        of_size = f"MAPE {mean:5.2f} %  median {middle:5.2f}  worst {worst:+6.1f}"
        print(f"{group:22} {len(found):4} cells  {of_size}  bias {bias:+5.2f}")
    tables = json.loads(report.read_text(encoding="utf-8"))["tables"]["sealed"]
    now = {_cell(row): row["predicted_ns"] for table in tables.values() for row in table["rows"]}
    then = {key[1:]: predicted for key, predicted in said.items()}
    same = sum(then[cell] == predicted for cell, predicted in now.items())
    print(f"the model of today predicts {same} of {len(now)} cells to the same nanosecond")


def _cell(row: dict[str, Any]) -> tuple[str, ...]:
    """A row of a report by the words of :data:`KEY`, its group left out."""
    return tuple(str(row[name] if row[name] is not None else "default") for name in KEY[1:])


if __name__ == "__main__":
    if sys.argv[1:2] == ["predict"] and len(sys.argv) == 3:
        predict(sys.argv[2])
    elif sys.argv[1:2] == ["compare"] and len(sys.argv) == 3:
        compare(Path(sys.argv[2]))
    else:
        sys.exit(__doc__)
