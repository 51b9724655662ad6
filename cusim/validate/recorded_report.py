"""A validation on recordings as people read it: by set, figures beside those of the rivals, and where it is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from cusim.report.line import WIDTH, Line
from cusim.validate.gate import Passed
from cusim.validate.judging import BEYOND_PCT
from cusim.validate.parts import Part, cell, markdown_of, text_of
from cusim.validate.recorded_document import errors_json, rows_json
from cusim.validate.recorded_tables import ANY_TILE, CHAIN, RecordedTable
from cusim.validate.recorded_validation import RecordedValidation
from cusim.validate.scores import DECIDED

Figures: TypeAlias = tuple[tuple[str, str, int], ...]
#: Figures of times in the order of the printed columns: key, title, decimals.
_TIMES: Figures = (
    ("n", "n", 0), ("mape_pct", "MAPE", 2), ("median_pct", "median", 2), ("p95_pct", "p95", 1),
    ("worst_pct", "worst", 1), ("bias_pct", "bias", 2), ("speedup_err_pts", "points", 2),
    ("sign_right_pct", "sign", 0), ("best_speedup_err_pts", "best: points", 2),
    ("best_sign_right_pct", "best: sign", 0),
)  # fmt: skip
_CHOICES: Figures = (
    ("choices", "shapes", 0), ("rank_score", "rank", 2), ("rank_interval", "rank 95 %", 2),
    ("pairs_right_pct", "pairs", 0), ("top1_pct", "top-1", 0), ("regret_pct", "regret", 2),
    ("pooled_regret_pct", "same day", 2),
)  # fmt: skip
_OF_POLICY = _TIMES[:8]
_OF_GROUP = (_TIMES[0], _TIMES[1], _TIMES[5], _TIMES[4])
_ROWS = ("workload", "m", "tile", "split-K", "policy", "launch", "flags", "order", "measured us", "± us",
         "predicted us", "error %", "gain %", "predicted %", "sign")  # fmt: skip
_NUMBERS = (False, True, *[False] * 6, *[True] * 6, False)
_LEGEND = (
    "MAPE, median, p95 (40 rows or more), worst, bias: predicted over measured time, less one, in percent; n counts "
    "cells, each pooled over its occasions.",
    "points: |predicted - measured| speed-up over stream order in points, the median; each row against stream order in "
    "its own order, tile and split-K. sign: percent of rows whose gain or loss is told, of those beyond "
    f"{BEYOND_PCT:g} % and twice the noise. best: each side at its own best order, predicted and measured apart.",
    f"rank: (C - D) / (C + D) over pairs of a shape's plans that differ by more than {DECIDED:g} times the pooled "
    "noise, with a bootstrap interval over groups (workload and M); pairs predicted alike are in neither. pairs: "
    "percent of these pairs predicted in their order, alike ones not.",
    "shape: all recorded plans (policy, launch, flags, order) of one workload, M, tile and split-K; any tile: of one "
    "workload and M. top-1: percent of shapes whose fastest plan is chosen.",
    "regret: measured time of the chosen plan over that of the best, less one, in percent; the best is picked on one "
    "occasion and both are read on another, where there is one. same day: all plans, picked and read at their pooled "
    "times, which adds the luck of the best. Plans predicted alike count with their mean, stream order first.",
    "noise: of one occasion's median: the samples' spread over the root of their number, and the spread between "
    "occasions, the drift of the whole machine included.",
    "no-gain: the model's stream order for every plan. always-row, best-fixed: the fixed policy and order that cost "
    "the least, known only after measuring. sum-of-kernels, ceil-wave: the model's kernels alone. constant: the median "
    "measured time.",
)  # fmt: skip


def recorded_text(
    validation: RecordedValidation, gates: Sequence[Passed] = (), *, every_row: bool = False, width: int = WIDTH
) -> list[Line]:
    """The report as aligned text of *width* letters; *every_row* adds every cell."""
    return text_of(_parts(validation, gates, every_row), width)


def recorded_markdown(
    validation: RecordedValidation, gates: Sequence[Passed] = (), *, every_row: bool = False
) -> list[str]:
    """The same as markdown."""
    return markdown_of(_parts(validation, gates, every_row))


def _parts(validation: RecordedValidation, gates: Sequence[Passed], every_row: bool) -> Iterator[Part]:
    yield _head(validation)
    for label in dict.fromkeys(table.label for table in validation.tables):
        tables = [table for table in validation.tables if table.label == label]
        yield _times_part(label, [table for table in tables if table.kind != ANY_TILE])
        yield _choices_part(label, tables)
        for table in tables:
            if table.kind == CHAIN:
                yield _policies_part(table)
            if table.kind != ANY_TILE:
                yield _worst_part(table)
                if every_row:
                    yield _rows_part(table)
    if gates:
        yield _gates_part(gates)
    yield Part("How to read it", below=_LEGEND)


def _head(validation: RecordedValidation) -> Part:
    machine, found = validation.machine, validation.pool
    state = f"{machine.state}, digest {machine.digest}" + (f", {' '.join(machine.overrides)}" * bool(machine.overrides))
    below = [f"{r.path}: {len(r.rows)} rows, {r.meta.get('gpu')}, {r.meta.get('date', 'no date')}, digest {r.digest}"
             for r in validation.recordings]  # fmt: skip
    if found.between_pct is None:
        below.append("noise: no cell was measured on two occasions, so what another occasion would add is not known")
    else:
        drift = ", ".join(f"{name} {value:+.2f} %" for name, value in found.drift_pct.items())
        below.append(f"noise: {found.between_pct:.2f} % between occasions, from {found.repeated} cells; drift {drift}")
    below.append(f"seen tiles, {validation.seen_from}: {' '.join(sorted(validation.seen)) or 'none'}")
    for name, errors in validation.fitted.items():
        mape, bias = cell(errors.mape_pct, 2), cell(errors.bias_pct, 2)
        below.append(
            f"fitted on, not judged: {errors.n} calibrate rows of {name}, MAPE {mape} %, bias {bias} % in sample"
        )
    below += [f"not measured, {count}: {reason}" for reason, count in validation.refused.items()]
    below += [f"not predicted, {count}: {reason}" for reason, count in validation.unpredicted.items()]
    if validation.by_cublas:
        below.append(f"context, not judged: {len(validation.by_cublas)} cells run by cuBLAS")
    count = len(validation.recordings)
    counted = "1 recording" if count == 1 else f"{count} recordings"
    return Part(f"{machine.name} ({machine.gpu}; {state}) on {counted}", below=below)


def _times_part(label: str, tables: Sequence[RecordedTable]) -> Part:
    counts = [
        f"{table.kind}: {own.decided} rows decided against stream order, {own.close} of them predicted so near to it "
        f"that their sign is chance; {best.decided} decided at the best orders"
        for table in tables
        if (own := table.summary.errors).decided and (best := table.summary.best) is not None
    ]
    return _figures(f"{label}: times", tables, _TIMES, counts)


def _choices_part(label: str, tables: Sequence[RecordedTable]) -> Part:
    choosing = [table for table in tables if table.summary.ranking.choices]
    return _figures(f"{label}: choices", choosing, _CHOICES, [_counted(table) for table in choosing])


def _counted(table: RecordedTable) -> str:
    r = table.summary.ranking
    return (
        f"{table.kind}: {r.pairs.decided} pairs decided (in order {r.pairs.concordant}, reversed {r.pairs.discordant}, "
        f"alike {r.pairs.alike}; {r.pairs.close} predicted so near that their order is chance), {r.pairs.tied} tied; "
        f"{r.empty_shapes} of {r.shapes} shapes without a decided pair; {r.across_shapes} of {r.choices} choices read "
        "on another occasion"
    )


def _figures(heading: str, tables: Sequence[RecordedTable], figures: Figures, below: Sequence[str]) -> Part:
    """The figures of each table, then of its rivals; a rival that has none of them is left out."""
    rows: list[list[str]] = []
    for table in tables:
        contenders = [(f"{name} ({table.rules[name]})" if name in table.rules else name, rival)
                      for name, rival in table.rivals.items()]  # fmt: skip
        for name, summary in (("cusim", table.summary), *contenders):
            cells = _cells(summary.to_json(), figures)
            if set(cells[1:]) != {"-"}:
                rows.append([table.kind if name == "cusim" else "", name, *cells])
    titles = ["kind", "who", *(title for _, title, _ in figures)]
    return Part(heading, titles, rows, [False, False, *[True] * len(figures)], below)


def _policies_part(table: RecordedTable) -> Part:
    rows = []
    for policy, (own, best) in table.policies.items():
        points, sign = cell(best.speedup_err_pts, 2), cell(best.sign_right_pct, 0)
        rows.append([policy, *_cells(errors_json(own), _OF_POLICY), points, sign])
    titles = ["policy and launch", *(title for _, title, _ in _OF_POLICY), "best: points", "best: sign"]
    return Part(f"{table.label} {table.kind}: by policy", titles, rows, [False, *[True] * (len(titles) - 1)])


def _worst_part(table: RecordedTable) -> Part:
    rows = [[g.workload, g.policy, g.cut, *_cells(errors_json(g.errors), _OF_GROUP)] for g in table.worst]
    titles = ["workload", "policy and launch", "tile", *(title for _, title, _ in _OF_GROUP)]
    heading = f"{table.label} {table.kind}: where the model is most wrong"
    return Part(heading, titles, rows, [False, False, False, *[True] * len(_OF_GROUP)])


def _rows_part(table: RecordedTable) -> Part:
    rows = [_row_cells(row) for row in rows_json(table)]
    return Part(f"{table.label} {table.kind}: rows", _ROWS, rows, _NUMBERS)


def _row_cells(row: dict[str, Any]) -> list[str]:
    sign = {True: "right", False: "wrong", None: "" if row["decided"] is None else "tie"}[row["sign_right"]]
    return [
        row["workload"], str(row["m"]), row["tile"], row["split_k"], row["policy"], row["launch"],
        "default" if row["flags"] is None else row["flags"], row["order"], _us(row["measured_ns"]),
        _us(row["noise_ns"]), _us(row["predicted_ns"]), cell(row["error_pct"], 2), cell(row["gain_measured_pct"], 1),
        cell(row["gain_predicted_pct"], 1), sign,
    ]  # fmt: skip


def _gates_part(gates: Sequence[Passed]) -> Part:
    below = [f"{'met' if item.met else 'MISSED'}: {item.text}" for item in gates]
    return Part(f"gates: {sum(item.met for item in gates)} of {len(gates)} met", below=below)


def _cells(figures: Mapping[str, Any], wanted: Figures) -> list[str]:
    return [cell(figures[key], places) for key, _, places in wanted]


def _us(time_ns: int | None) -> str:
    return "-" if time_ns is None else f"{time_ns / 1000:.1f}"
