"""Recorded timelines judged: the same program and plan predicted, and held against the blocks that were measured."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cusim.engine.predict import predict
from cusim.engine.result import Deadlock
from cusim.errors import Problems, refuse
from cusim.files import read_file
from cusim.machine.calibration import file_digest
from cusim.machine.machine import Machine
from cusim.recording.timelines import Timeline, timeline_of, timeline_paths
from cusim.report.rows import shape_of
from cusim.trace.compare import Comparison, Lengths, Part, compare_traces
from cusim.trace.formats import read_trace
from cusim.trace.trace import Trace
from cusim.validate.recorded import known_as
from cusim.validate.recordings import same_gpu

SCHEMA = "cusim.timelines/1"
_PS_PER_NS = 1000
#: A total this close, in per cent, counts as right; where its rounds' errors cancel by more than that, it is luck.
RIGHT_PCT, LUCK_PCT = 2.0, 50.0
_PLACES, _ERRORS = ("r", "c", "z", "round"), ("start", "end", "duration", "wait")


@dataclass(frozen=True)
class JudgedTimeline:
    """One recorded timeline and how far the prediction of its program and plan is from it."""

    timeline: Timeline
    found: Comparison

    @property
    def name(self) -> str:
        """The name of its file."""
        return self.timeline.name

    @property
    def total_error_pct(self) -> float | None:
        """Predicted over measured total, less one, against unstamped runs; None where a total is not known."""
        return over_pct(self.found.predicted_ns, self.found.measured_ns)

    @property
    def lucky(self) -> bool:
        """True where the total is right and the rounds are not: their errors cancel."""
        error = self.total_error_pct
        return error is not None and abs(error) <= RIGHT_PCT and self.found.cancelled_pct >= LUCK_PCT


def judge_timelines(
    place: Path, machine: Machine, watch: Callable[[str], None] = lambda _: None
) -> tuple[JudgedTimeline, ...]:
    """Every timeline in the folder *place*, or in that file, against what *machine* predicts; *watch* hears each name.

    Raises InputError where one was measured on another GPU, was used to fit the machine, cannot be proved to be of a
    program and plan that is still to be had, or is predicted to deadlock.
    """
    traces = {path: read_trace(path) for path in timeline_paths(place)}
    _check(place, traces, machine)
    judged = []
    for path, trace in traces.items():
        watch(path.stem)
        timeline = timeline_of(trace, path.stem, known_as(machine), str(path))
        result = predict(timeline.program, machine, timeline.plan)
        if isinstance(result, Deadlock):
            raise refuse(timeline.name, "plan", timeline.plan.label, f"is predicted to deadlock on {machine.name}")
        shape = shape_of(timeline.program, machine)
        judged.append(JudgedTimeline(timeline, compare_traces(result.trace, timeline.trace, shape)))
    return tuple(judged)


def _check(place: Path, traces: Mapping[Path, Trace], machine: Machine) -> None:
    """Of the machine's own GPU, and nothing that it was fitted on; a trace that says nothing is refused later."""
    problems = Problems(str(place))
    for path, trace in traces.items():
        gpu, label = trace.meta.get("machine"), trace.meta.get("label")
        if trace.meta.get("kind") == "measured" and not (isinstance(gpu, str) and same_gpu(gpu, machine.gpu)):
            problems.add(f"{path.stem}: machine", gpu, f"machine {machine.name} is {machine.gpu}: another GPU")
        digest = file_digest(read_file(path))
        if machine.calibration is not None and machine.calibration.lists(digest, str(label)):
            why = f"machine {machine.name} was calibrated on it, by digest {digest}: it cannot be judged on it"
            problems.add(path.stem, None, why)
    problems.raise_if_any()


def over_pct(predicted: int | None, measured: int | None) -> float | None:
    """Predicted over measured, less one, in per cent; None where either is not known."""
    return None if predicted is None or not measured else 100 * (predicted / measured - 1)


def document(judged: Sequence[JudgedTimeline], machine: Machine, *, every_tile: bool = False) -> str:
    """The comparison as JSON: machine, summary, and each timeline by kernel and by round, times in ns.

    With *every_tile* each timeline has its tiles too, a list a column.
    """
    whole = {
        "schema": SCHEMA,
        "machine": {"name": machine.name, "digest": machine.digest, "state": machine.state},
        "summary": summary_of(judged),
        "timelines": [_timeline_json(each, every_tile) for each in judged],
    }
    return json.dumps(whole, indent=2) + "\n"


def summary_of(judged: Sequence[JudgedTimeline]) -> dict[str, Any]:
    """Figures over all timelines, each counting once: what totals are off by, and what their parts are."""
    totals = [each.total_error_pct for each in judged if each.total_error_pct is not None]
    rounds = sum(each.found.round_errors_ps for each in judged)
    spans = sum(abs(each.found.span.error_ps) for each in judged)
    return {
        "n": len(judged),
        "total_mape_pct": statistics.mean(map(abs, totals)) if totals else None,
        "total_bias_pct": statistics.mean(totals) if totals else None,
        "span_mape_pct": _mape([each.found.span for each in judged]),
        "kernel_span_mape_pct": _mape([kernel for each in judged for kernel in each.found.kernels]),
        "round_mape_pct": 100 * rounds / sum(each.found.span.measured_ps for each in judged),
        "cancelled_pct": 100 * (1 - spans / rounds) if rounds else 0.0,
        "lucky": [each.name for each in judged if each.lucky],
    }


def _mape(lengths: Sequence[Lengths]) -> float:
    return statistics.mean(100 * abs(each.error_ps) / each.measured_ps for each in lengths)


def _timeline_json(judged: JudgedTimeline, every_tile: bool) -> dict[str, Any]:
    meta, found, cell = judged.timeline.trace.meta, judged.found, judged.timeline.cell
    tiles = {"tiles": _tiles_json(judged)} if every_tile else {}
    return {
        "name": judged.name,
        **{key: getattr(cell, key) for key in ("workload", "m", "policy", "order", "launch")},
        **{key: meta.get(key) for key in ("label", "program_digest", "plan_digest", "occasion", "timer_step_ns")},
        "predicted_ns": found.predicted_ns,
        "measured_ns": found.measured_ns,
        "stamped_ns": found.stamped_ns,
        "total_error_pct": judged.total_error_pct,
        "stamped_error_pct": over_pct(found.predicted_ns, found.stamped_ns),
        "span": _lengths_json(found.span),
        "kernel_errors_ns": found.kernel_errors_ps // _PS_PER_NS,
        "round_errors_ns": found.round_errors_ps // _PS_PER_NS,
        "cancelled_pct": found.cancelled_pct,
        "kernels": [
            {"kernel": part.kernel, **_lengths_json(lengths), **_part_json(part)}
            for lengths, part in zip(found.kernels, found.by_kernel, strict=True)
        ],
        "rounds": [
            {"round": number, **_lengths_json(lengths), "kernels": _of_round(found, number)}
            for number, lengths in enumerate(found.rounds, start=1)
        ],
        **tiles,
    }


def _lengths_json(lengths: Lengths) -> dict[str, Any]:
    predicted, measured = lengths.predicted_ps // _PS_PER_NS, lengths.measured_ps // _PS_PER_NS
    return {"predicted_ns": predicted, "measured_ns": measured}


def _part_json(part: Part) -> dict[str, Any]:
    errors = {
        f"{name}_error": {
            key.replace("_ps", "_ns"): value // _PS_PER_NS for key, value in asdict(getattr(part, name)).items()
        }
        for name in _ERRORS
    }
    return {"tiles": part.tiles, **errors}


def _of_round(found: Comparison, number: int) -> list[dict[str, Any]]:
    return [{"kernel": part.kernel, **_part_json(part)} for part in found.by_round if part.round == number]


def _tiles_json(judged: JudgedTimeline) -> dict[str, list[Any]]:
    tiles, names = judged.found.tiles, judged.timeline.program.kernels
    columns: dict[str, list[Any]] = {name: getattr(tiles, name).tolist() for name in _PLACES}
    errors = {f"{name}_error_ns": (getattr(tiles, name) // _PS_PER_NS).tolist() for name in _ERRORS}
    return {"kernel": [names[number].name for number in tiles.kernel.tolist()], **columns, **errors}
