"""Pictures, judged by the artists in them and by the bytes of their files."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.text import Text

from cusim.errors import InputError
from cusim.plot.bars import BarRow, policy_bars
from cusim.plot.lines import SweepLine, sweep_lines
from cusim.plot.save import save_figure
from cusim.plot.style import PALETTE, kernel_colour
from cusim.plot.timeline import timeline
from cusim.trace.metrics import MachineShape
from cusim.trace.trace import EVENT_COLUMNS, NONE, TILE_COLUMNS, WAIT_COLUMNS, Trace, column_table

US = 1_000_000


def chain(sms: int, tiles: tuple[int, ...], *, slots: int = 1, wait: int = 0, lane: bool = True) -> Trace:
    """Kernels one after another, their tiles round-robin over the SMs, 10 us each, *wait* us of it standing still."""
    rows: list[tuple[int, ...]] = []
    waits: list[tuple[int, ...]] = []
    free = 0
    for kernel, count in enumerate(tiles):
        for ticket in range(count):
            turn, place = divmod(ticket, sms * slots)
            begin = free + turn * 10 * US
            still = wait * US if kernel else 0
            if still:
                waits.append((len(rows), begin, begin + still, kernel - 1, 0))
            where = (place % sms, place // sms if lane else -1)
            times = (begin, begin, begin + still, begin + 10 * US, NONE, still)
            rows.append((kernel, ticket // 3, ticket % 3, 0, ticket, 0, ticket, *where, *times))
        free += -(-count // (sms * slots)) * 10 * US
    names = tuple(f"k{number}" for number in range(len(tiles)))
    return Trace(
        names,
        column_table(rows, TILE_COLUMNS),
        column_table([], EVENT_COLUMNS),
        column_table(waits, WAIT_COLUMNS),
        tuple(f"{name}>" for name in names),
        {"kind": "predicted", "total_ns": 41 * US // 1000},
    )


def shape_of(trace: Trace, sms: int, slots: int = 1) -> MachineShape:
    return MachineShape(sms, 64, dict.fromkeys(trace.kernels, slots), dict.fromkeys(trace.kernels, 8))


def boxes(fig: Figure, label: str) -> PolyCollection:
    (found,) = [each for each in fig.axes[0].collections if each.get_label() == label]
    assert isinstance(found, PolyCollection)
    return found


def texts(fig: Figure) -> list[str]:
    return [text.get_text() for text in fig.axes[0].texts]


def legend(fig: Figure) -> list[str]:
    return [text.get_text() for text in fig.legends[0].get_texts()]


@pytest.fixture
def fig_1() -> Figure:
    trace = chain(4, (6, 6), wait=2)
    return timeline(trace, shape_of(trace, 4), title="cuSync, Fig. 1")


def test_one_box_a_block_where_and_when_it_ran(fig_1: Figure) -> None:
    paths = boxes(fig_1, "k0").get_paths()
    assert len(paths) == len(boxes(fig_1, "k1").get_paths()) == 6
    first = paths[4].get_extents()
    assert (first.x0, first.x1) == (10.0, 20.0)
    assert 0 < first.y0 < first.y1 < 1


def test_waits_are_hatched_on_top_of_their_blocks(fig_1: Figure) -> None:
    (still,) = [patch for patch in fig_1.axes[0].patches if patch.get_label() == "k1, waiting"]
    assert still.get_hatch()
    assert not boxes(fig_1, "k1").get_hatch()
    places = still.get_path().vertices.reshape(6, 5, 2)
    assert (places[:, 1, 0] - places[:, 0, 0]).tolist() == [2.0] * 6
    assert still.get_zorder() > boxes(fig_1, "k1").get_zorder()


def test_title_badge_and_legend_say_what_it_is(fig_1: Figure) -> None:
    assert "cuSync, Fig. 1" in texts(fig_1)
    assert "total 41.0 us   span 40.0 us   working 67.5 %   waiting 7.5 %   empty 25.0 %" in texts(fig_1)
    assert fig_1.legends[0].get_title().get_text() == "PREDICTED"
    assert [line.strip() for line in legend(fig_1)][1:4] == ["k0", "k1", "waiting"]


def test_rounds_are_marked_and_numbered(fig_1: Figure) -> None:
    ends = sorted(line.get_xdata()[0] for line in fig_1.axes[0].lines)
    assert ends == [10.0, 20.0, 30.0, 40.0]
    assert [text for text in texts(fig_1) if text.isdigit()] == ["1", "2", "3", "4"]


def test_boxes_carry_their_tile_where_there_is_room(fig_1: Figure) -> None:
    assert texts(fig_1).count("1,2") == 2
    many = chain(132, (264,))
    assert "0,0" not in texts(timeline(many, shape_of(many, 132)))


def test_axes_hold_every_sm_and_the_whole_run(fig_1: Figure) -> None:
    ax = fig_1.axes[0]
    assert ax.get_ylim() == (4, 0)
    assert ax.get_xlim()[0] == 0
    assert 40 < ax.get_xlim()[1] < 41
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0", "1", "2", "3"]


def test_a_range_of_sms_draws_those_only_and_keeps_the_numbers_of_all() -> None:
    trace = chain(132, (144, 288), wait=1)
    fig = timeline(trace, shape_of(trace, 132), sm=range(8, 12))
    assert len(boxes(fig, "k0").get_paths()) == 2 * 4
    assert [label.get_text() for label in fig.axes[0].get_yticklabels()] == ["8", "9", "10", "11"]
    whole = timeline(trace, shape_of(trace, 132))
    assert [text for text in texts(fig) if "working" in text] == [t for t in texts(whole) if "working" in t]


@pytest.mark.parametrize("view", [range(130, 140), range(5, 5), range(-2, 3)])
def test_a_range_beyond_the_gpu_is_refused(view: range) -> None:
    trace = chain(132, (132,))
    with pytest.raises(InputError, match=r"START:STOP within 0:132"):
        timeline(trace, shape_of(trace, 132), sm=view)


def test_slots_of_an_sm_are_rows_even_where_no_lane_was_recorded() -> None:
    for lane in (True, False):
        trace = chain(2, (8,), slots=2, lane=lane)
        fig = timeline(trace, shape_of(trace, 2, slots=2))
        assert fig.axes[0].get_ylim() == (4, 0)
        assert fig.axes[0].get_ylabel() == "SM, 2 slots each"
        rows = sorted({int(path.get_extents().y0) for path in boxes(fig, "k0").get_paths()})
        assert rows == [0, 1, 2, 3]


def test_measured_traces_are_marked_and_say_when_waits_have_no_times() -> None:
    trace = chain(4, (4, 4), wait=3)
    measured = Trace(
        trace.kernels,
        trace.tiles,
        trace.events,
        column_table([], WAIT_COLUMNS),
        trace.dependences,
        {"kind": "measured"},
    )
    fig = timeline(measured, shape_of(trace, 4))
    assert fig.legends[0].get_title().get_text() == "MEASURED"
    assert any("when blocks waited was not recorded" in text for text in texts(fig))
    assert "waiting" not in legend(fig)


def test_many_kernels_share_colours_and_the_legend_says_so() -> None:
    trace = chain(4, (4,) * 14)
    fig = timeline(trace, shape_of(trace, 4))
    assert f"and {14 - len(PALETTE)} more, colours repeat" in legend(fig)
    assert kernel_colour(len(PALETTE)) == kernel_colour(0)


def test_an_empty_trace_still_draws(tmp_path: Path) -> None:
    trace = chain(4, (0, 0))
    save_figure(timeline(trace, shape_of(trace, 4)), tmp_path / "empty.png")
    assert (tmp_path / "empty.png").stat().st_size > 1000


def test_no_text_lies_on_another(fig_1: Figure) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(fig_1)
    canvas.draw()
    extents = [text.get_window_extent(canvas.get_renderer()) for text in fig_1.axes[0].texts if text.get_text()]
    extents += [fig_1.legends[0].get_window_extent(canvas.get_renderer())]
    for place, one in enumerate(extents):
        assert not any(one.overlaps(other) for other in extents[place + 1 :])


ROWS = (
    BarRow("stream", 400_000, 70, 0, 30),
    BarRow("tile", 390_000, 75, 5, 20),
    BarRow("row", 360_000, 80, 5, 15, recommended=True),
    BarRow("none", 0, 0, 0, 0, deadlock=True),
)


def test_bars_stack_to_the_total() -> None:
    ax = policy_bars(ROWS, band_pct=4).axes[0]
    working, waiting, empty = ax.containers[:3]
    assert [bar.get_width() for bar in working] == pytest.approx([280, 292.5, 288])
    assert [bar.get_x() + bar.get_width() for bar in empty] == pytest.approx([400, 390, 360])
    assert all(bar.get_hatch() for bar in waiting)
    assert not any(bar.get_hatch() for bar in working)


def test_bars_say_time_change_tie_recommendation_and_deadlock() -> None:
    fig = policy_bars(ROWS, band_pct=4, title="mlp")
    assert texts(fig) == [
        "400.0 us",
        "390.0 us   \N{MINUS SIGN}2.5 %, a tie",
        "360.0 us   \N{MINUS SIGN}10.0 %   recommended",
        "deadlock: never ends",
    ]
    weights = [label.get_fontweight() for label in fig.axes[0].get_yticklabels()]
    assert weights == ["normal", "normal", "bold", "normal"]
    assert fig.legends[0].get_title().get_text() == "PREDICTED"
    assert [line.strip() for line in legend(fig)] == [
        "", "working", "waiting", "empty", "stream", "error band, ±4 %",
    ]  # fmt: skip


def test_bars_draw_the_reference_and_the_band() -> None:
    ax = policy_bars(ROWS, band_pct=4).axes[0]
    assert any(set(line.get_xdata()) == {400.0} for line in ax.lines)
    (band,) = [each for each in ax.collections if len(each.get_paths()) == 3]
    assert band.get_paths()[0].vertices[:, 0].tolist() == pytest.approx([384, 416])


def test_gains_are_time_saved_over_the_reference() -> None:
    fig = policy_bars(ROWS, measure="gain", band_pct=4, kind="measured")
    assert [bar.get_width() for bar in fig.axes[0].containers[0]] == pytest.approx([0, 2.5, 10])
    assert texts(fig)[:3] == ["reference", "+2.5 %, a tie", "+10.0 %   recommended"]
    assert "tie: within ±4 %" in legend(fig)


@pytest.mark.parametrize(
    ("rows", "measure", "says"),
    [
        ((), "time", "must hold at least one"),
        ((BarRow("x", 10, 50, 10, 10),), "time", "sum to 100 %"),
        ((BarRow("streem", 10, 50, 10, 40),), "gain", "did you mean streem"),
    ],
)
def test_bars_that_cannot_be_drawn_are_refused(rows: tuple[BarRow, ...], measure: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        policy_bars(rows, measure=measure)


LINES = (
    SweepLine("stream  row", (256, 512, 768), (100_000, 200_000, 400_000), reference=True),
    SweepLine("stream  column", (256, 512, 768), (110_000, 190_000, 410_000), reference=True),
    SweepLine("row", (256, 512, 768), (90_000, None, 300_000)),
)


def test_lines_are_times_above_and_gains_over_the_best_stream_order_below() -> None:
    fig = sweep_lines(LINES, band_pct=5, title="mlp")
    above, below = fig.axes
    drawn = {line.get_label(): line.get_ydata() for line in above.lines}
    assert list(drawn["stream  column"]) == [110, 190, 410]
    (gain,) = [line for line in below.lines if line.get_label() == "row"]
    assert gain.get_ydata()[0] == pytest.approx(10)
    assert np.isnan(gain.get_ydata()[1])
    assert gain.get_ydata()[2] == pytest.approx(25)
    assert [tick.get_text() for tick in below.get_xticklabels()] == ["256", "512", "768"]


def test_lines_say_where_a_policy_deadlocks_and_what_is_a_tie() -> None:
    fig = sweep_lines(LINES, band_pct=5)
    assert [line.strip() for line in legend(fig)][1:] == [
        "stream  row", "stream  column", "row", "deadlock: never ends", "tie: within ±5 %",
    ]  # fmt: skip
    (cross,) = [line for line in fig.axes[0].lines if line.get_label().startswith("deadlock")]
    assert list(cross.get_xdata()) == [512]


def test_one_measure_is_one_panel_and_a_gain_needs_a_reference() -> None:
    assert len(sweep_lines(LINES[2:], measures=("time",)).axes) == 1
    with pytest.raises(InputError, match="needs a line of stream order"):
        sweep_lines(LINES[2:])
    with pytest.raises(InputError, match="at least one"):
        sweep_lines((), measures=("time",))
    with pytest.raises(InputError, match="for each of one or more x"):
        sweep_lines((SweepLine("row", (1, 2), (3,)),), measures=("time",))


@pytest.fixture
def stuck() -> Figure:
    """Two blocks, of which the first ends at 10 us and the second waits from 4 us until all stands still at 20 us."""
    tiles = [
        (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10 * US, NONE, 0),
        (1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 4 * US, 20 * US, NONE, 16 * US),
    ]
    trace = Trace(
        ("k0", "k1"),
        column_table(tiles, TILE_COLUMNS),
        column_table([], EVENT_COLUMNS),
        column_table([(1, 4 * US, 20 * US, 0, 0)], WAIT_COLUMNS),
        ("k0>k1",),
        {"kind": "predicted", "deadlock": True, "cycle": ["a", "b"]},
    )
    return timeline(trace, shape_of(trace, 2))


def test_a_deadlock_has_a_badge_a_title_and_waits_that_reach_the_edge(stuck: Figure) -> None:
    ax = stuck.axes[0]
    edge = ax.get_xlim()[1]
    assert edge == pytest.approx(25)
    assert boxes(stuck, "k0").get_paths()[0].get_extents().x1 == 10
    assert boxes(stuck, "k1").get_paths()[0].get_extents().x1 == pytest.approx(edge)
    (still,) = [patch for patch in ax.patches if patch.get_label() == "k1, waiting"]
    assert still.get_path().get_extents().x1 == pytest.approx(edge)
    assert [text for text in texts(stuck) if "never ends: stands still from 20.0 us on" in text]
    assert "nothing moves any more" in legend(stuck)
    plates = [text.get_text() for text in stuck.legends[0].findobj(Text) if text.get_text() == "DEADLOCK"]
    assert plates == ["DEADLOCK"]


def test_a_run_that_ends_has_no_such_badge(fig_1: Figure) -> None:
    assert not [text for text in fig_1.legends[0].findobj(Text) if text.get_text() == "DEADLOCK"]


def test_the_sign_of_a_tail_is_pale_like_the_tails(fig_1: Figure) -> None:
    place = [line.startswith("pale") for line in legend(fig_1)].index(True)
    sign = fig_1.legends[0].legend_handles[place].get_facecolor()
    tail = next(each for each in fig_1.axes[0].collections if each.get_zorder() == 0.4)
    assert sign == pytest.approx(tail.get_facecolor()[0])


def draw_timeline() -> Figure:
    trace = chain(8, (20, 20), wait=2)
    return timeline(trace, shape_of(trace, 8), title="twice")


@pytest.mark.parametrize("suffix", [".svg", ".png"])
@pytest.mark.parametrize("draw", [draw_timeline, lambda: policy_bars(ROWS, band_pct=4), lambda: sweep_lines(LINES)])
def test_the_same_picture_has_the_same_bytes(tmp_path: Path, suffix: str, draw: Callable[[], Figure]) -> None:
    save_figure(draw(), tmp_path / f"a{suffix}")
    with mpl.rc_context({"font.size": 20.0, "svg.hashsalt": "mine", "axes.facecolor": "black"}):
        save_figure(draw(), tmp_path / f"b{suffix}")
    raw = (tmp_path / f"a{suffix}").read_bytes()
    assert raw == (tmp_path / f"b{suffix}").read_bytes()
    assert not re.search(rb"dc:date|Matplotlib v", raw)


def test_a_huge_svg_holds_its_boxes_as_one_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cusim.plot.timeline._VECTOR_BOXES", 50)
    trace = chain(8, (80,))
    for name in ("a.svg", "b.svg"):
        save_figure(timeline(trace, shape_of(trace, 8)), tmp_path / name)
    assert b"<image" in (tmp_path / "a.svg").read_bytes()
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_unknown_suffix_and_absent_folder_are_refused(tmp_path: Path, fig_1: Figure) -> None:
    with pytest.raises(InputError, match=r"allowed: \.png \.svg"):
        save_figure(fig_1, tmp_path / "x.pdf")
    with pytest.raises(InputError, match="cannot be written"):
        save_figure(fig_1, tmp_path / "absent" / "x.png")
    assert not list(tmp_path.iterdir())


def test_png_has_the_dots_that_were_asked_for(tmp_path: Path, fig_1: Figure) -> None:
    save_figure(fig_1, tmp_path / "a.png")
    width = int.from_bytes((tmp_path / "a.png").read_bytes()[16:20])
    assert width == round(150 * float(np.asarray(fig_1.get_size_inches())[0]))


def test_pyplot_stays_out_and_matplotlib_waits_until_something_is_drawn() -> None:
    code = (
        "import sys; import cusim.trace.formats; assert 'matplotlib' not in sys.modules\n"
        "from cusim.plot.bars import BarRow, policy_bars\n"
        "policy_bars([BarRow('stream', 5, 100, 0, 0)]); assert 'matplotlib.pyplot' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
