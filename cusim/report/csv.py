"""The rows of a comparison as CSV: one line a row, times in whole nanoseconds, units in the headings."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from cusim.report.json import row_json
from cusim.report.result import Report


def csv_text(reports: Sequence[Report]) -> str:
    """The rows with the fields and names of the JSON document; empty where JSON has null."""
    rows = [row_json(report, row) for report in reports for row in report.rows]
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _plain(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _plain(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return "; ".join(map(str, value)) if isinstance(value, list | tuple) else value
