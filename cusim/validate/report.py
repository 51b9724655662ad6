"""A validation as people read it: figures beside those of the rivals, aims, residuals, and what to know beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from cusim.report.line import WIDTH, Line
from cusim.validate.document import Validation, context_of, row_json, table_json
from cusim.validate.machines import settings_of
from cusim.validate.parts import Part, cell, markdown_of, text_of
from cusim.validate.published import PublishedSet
from cusim.validate.scores import CLOSE
from cusim.validate.tables import Table

#: Figures of a summary in the order of the printed columns: key, title, decimals.
_FIGURES = (
    ("n", "n", 0), ("mape_pct", "MAPE", 2), ("median_pct", "median", 2), ("p95_pct", "p95", 1),
    ("worst_pct", "worst", 1), ("bias_pct", "bias", 2), ("speedup_err_pts", "points", 2),
    ("speedup_err_mean_pts", "mean", 2), ("sign_right_pct", "sign", 0), ("rank_score", "rank", 2),
    ("rank_interval", "rank 95 %", 2), ("top1_pct", "top-1", 0), ("regret_pct", "regret", 2),
)  # fmt: skip
_OF_POLICIES = ("n", "mape_pct", "median_pct", "worst_pct", "bias_pct", "speedup_err_pts", "sign_right_pct")
_ROWS = ("m", "policy", "flags", "tile", "split-K", "measured us", "± us", "predicted us", "error %", "gain %",
         "predicted %", "sign", "bound us")  # fmt: skip
_NUMBERS = (True, False, False, False, False, *[True] * 6, False, True)
_LEGEND = (
    "anchored: each kernel's published time in stream order is given, so stream rows are exact and in no figure.",
    "cold: nothing of a row is given; stream rows are judged too. Not blind: the presets take rates from the same "
    "publication (cusim show v100).",
    "changed: rows whose tiles, split-K or stages differ from their stream row's; n counts judged rows only.",
    "MAPE, median, p95, worst, bias: predicted over measured time, less one, in percent. points, mean: |predicted - "
    "measured| speed-up over stream in points, median and mean. sign: percent of rows whose gain or loss is told, of "
    "those that differ from stream by more than twice the pooled noise (the others are ties).",
    "rank: (C - D) / (C + D) over pairs so decided, with a bootstrap interval over shapes of unlike grids. top-1: "
    "percent of shapes whose fastest policy is chosen.",
    "regret: measured time of the predicted best over that of the measured best, less one, in percent. The policy is "
    "picked and read in the same campaign, since the set holds only one.",
    "bound: the stream row's kernels with no slot ever idle. A measured time below it (marked <) cannot come from "
    "scheduling: its blocks ran faster.",
)  # fmt: skip


def text_lines(validation: Validation, *, every_row: bool = False, width: int = WIDTH) -> list[Line]:
    """The report as aligned text of *width* letters; *every_row* adds the rows of every table."""
    return text_of(_parts(validation, every_row), width)


def markdown_lines(validation: Validation, *, every_row: bool = False) -> list[str]:
    """The same as markdown."""
    return markdown_of(_parts(validation, every_row))


def _parts(validation: Validation, every_row: bool) -> Iterator[Part]:
    for published in validation.sets:
        yield _machine_part(published, validation.tables)
    pairs = [(table, table_json(table)) for table in validation.tables]
    for prediction in dict.fromkeys(table.prediction for table in validation.tables):
        yield _figures_part(prediction, [pair for pair in pairs if pair[0].prediction == prediction])
    yield _policies_part(pairs)
    yield from _aims_part(pairs)
    for table, found in pairs:
        missed = any(not aim["met"] for aim in found["aims"])
        if missed or every_row or table.name.endswith("_changed"):
            yield _rows_part(table, missed)
    for published in validation.sets:
        yield _context_part(published)
    yield Part("How to read it", (), (), (), _LEGEND)


def _machine_part(published: PublishedSet, tables: Sequence[Table]) -> Part:
    machine = next(table.machine for table in tables if table.machine.name == published.gpu)
    head = published.head
    rows = [
        [s.key, s.value, "fitted on these rows" if s.fitted else "given", s.reason] for s in settings_of(machine.name)
    ]
    source = f"{head['source']}, {' '.join(head['files'])} ({head['licence']}); {head['method']}"
    what = f"{published.gpu}: {published.workload} on {head['device']}, preset {machine.name} with {len(rows)} settings"
    return Part(
        what, ("setting", "value", "how", "why"), rows, (False, True, False, False),
        (f"times: {source}", *head["notes"], *_held_out(published.gpu, tables)),
    )  # fmt: skip


def _held_out(gpu: str, tables: Sequence[Table]) -> Iterator[str]:
    for table in tables:
        found = table.held_out
        if found is not None and table.machine.name == gpu:
            values = sorted(set(found.chosen.values()))
            yield (
                f"{found.key} chosen of {' '.join(found.grid)} without the shapes that it predicts: MAPE "
                f"{found.mape_pct:.2f} % (values taken: {' '.join(values)}), against {found.all_mape_pct:.2f} % when "
                f"all rows choose ({found.all_chosen})"
            )


def _figures_part(prediction: str, pairs: Sequence[tuple[Table, dict[str, Any]]]) -> Part:
    rows = []
    for table, found in pairs:
        rows.append([table.name, "cusim", *_cells(found["summary"])])
        for name, summary in found["rivals"].items():
            label = f"{name} ({found['best_fixed_policy']})" if name == "best-fixed" else name
            rows.append(["", label, *_cells(summary)])
    titles = ["table", "who", *(title for _, title, _ in _FIGURES)]
    counts = [_counts(table.name, found["summary"]) for table, found in pairs]
    counts += [
        f"{table.name}: {cell(found['above_bound']['mape_pct'], 2)} % MAPE over the {found['above_bound']['n']} of "
        f"{found['summary']['n']} rows that are not measured below the bound"
        for table, found in pairs
        if found["above_bound"]["n"] < found["summary"]["n"]
    ]
    return Part(prediction, titles, rows, [False, False, *[True] * len(_FIGURES)], counts)


def _counts(name: str, summary: dict[str, Any]) -> str:
    return (
        f"{name}: {summary['decided_rows']} rows decided against stream, {summary['close_rows']} of them predicted "
        f"within {CLOSE:.1%} of it, so that their sign is chance; {summary['decided_pairs']} pairs decided "
        f"({summary['concordant_pairs']} in order, {summary['discordant_pairs']} not, {summary['alike_pairs']} "
        f"predicted alike; {summary['close_pairs']} so close), {summary['tied_pairs']} tied; "
        f"{summary['empty_shapes']} of {summary['shapes']} shapes without a decided pair"
    )


def _policies_part(pairs: Sequence[tuple[Table, dict[str, Any]]]) -> Part:
    figures = [figure for figure in _FIGURES if figure[0] in _OF_POLICIES]
    rows = [
        [table.prediction, table.name, policy, *(cell(found[key], places) for key, _, places in figures)]
        for table, whole in pairs
        for policy, found in whole["by_policy"].items()
    ]
    titles = ["prediction", "table", "policy", *(title for _, title, _ in figures)]
    return Part("by policy", titles, rows, [False] * 3 + [True] * len(figures))


def _aims_part(pairs: Sequence[tuple[Table, dict[str, Any]]]) -> Iterator[Part]:
    aims = [(table, aim) for table, found in pairs for aim in found["aims"]]
    if not aims:
        return
    rows = [
        [
            f"{table.prediction} {table.name}", aim["title"], f"{aim['relation']} {aim['target']:g}",
            cell(aim["value"], 2), "met" if aim["met"] else "missed",
        ]
        for table, aim in aims
    ]  # fmt: skip
    below = dict.fromkeys(f"next, {table.name}: {aim['hypothesis']}" for table, aim in aims if not aim["met"])
    yield Part("aims", ("table", "aim", "wanted", "reached", ""), rows, (False, False, True, True, False), tuple(below))


def _rows_part(table: Table, missed: bool) -> Part:
    why = ", residuals of the missed aims" if missed else ""
    rows = [_row_cells(row_json(table, row)) for row in table.rows]
    return Part(f"rows: {table.prediction} {table.name}{why}", _ROWS, rows, _NUMBERS)


def _row_cells(row: dict[str, Any]) -> list[str]:
    against = row["policy"] != "stream"
    bound = "" if row["bound_ns"] is None else f"{'<' if row['below_bound'] else ''}{row['bound_ns'] / 1000:.1f}"
    return [
        str(row["m"]), row["policy"], row["flags"] or "none", _once(row["tile"]), row["split_k"],
        f"{row['measured_ns'] / 1000:.1f}", f"{row['stdev_ns'] / 1000:.1f}",
        "given" if row["given"] else f"{row['predicted_ns'] / 1000:.1f}", cell(row["error_pct"], 2),
        cell(row["gain_measured_pct"], 1) if against else "", cell(row["gain_predicted_pct"], 1) if against else "",
        {True: "right", False: "wrong", None: "tie" if against else ""}[row["sign_right"]], bound,
    ]  # fmt: skip


def _once(tiles: str) -> str:
    """Tiles of both kernels, or the one that both have."""
    first, _, second = tiles.partition("+")
    return first if first == second else tiles


def _context_part(published: PublishedSet) -> Part:
    lines = context_of(published)
    keys = [key for key in lines[0] if any(line[key] is not None for line in lines)]
    rows = [
        [str(line["m"]), *("" if line[key] is None else f"{line[key] / 1000:.2f}" for key in keys if key != "m")]
        for line in lines
    ]
    titles = [key.removesuffix("_ns") for key in keys]
    heading = f"published times in us, {published.gpu}; torch and Stream-K are context and not scored"
    return Part(heading, titles, rows, [True] * len(titles))


def _cells(summary: dict[str, Any]) -> list[str]:
    return [cell(summary[key], places) for key, _, places in _FIGURES]
