"""Reports of Nsight Compute: both forms of its CSV, its units and numbers, and what is refused by name."""

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cusim.errors import InputError
from cusim.importers.names import short_name, unique_names
from cusim.importers.ncu import Launch, NcuReport, load_ncu, parse_ncu
from cusim.importers.ncu_program import measured_on, program_text
from cusim.importers.ncu_values import BadValueError, bytes_of, nanoseconds_of, number
from cusim.program.kernel import Measured
from cusim.program.toml_kernel import NAME
from cusim.program.toml_read import parse_program

GEMM = "void mlp::gemm<__half, (int)128, (int)256>(mlp::Params<__half>, int)"
LONG_HEADS = '"ID","Process ID","Kernel Name","Block Size","Grid Size","Metric Name","Metric Unit","Metric Value"\n'
VALUES = {
    "launch__registers_per_thread": ("register/thread", "32"),
    "launch__shared_mem_per_block_static": ("byte/block", "0"),
    "launch__shared_mem_per_block_dynamic": ("Kbyte/block", "4.096"),
    "gpu__time_duration.sum": ("us", "12.5"),
}


@pytest.fixture(scope="module")
def reports(root: Path) -> Path:
    return root / "tests" / "fixtures" / "ncu"


def long_form(number: int = 0, process: int = 1, grid: str = "(4, 3, 1)", **changes: tuple[str, str] | None) -> str:
    """The rows of one launch; keyword arguments replace or (None) leave out a metric, dots and dunders as _."""
    values = dict(VALUES)
    for key, value in changes.items():
        name = next(name for name in VALUES if key in name)
        values.pop(name)
        if value is not None:
            values[name] = value
    row = f'"{number}","{process}","k","(256, 1, 1)","{grid}"'
    return "".join(f'{row},"{name}","{unit}","{value}"\n' for name, (unit, value) in values.items())


def wide(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new)


def test_the_raw_page(reports: Path) -> None:
    report = load_ncu(reports / "raw.csv")
    assert (report.device, report.sms) == ("NVIDIA H200", 132)
    assert report.launches == (
        Launch(GEMM, (24, 6, 1), 384, 168, 196 * 1024, 231_040),
        Launch(
            "void (anonymous namespace)::gelu<float>(float *, const float *, int)",
            (1152, 1, 4), 256, 32, 512, 1_012_416,
        ),
        Launch(GEMM, (48, 6, 1), 384, 168, 196 * 1024, 463_168, cluster=2),
    )  # fmt: skip


def test_the_details_page(reports: Path) -> None:
    report = load_ncu(reports / "details.csv")
    assert (report.device, report.sms) == (None, 132)
    assert report.launches == (
        Launch("assemble(const Mesh *, float *)", (96, 12, 1), 256, 40, 33 * 1024 + 64, 50_000),
        Launch("solve(float *, int)", (500, 1, 1), 64, 255, 0, 37_250),
    )


def test_an_early_version_with_chosen_metrics(reports: Path) -> None:
    (launch,) = load_ncu(reports / "metrics_2020.csv").launches
    assert launch == Launch("compute_flux(int,float*,float*)", (506, 1, 1), 192, 20, 0, 61_440, shaped=False)


def test_one_process_of_several(reports: Path) -> None:
    with pytest.raises(InputError, match=r'Process ID = "4711 4712".*choose one with --process'):
        load_ncu(reports / "two_processes.csv")
    assert [launch.grid[0] for launch in load_ncu(reports / "two_processes.csv", "4712").launches] == [48]
    with pytest.raises(InputError, match=r"--process.*allowed: 4711 4712"):
        load_ncu(reports / "two_processes.csv", "99")


def test_every_missing_metric_at_once(reports: Path) -> None:
    text = '"ID","Kernel Name","dram__bytes.sum"\n"","","Mbyte"\n"0","k","1.5"\n'
    with pytest.raises(InputError) as caught:
        parse_ncu(text, "r.csv")
    assert {problem.key for problem in caught.value.problems} == {*VALUES, "Grid Size", "Block Size"}
    assert all("ncu --csv --page raw" in problem.why for problem in caught.value.problems)


def test_a_launch_that_lacks_a_metric_is_counted() -> None:
    text = LONG_HEADS + long_form(0) + long_form(1, time_duration=None)
    with pytest.raises(InputError, match=r"gpu__time_duration\.sum .*for 1 of 2 kernels: cut off\?"):
        parse_ncu(text, "r.csv")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"time_duration": ("cycle", "1")}, "unit 'cycle' is not known; allowed: ns nsecond us"),
        ({"time_duration": ("us", "9,00")}, "decimal comma.*LC_ALL=C"),
        ({"time_duration": ("us", "0,244")}, "decimal comma"),
        ({"time_duration": ("us", "1.234,5")}, "decimal comma"),
        ({"time_duration": ("us", "n/a")}, r'gpu__time_duration\.sum of ID 0 = "n/a".*must be a number'),
        ({"time_duration": ("us", "nan")}, "must be a number"),
        ({"time_duration": ("ns", "0")}, "must be 1 to"),
        ({"registers": ("register/thread", "256")}, "must be 1 to 255"),
        ({"registers": ("register/thread", "3.5")}, "must be a whole number"),
        ({"static": ("Gbyte/block", "1")}, "unit 'Gbyte/block' is not known"),
        ({"dynamic": ("Mbyte/block", "2.5")}, "must be at most 1048576 bytes"),
        ({"grid": "4 x 3"}, r"Grid Size of ID 0 = \"4 x 3\".*three sizes"),
        ({"grid": "(4, 0, 1)"}, "Grid Size of ID 0 = 0 .*must be 1 to"),
    ],
)
def test_values_that_are_not_understood(changes: dict[str, tuple[str, str]], says: str) -> None:
    with pytest.raises(InputError, match=says):
        parse_ncu(LONG_HEADS + long_form(**changes), "r.csv")  # type: ignore[arg-type]


def test_problems_of_many_launches_are_cut_short() -> None:
    text = LONG_HEADS + "".join(long_form(i, time_duration=("us", "n/a")) for i in range(50))
    with pytest.raises(InputError) as caught:
        parse_ncu(text, "r.csv")
    assert len(caught.value.problems) == 21
    assert caught.value.problems[-1].why == "30 more"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("==PROF== Connected\n==WARNING== No kernels were profiled.\n", "ncu profiled none"),
        (LONG_HEADS, "holds no kernel"),
        ('"ID","Kernel Name","launch__grid_size"\n"","",""\n', "holds no kernel"),
        ('"Time (%)","Total Time (ns)","Instances","Name"\n', "is a table of nsys"),
        ("Start (ns),Duration (ns),CorrId,GrdX\n", "is a table of nsys"),
        ("==7== NVPROF is profiling process 7\n==7== Profiling result:\n", "is an output of nvprof"),
        ('"Name","Calls","TotalDurationNs"\n', "is a table of rocprof"),
        ("k (4, 1, 1)x(32, 1, 1)\n  Section: GPU Speed Of Light\n", "the text that ncu prints without --csv"),
        ("a,b\n1,2\n", "no line of heads that begins with ID"),
        ('"ID","Name"\n"0","k"\n', 'columns = "Kernel Name".*missing'),
        ('"ID","Kernel Name"\n"0","k"\n', "row of units.*is missing"),
        (LONG_HEADS + long_form() + LONG_HEADS, "line 6.*heads come again"),
        (LONG_HEADS + long_form() + "printed by the program\n", "line 6.*has 1 fields, the heads are 8"),
    ],
)
def test_what_is_no_report(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says) as caught:
        parse_ncu(text, "r.csv")
    assert caught.value.source == "r.csv"


def test_files_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    with pytest.raises(InputError, match="cannot be read: No such file"):
        load_ncu(path)
    path.write_bytes("\ufeff".encode("utf-16") + LONG_HEADS.encode("utf-16"))
    with pytest.raises(InputError, match="is no UTF-8 text"):
        load_ncu(path)
    path.write_bytes(b"NVR\0\1\2")
    with pytest.raises(InputError, match=r"binary report; first: ncu --import r\.csv --csv --page raw"):
        load_ncu(path)


@pytest.mark.parametrize("name", ["raw.csv", "details.csv"])
def test_a_report_cut_off_inside_its_last_row_is_refused(reports: Path, name: str) -> None:
    text = (reports / name).read_text(encoding="utf-8").rstrip()
    for length in range(text.rindex("\n") + 2, len(text)):
        with pytest.raises(InputError):
            parse_ncu(text[:length], name)


def test_the_byte_order_mark_and_windows_line_ends(reports: Path, tmp_path: Path) -> None:
    raw = (reports / "raw.csv").read_bytes()
    (tmp_path / "r.csv").write_bytes(b"\xef\xbb\xbf" + raw.replace(b"\n", b"\r\n"))
    assert load_ncu(tmp_path / "r.csv") == load_ncu(reports / "raw.csv")


def test_kernels_of_several_devices_are_refused(reports: Path) -> None:
    text = (reports / "raw.csv").read_text(encoding="utf-8")
    last = text.splitlines()[-1]
    other = wide(wide(last, '"0","9.0"', '"1","9.0"'), "NVIDIA H200", "NVIDIA H100")
    with pytest.raises(InputError, match=r"several devices by name.*\n.*several devices are"):
        parse_ncu(text.replace(last, other), "r.csv")


@given(st.integers(0, 10**12), st.booleans())
def test_separators_between_thousands_change_nothing(value: int, fraction: bool) -> None:
    tail = ".25" if fraction else ""
    assert number(f"{value:,}{tail}") == number(f"{value}{tail}") == Decimal(f"{value}{tail}")


@given(st.integers(0, 227))
def test_whole_kibibytes_survive_two_decimals(kib: int) -> None:
    # The details page prints thousands of bytes with two decimals.
    assert bytes_of(f"{kib * 1024 / 1000:.2f}", "Kbyte/block") == kib * 1024


@pytest.mark.parametrize(
    ("text", "unit", "ns"),
    [("1,012.416", "us", 1_012_416), ("3.2", "nsecond", 3), ("0.244544", "ms", 244_544), ("2", "second", 2 * 10**9)],
)
def test_times_in_every_unit(text: str, unit: str, ns: int) -> None:
    assert nanoseconds_of(text, unit) == ns


def test_bytes_are_whole() -> None:
    with pytest.raises(BadValueError, match="whole number of bytes"):
        bytes_of("1.5", "byte/block")


@pytest.mark.parametrize(
    ("demangled", "short"),
    [
        (GEMM, "gemm"),
        ("void (anonymous namespace)::gelu<float>(float *, const float *, int)", "gelu"),
        ("void cutlass::Kernel<cutlass::gemm::Gemm<(int)3, a<b>>>(cutlass::Params)", "Kernel"),
        ("ampere_fp16_s16816gemm_fp16_128x256_ldg8_f2f_tn", "ampere_fp16_s16816gemm_fp16_128x256_ldg8_f2f_tn"),
        ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::F, std::array<char*, 3> >(int, F)",
         "vectorized_elementwise_kernel"),
        ("k$1(int)", "k_1"),
        ("3d(int)", "k_3d"),
        ("", "kernel"),
        ("<>::(", "kernel"),
    ],
)  # fmt: skip
def test_short_names(demangled: str, short: str) -> None:
    assert short_name(demangled) == short


@given(st.lists(st.one_of(st.text(max_size=30), st.sampled_from(["k", "k-2", "void k<int>(int)"])), max_size=12))
def test_names_are_unique_and_allowed(demangled: list[str]) -> None:
    names = unique_names(demangled)
    assert len(set(names)) == len(names) == len(demangled)
    assert all(NAME.fullmatch(name) for name in names)


def test_names_that_come_again_are_numbered() -> None:
    assert unique_names(["k(int)", "k(int)", "k-2", "void k<3>(int)"]) == ["k", "k-2", "k-2-2", "k-3"]


def test_the_program_holds_what_the_report_says(reports: Path) -> None:
    text = program_text(load_ncu(reports / "raw.csv"), "mlp", "h200")
    program = parse_program(text, "mlp.toml")
    assert [kernel.name for kernel in program.kernels] == ["gemm", "gelu", "gemm-2"]
    gemm, gelu, again = program.kernels
    assert gemm.grid == (6, 24, 1)
    assert gelu.grid == (4, 1152, 1)  # z follows y in the rows
    assert (gemm.block.threads, gemm.block.registers, gemm.block.smem_bytes) == (384, 168, 196 * 1024)
    assert gelu.cost == Measured(1_012_416_000, "h200")
    assert again.block.cluster == 2
    assert GEMM in text


def test_needs_filled_in_where_the_lines_are(reports: Path) -> None:
    text = program_text(load_ncu(reports / "raw.csv"), "mlp", "h200")
    assert text.count("# needs = ") == 2
    program = parse_program(wide(text, '# needs = ["gelu[r, :]"]', 'needs = ["gemm[r, :]"]'), "mlp.toml")
    assert [read.buffer for read in program.kernels[2].reads] == ["gemm"]


def test_a_name_cannot_break_out_of_its_comment() -> None:
    launch = Launch('k\n[[kernel]]\r\x07name = "x"', (2, 1, 1), 32, 16, 0, 5_000)
    text = program_text(NcuReport((launch,), "GPU\n[bad]", None), "a\nb", "h200")
    assert [kernel.blocks for kernel in parse_program(text, "x.toml").kernels] == [2]


def test_the_machine_is_that_of_the_report(reports: Path) -> None:
    raw, details = (load_ncu(reports / name) for name in ("raw.csv", "details.csv"))
    assert measured_on(raw, None, "r.csv") == ("h200", ("measured on h200, since the report names NVIDIA H200",))
    assert measured_on(details, "H200", "r.csv") == ("h200", ())
    name, remarks = measured_on(details, "a100", "r.csv")
    assert name == "a100"
    assert remarks == ("the report's GPU has 132 SMs, machine a100 has 108",)


@pytest.mark.parametrize(
    ("device", "sms", "given", "says"),
    [
        (None, None, None, "does not name its GPU: give --measured-on; allowed: a100 h100 h200 v100"),
        ("NVIDIA RTX A1000", None, None, "no preset for NVIDIA RTX A1000"),
        ("NVIDIA H100 PCIe", 114, None, "has 114 SMs, machine h100 has 132: give --measured-on"),
        (None, None, "h300", "--measured-on = \"h300\".*did you mean h"),
        (None, None, "absent.toml", "cannot be read"),
    ],
)  # fmt: skip
def test_a_machine_that_is_not_known(device: str | None, sms: int | None, given: str | None, says: str) -> None:
    with pytest.raises(InputError, match=says):
        measured_on(NcuReport((), device, sms), given, "r.csv")
