"""The published sets that cusim ships, and what a file must be to be read as one."""

import json
from importlib import resources

import pytest

from cusim.errors import InputError
from cusim.validate.cases import shapes_of
from cusim.validate.published import SCHEMA, load_published, parse_published
from cusim.validate.readings import COLUMNS

HEAD = {
    "gpu": "v100", "device": "a V100", "workload": "gpt3-mlp", "hidden": 12288, "unit": "us", "source": "us",
    "files": [], "licence": "MIT", "method": "events", "notes": [],
}  # fmt: skip
STREAM = "512,stream,1,1564.05,11.58,805.49,758.56,256x256x32,256x256x32,2,1,2,2,,own"
ROW = "512,row,1,1267.48,18.19,,,256x256x32,256x256x32,2,1,2,2,,own"


def text(*lines: str, columns: str = ",".join(COLUMNS), **head: object) -> str:
    return "\n".join((f"# {SCHEMA} {json.dumps({**HEAD, **head})}", columns, *lines)) + "\n"


def refusal(content: str) -> str:
    with pytest.raises(InputError) as caught:
        parse_published(content, "mine.csv")
    return str(caught.value)


def test_the_shipped_set() -> None:
    v100, a100 = load_published("published/gpt3-mlp")
    assert (v100.gpu, a100.gpu) == ("v100", "a100")
    assert [len(shapes_of(published)) for published in (v100, a100)] == [20, 11]
    assert [sum(r.policy in ("stream", "row", "tile") for r in p.readings) for p in (v100, a100)] == [60, 36]
    for published in (v100, a100):
        assert published.head["source"] == "parasailteam/cusync"
        assert published.head["licence"] == "MIT"
        assert any("gap between the kernels" in note for note in published.head["notes"])


def test_times_are_exact_picoseconds() -> None:
    v100 = load_published("published/gpt3-mlp")[0]
    reading = next(r for r in v100.readings if r.m == 2304 and r.policy == "tile")
    assert (reading.total_ps, reading.stdev_ps, reading.flags) == (4_584_840_000, 22_180_000, "RA")


def test_grids_alike_are_one_group() -> None:
    v100 = shapes_of(load_published("published/gpt3-mlp")[0])
    assert len({shape.group for shape in v100 if shape.m <= 32}) == 1
    assert len({shape.group for shape in v100}) == 15


def test_which_rows_are_cut_otherwise_than_stream() -> None:
    v100, a100 = (shapes_of(published) for published in load_published("published/gpt3-mlp"))
    changed = [(shape.m, case.policy, case.changed) for shape in v100 for case in shape.cases if case.changed]
    assert changed == [(64, "tile", ("up",))]
    same = {shape.m for shape in a100 for case in shape.cases if not case.anchors and not case.changed}
    assert same == {512, 1024, 1536}


def test_repeats_become_their_mean() -> None:
    a100 = shapes_of(load_published("published/gpt3-mlp")[1])
    (shape,) = (shape for shape in a100 if shape.m == 2048)
    assert shape.stream.reading.total_ps == 2_894_020_000
    assert sum(shape.stream.reading.own_ps or ()) == 2_894_020_000
    tile = shape.cases[2].reading
    assert tile.stdev_ps == pytest.approx(((11.26**2 + 14.84**2) / 2) ** 0.5 * 1e6, rel=1e-6)


def test_plans_are_as_published() -> None:
    v100 = shapes_of(load_published("published/gpt3-mlp")[0])
    small, large = v100[0], v100[-1]
    assert [case.plan.launch for case in small.cases] == ["stream", "none", "none"]
    assert [case.plan.launch for case in large.cases] == ["stream", "wait-first", "wait-first"]
    assert str(small.cases[2].plan.flags_of("down")) == "WRTA"
    assert [kernel.grid for kernel in large.stream.program.kernels] == [(12, 24, 1), (12, 48, 1)]


def test_a_small_set_is_read() -> None:
    found = parse_published(text(STREAM, ROW), "mine.csv")
    assert [reading.policy for reading in found.readings] == ["stream", "row"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("m & policy & total us & kernel1\n1 & row & 3 & 4\n", "cuSync's benchmark"),
        ('"ID","Process ID","Kernel Name","Section Name"\n', "Nsight Compute"),
        ("Time (%),Total Time (ns),Instances\n", "Nsight Systems"),
        ("policy,order,total_ns,speedup_vs_stream\n", "cusim predict"),
        (",".join(COLUMNS) + "\n", "published table without its first line"),
        ("hello\n", "starts with"),
    ],
)
def test_a_file_of_another_tool_is_named(content: str, says: str) -> None:
    message = refusal(content)
    assert says in message
    assert f"# {SCHEMA}" in message


def test_another_unit_is_named() -> None:
    assert "times must be in us" in refusal(text(STREAM, ROW, unit="ms"))
    titles = ",".join(COLUMNS).replace("total_us", "total_ms")
    message = refusal(text(STREAM, columns=titles))
    assert "a time in ms: times must be in us, as total_us" in message


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (ROW.replace("row", "rwo"), "did you mean row?"),
        (ROW.replace("1267.48", "fast"), "line 4: total_us"),
        (ROW.replace("1267.48", "0"), "line 4: total_us"),
        (ROW.replace("18.19", ""), "line 4: stdev_us"),
        (ROW.replace("256x256x32", "256x256"), "line 4: producer_tile"),
        (ROW.replace(",2,2,,own", ",2,0,,own"), "line 4: consumer_stages"),
        (ROW.replace(",,own", ",X,own"), "line 4: flags"),
        (ROW.replace("own", "mine"), "line 4: tile_entry"),
        (ROW + ",", "has 16 cells, must have 15"),
        (STREAM, "a repeat of this number came before"),
        (ROW.replace("512", "768", 1), "m=768   has no stream row"),
    ],
)
def test_a_line_that_is_off_is_named(line: str, says: str) -> None:
    assert says in refusal(text(STREAM, line))


def test_parts_must_add_up() -> None:
    assert "must add up to it" in refusal(text(STREAM.replace("805.49", "805.99"), ROW))


def test_everything_wrong_with_the_first_line_comes_at_once() -> None:
    message = refusal(text(STREAM, gpu="v10", workload="gpt3", notes="none", licence=""))
    assert "4 errors in mine.csv" in message
    assert "did you mean v100?" in message
    assert "did you mean gpt3-mlp?" in message


def test_an_empty_set_and_an_unknown_name() -> None:
    assert "holds no reading" in refusal(text())
    with pytest.raises(InputError, match=r"did you mean published/gpt3-mlp\?"):
        load_published("published/gpt3")


def test_every_shipped_file_belongs_to_a_set() -> None:
    folder = resources.files("cusim") / "validate" / "published"
    names = {entry.name for entry in folder.iterdir() if entry.name.endswith(".csv")}
    assert names == {"gpt3_mlp_v100.csv", "gpt3_mlp_a100.csv"}
