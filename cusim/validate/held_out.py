"""The honest error of a fitted setting: chosen on all other groups of shapes, judged on the group left out."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cusim.validate.cases import Case, Shape
from cusim.validate.machines import judged_machine, settings_of
from cusim.validate.predict_rows import anchored_ps


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Leave-one-group-out over *grid* values of the setting *key*: the mean absolute error of the rows that had no
    part in the choice, the error when all rows choose, and the value that each left-out group was predicted with.
    """

    key: str
    grid: tuple[str, ...]
    mape_pct: float
    all_chosen: str
    all_mape_pct: float
    chosen: Mapping[str, str]


def held_out(shapes: Sequence[Shape], gpu: str, watch: Callable[[str], None] = lambda _: None) -> HeldOut | None:
    """Judges the fitted setting of *gpu* on its unchanged rows; None where no setting is fitted."""
    fitted = next((setting for setting in settings_of(gpu) if setting.fitted), None)
    if fitted is None:
        return None
    found: dict[str, dict[str, list[float]]] = {}
    for value in fitted.grid:
        machine = judged_machine(gpu, {fitted.key: value})
        watch(f"left out: {fitted.key}={value}")
        sizes: dict[str, list[float]] = {}
        for shape in shapes:
            for case in shape.cases:
                if _judged(case):
                    error = 100.0 * abs(anchored_ps(case, shape, machine) / case.reading.total_ps - 1.0)
                    sizes.setdefault(shape.group, []).append(error)
        found[value] = sizes
    return choose(fitted.key, found)


def choose(key: str, sizes: Mapping[str, Mapping[str, Sequence[float]]]) -> HeldOut:
    """Leave-one-group-out from absolute errors in percent, by value of the setting and group of shapes."""
    groups = list(next(iter(sizes.values())))

    def mape(value: str, members: Sequence[str]) -> float:
        return statistics.fmean(error for group in members for error in sizes[value][group])

    chosen = {
        group: min(sizes, key=lambda value: mape(value, [g for g in groups if g != group] or groups))
        for group in groups
    }
    honest = [error for group in groups for error in sizes[chosen[group]][group]]
    best = min(sizes, key=lambda value: mape(value, groups))
    return HeldOut(key, tuple(sizes), statistics.fmean(honest), best, mape(best, groups), chosen)


def _judged(case: Case) -> bool:
    return not case.anchors and not case.changed
