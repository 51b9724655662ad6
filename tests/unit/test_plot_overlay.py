"""Predicted above measured, and the scatter of errors: judged by the artists in them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import ConnectionPatch

from cusim.errors import InputError
from cusim.plot.errors import ErrorPoint, error_scatter
from cusim.plot.overlay import by_what_they_ran, overlay
from cusim.plot.save import save_figure
from cusim.trace.compare import compare_traces
from cusim.trace.guess import with_waits_before_load
from cusim.trace.metrics import MachineShape
from cusim.trace.trace import EVENT_COLUMNS, NONE, TILE_COLUMNS, WAIT_COLUMNS, Trace, column_table

US = 1_000_000
SMS = 4
SHAPE = MachineShape(SMS, 64, {"up": 1, "down": 1}, {"up": 8, "down": 8})


def run(kind: str, micros: tuple[int, int], *, sms: tuple[int, ...] = (0, 1, 2, 3), wait: int = 0) -> Trace:
    """Six tiles of each of two kernels, kernel after kernel, on the SMs in turn; *wait* us of each stand still."""
    rows: list[tuple[int, ...]] = []
    begin = 7
    for kernel, length in enumerate(micros):
        for ticket in range(6):
            turn, place = divmod(ticket, SMS)
            start = (begin + turn * length) * US
            load, end = start + wait * US, start + length * US
            where = (kernel, ticket // 3, ticket % 3, 0, ticket, 0, ticket, sms[place], 0)
            rows.append((*where, start, start, load, end, NONE, wait * US))
        begin += 2 * length
    empty = column_table([], EVENT_COLUMNS), column_table([], WAIT_COLUMNS)
    meta = {
        "kind": kind,
        "total_ns": 2 * sum(micros) * 1000,
        "stamped_samples_ns": [61_000] if kind != "predicted" else [],
    }
    return Trace(("up", "down"), column_table(rows, TILE_COLUMNS), *empty, (), meta)


PREDICTED = run("predicted", (20, 10))
MEASURED = run("measured", (18, 11), sms=(3, 1, 0, 2), wait=3)


@pytest.fixture
def drawn() -> Figure:
    return overlay(PREDICTED, MEASURED, SHAPE, title="mlp, row")


def texts(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def lanes(ax: Axes, label: str) -> list[tuple[float, float, int]]:
    """Left, right and row of each box of a kernel."""
    (found,) = [each for each in ax.collections if each.get_label() == label]
    assert isinstance(found, PolyCollection)
    boxes = [path.get_extents() for path in found.get_paths()]
    return sorted((box.x0, box.x1, int(box.y0)) for box in boxes)


def test_both_stand_on_one_axis_from_their_first_block_on(drawn: Figure) -> None:
    above, below, errors = drawn.axes
    assert above.get_xlim() == below.get_xlim() == errors.get_xlim()
    assert lanes(above, "up")[0] == (0, 20, 0)
    assert lanes(below, "up")[0] == (0, 18, 0)
    assert lanes(above, "up")[0][0] == lanes(below, "up")[0][0] == 0
    faces = [next(c for c in ax.collections if c.get_label() == "down").get_facecolor() for ax in (above, below)]
    assert np.array_equal(*faces)


def test_sms_with_the_same_tiles_stand_at_the_same_height(drawn: Figure) -> None:
    above, below, _ = drawn.axes
    rows = [[row for _, _, row in lanes(ax, "up")] for ax in (above, below)]
    assert rows[0] == rows[1] == [0, 1, 2, 3, 0, 1]


def test_an_sm_that_ran_more_is_sorted_apart_and_no_block_is_lost() -> None:
    found = by_what_they_ran(MEASURED, SHAPE)
    assert sorted(found.tiles["sm"].tolist()) == sorted(PREDICTED.tiles["sm"].tolist())
    assert by_what_they_ran(found, SHAPE) == found
    assert {name: found.tiles[name].tolist() for name in ("placed", "end")} == {
        name: MEASURED.tiles[name].tolist() for name in ("placed", "end")
    }


def test_each_side_carries_its_badge(drawn: Figure) -> None:
    above, below, _ = drawn.axes
    assert "PREDICTED" in texts(above)
    assert "MEASURED" in texts(below)
    assert "MEASURED" not in texts(above)
    assert "PREDICTED" not in texts(below)


def test_the_title_says_totals_error_and_what_cancels(drawn: Figure) -> None:
    said = texts(drawn.axes[0])
    assert "mlp, row" in said
    assert (
        "total 60.0 us predicted, 58.0 us measured: +3.4 %   (runs that stamp their blocks, as drawn: 61.0 us)" in said
    )
    assert "first start to last end +2.0 us;   rounds off by 6 us in sum, of which 67 % cancels" in said


def test_dots_are_the_errors_of_tiles_and_steps_the_medians_of_rounds(drawn: Figure) -> None:
    errors = drawn.axes[2]
    dots = [each for each in errors.collections if isinstance(each, PathCollection)]
    assert [len(each.get_offsets()) for each in dots] == [6, 6]
    found = compare_traces(PREDICTED, MEASURED, SHAPE)
    assert sorted(np.asarray(dots[0].get_offsets())[:, 1].tolist()) == sorted((found.tiles.end[:6] / US).tolist())
    steps = [line.get_ydata()[0] for line in errors.lines if len(line.get_ydata()) == 2][:4]
    assert steps == [2, 4, 3, 2]
    assert [text for text in texts(errors) if text[0] == "+"] == ["+2.0", "+4.0", "+3.0", "+2.0"]


def test_ends_of_rounds_are_joined(drawn: Figure) -> None:
    slants = [each for each in drawn.axes[1].get_children() if isinstance(each, ConnectionPatch)]
    assert [(each.xy1[0], each.xy2[0]) for each in slants] == [(20, 18), (40, 36), (50, 47), (60, 58)]


def test_waits_are_drawn_where_a_measured_block_can_only_have_waited_before_its_load(drawn: Figure) -> None:
    assert [patch.get_label() for patch in drawn.axes[0].patches if patch.get_hatch()] == []
    assert [patch.get_label() for patch in drawn.axes[1].patches if patch.get_hatch()] == [
        "up, waiting",
        "down, waiting",
    ]
    filled = with_waits_before_load(MEASURED)
    assert filled.waits["begin"].tolist() == MEASURED.tiles["ready"].tolist()
    assert filled.waits["end"].tolist() == MEASURED.tiles["first_load"].tolist()
    later = replace(MEASURED, tiles={**MEASURED.tiles, "wait_total": MEASURED.tiles["wait_total"] + 1})
    assert not len(with_waits_before_load(later).waits["tile"])
    assert with_waits_before_load(filled) == filled


def test_no_text_of_the_title_lies_on_another(drawn: Figure) -> None:
    canvas = FigureCanvasAgg(drawn)
    canvas.draw()
    extents = [text.get_window_extent(canvas.get_renderer()) for text in drawn.axes[0].texts]
    for place, one in enumerate(extents):
        assert not any(one.overlaps(other) for other in extents[place + 1 :])


def test_runs_of_other_plans_are_not_drawn() -> None:
    other = replace(MEASURED, meta={**MEASURED.meta, "plan_digest": "a"})
    with pytest.raises(InputError, match="another plan"):
        overlay(replace(PREDICTED, meta={**PREDICTED.meta, "plan_digest": "b"}), other, SHAPE)


POINTS = (ErrorPoint("row", 100_000, 110_000), ErrorPoint("row", 400_000, 380_000), ErrorPoint("tile", 50_000, 40_000))


def test_the_scatter_has_a_dot_a_row_and_says_how_far_off() -> None:
    fig = error_scatter(POINTS, band_pct=10, title="h200")
    (ax,) = fig.axes
    dots = [each for each in ax.collections if isinstance(each, PathCollection)]
    assert np.asarray(dots[0].get_offsets()).tolist() == [[100, pytest.approx(1.1)], [400, pytest.approx(0.95)]]
    low, high = ax.get_ylim()
    assert low < 0.8 < 1.2 < high
    assert high - 1 == pytest.approx(1 - low)
    legend = [text.get_text().strip() for text in fig.legends[0].get_texts()]
    assert legend[1:] == ["row: 2, MAPE 7.5 %", "tile: 1, MAPE 20.0 %"]
    assert fig.legends[0].get_title().get_text() == "PREDICTED OVER MEASURED"
    assert "3 rows, MAPE 11.7 %; 2 of them in the grey band of ±10 %" in texts(ax)
    (band,) = ax.patches
    assert (band.get_y(), band.get_y() + band.get_height()) == pytest.approx((0.9, 1.1))


def test_errors_that_cannot_be_drawn_are_refused() -> None:
    with pytest.raises(InputError, match="must hold at least one"):
        error_scatter(())
    with pytest.raises(InputError, match=r"points\[1\].*must be above 0"):
        error_scatter((POINTS[0], ErrorPoint("row", 0, 10)))
    with pytest.raises(InputError, match="at most 10"):
        error_scatter([ErrorPoint(str(number), 10, 10) for number in range(11)])


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_the_same_pictures_have_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    for name in "ab":
        save_figure(overlay(PREDICTED, MEASURED, SHAPE), tmp_path / f"overlay-{name}{suffix}")
        save_figure(error_scatter(POINTS), tmp_path / f"errors-{name}{suffix}")
    for what in ("overlay", "errors"):
        assert (tmp_path / f"{what}-a{suffix}").read_bytes() == (tmp_path / f"{what}-b{suffix}").read_bytes()
