"""Kernel launches from a report of Nsight Compute: names, grids, block resources and times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from cusim.errors import Problems, did_you_mean, refuse
from cusim.files import MOST_DATA_BYTES, read_file
from cusim.importers.ncu_csv import ADVICE, Record, read_records
from cusim.importers.ncu_values import BadValueError, bytes_of, count_of, nanoseconds_of, triple_of

T = TypeVar("T")

#: What a launch needs: the metric's name on the raw page and its label on the details page.
REGISTERS = ("launch__registers_per_thread", "Registers Per Thread")
STATIC = ("launch__shared_mem_per_block_static", "Static Shared Memory Per Block")
DYNAMIC = ("launch__shared_mem_per_block_dynamic", "Dynamic Shared Memory Per Block")
DURATION = ("gpu__time_duration.sum", "Duration")
GRID_BLOCKS = ("launch__grid_size", "Grid Size")
BLOCK_THREADS = ("launch__block_size", "Block Size")
CLUSTER = ("launch__cluster_size", "Cluster Size")
DEVICE = ("device__attribute_display_name",)
SMS = ("launch__sm_count", "# SMs", "device__attribute_multiprocessor_count")
#: Limits of any GPU so far, as program files have them.
_MOST_THREADS, _MOST_REGISTERS, _MOST_SHARED, _MOST_BLOCKS = 1024, 255, 1 << 20, 2**31 - 1
_MOST_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel launch: its demangled *name*, grid along x, y and z, block resources and time alone.

    *smem_bytes* is static and dynamic shared memory; what the driver adds is the machine's reserve. *shaped* is False
    where the report gives only the number of blocks, not their grid.
    """

    name: str
    grid: tuple[int, int, int]
    threads: int
    registers: int
    smem_bytes: int
    time_ns: int
    cluster: int = 1
    shaped: bool = True


@dataclass(frozen=True, slots=True)
class NcuReport:
    """The launches of one process in order, and the GPU's name and number of SMs where the report says them."""

    launches: tuple[Launch, ...]
    device: str | None
    sms: int | None


def load_ncu(path: Path | str, process: str | None = None) -> NcuReport:
    """The report in a CSV file of Nsight Compute; *process* chooses among several.

    Raises InputError, with everything that is wrong, for a file that is absent, cut off or of another tool, metrics
    that are missing, values and units that are not understood, and kernels of several processes or devices.
    """
    source = str(path)
    try:
        raw = read_file(Path(path), MOST_DATA_BYTES)
    except OSError as error:
        raise refuse(source, "file", None, f"cannot be read: {error.strerror}") from None
    if raw.startswith(b"NVR\0"):
        why = f"is a binary report; first: ncu --import {Path(path).name} --csv --page raw > report.csv"
        raise refuse(source, "file", None, why)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise refuse(source, "file", None, f"is no UTF-8 text; make the report so: {ADVICE}") from None
    return parse_ncu(text, source, process)


def parse_ncu(text: str, source: str, process: str | None = None) -> NcuReport:
    """The report that *text* holds; *source* is what errors call it."""
    records = _of_one_process(read_records(text, source), source, process)
    problems = Problems(source)
    _check_metrics(records, problems)
    problems.raise_if_any()
    launches = [_launch(record, problems) for record in records]
    device = _only(records, DEVICE, "devices by name", problems)
    _only(records, ("Device",), "devices", problems)
    sms = _Reader(records[0], problems).optional(SMS, count_of)
    hidden = len(problems.found) - _MOST_PROBLEMS
    if hidden > 0:
        del problems.found[_MOST_PROBLEMS:]
        problems.add("and", None, f"{hidden} more")
    problems.raise_if_any()
    return NcuReport(tuple(launch for launch in launches if launch is not None), device, sms)


def _of_one_process(records: Sequence[Record], source: str, process: str | None) -> list[Record]:
    processes = list(dict.fromkeys(record.process for record in records))
    if process is not None and process not in processes:
        raise refuse(source, "--process", process, f"no kernel is of it; {did_you_mean(process, processes)}")
    if process is None and len(processes) > 1:
        why = "kernels of several processes have no common order; choose one with --process"
        raise refuse(source, "Process ID", " ".join(processes), why)
    return [record for record in records if process in (None, record.process)]


def _check_metrics(records: Sequence[Record], problems: Problems) -> None:
    """Every metric that some launch lacks, at once."""
    wanted: tuple[tuple[str, ...], ...] = (REGISTERS, STATIC, DYNAMIC, DURATION)
    lacking = {names[0]: [r for r in records if not _has(r, names)] for names in wanted}
    lacking["Grid Size"] = [r for r in records if not (_shape_of(r, "Grid Size", "grid") or _has(r, GRID_BLOCKS))]
    lacking["Block Size"] = [r for r in records if not (_shape_of(r, "Block Size", "block") or _has(r, BLOCK_THREADS))]
    for name, without in lacking.items():
        if without:
            some = "" if len(without) == len(records) else f" for {len(without)} of {len(records)} kernels: cut off?"
            problems.add(name, None, f"is missing{some}; make the report so: {ADVICE}")


def _has(record: Record, names: Sequence[str]) -> bool:
    return any(f"metric {name}" in record.cells for name in names)


def _shape_of(record: Record, column: str, what: str) -> bool:
    return column in record.cells or all(f"metric launch__{what}_dim_{axis}" in record.cells for axis in "xyz")


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the values of one launch; what cannot be read is recorded once, with the first launch that has it."""

    record: Record
    problems: Problems

    def value(self, names: Sequence[str], read: Callable[[str, str], T], default: T) -> T:
        found = self.optional(names, read)
        return default if found is None else found

    def optional(self, names: Sequence[str], read: Callable[[str, str], T]) -> T | None:
        for name in names:
            key = f"metric {name}" if f"metric {name}" in self.record.cells else name
            if key in self.record.cells:
                text, unit = self.record.cells[key]
                try:
                    return read(text, unit.strip())
                except BadValueError as error:
                    self.wrong(name, text, str(error))
                return None
        return None

    def wrong(self, name: str, given: object, why: str) -> None:
        self.problems.add(f"{name} of ID {self.record.number}", given, why)

    def shape(self, column: str, what: str) -> tuple[int, int, int] | None:
        """Sizes along x, y and z from their column, or from one metric each."""
        if column in self.record.cells:
            text, _ = self.record.cells[column]  # not the details page's metric of that name, which is the product
            try:
                return triple_of(text)
            except BadValueError as error:
                self.wrong(column, text, str(error))
                return 1, 1, 1
        if not _shape_of(self.record, column, what):
            return None
        x, y, z = (self.value((f"launch__{what}_dim_{axis}",), count_of, 1) for axis in "xyz")
        return x, y, z


def _launch(record: Record, problems: Problems) -> Launch | None:
    reader = _Reader(record, problems)
    before = len(problems.found)
    grid = reader.shape("Grid Size", "grid")
    block = reader.shape("Block Size", "block")
    blocks = reader.value(GRID_BLOCKS, count_of, 1) if grid is None else 1
    threads = block[0] * block[1] * block[2] if block else reader.value(BLOCK_THREADS, count_of, 1)
    launch = Launch(
        name=record.cells["Kernel Name"][0],
        grid=grid or (blocks, 1, 1),
        threads=threads,
        registers=reader.value(REGISTERS, count_of, 1),
        smem_bytes=reader.value(STATIC, bytes_of, 0) + reader.value(DYNAMIC, bytes_of, 0),
        time_ns=reader.value(DURATION, nanoseconds_of, 1),
        cluster=max(1, reader.value(CLUSTER, count_of, 1)),
        shaped=grid is not None,
    )
    if len(problems.found) == before:
        _check_limits(launch, reader)
    return launch if len(problems.found) == before else None


def _check_limits(launch: Launch, reader: _Reader) -> None:
    x, y, z = launch.grid
    for name, value, most in (
        ("Grid Size", x * y * z, _MOST_BLOCKS),
        ("Block Size", launch.threads, _MOST_THREADS),
        (REGISTERS[0], launch.registers, _MOST_REGISTERS),
        (CLUSTER[0], launch.cluster, 16),
        (DURATION[0], launch.time_ns, 10**18),
    ):
        if not 1 <= value <= most:
            reader.wrong(name, value, f"must be 1 to {most}")
    if launch.smem_bytes > _MOST_SHARED:
        reader.wrong("shared memory", launch.smem_bytes, f"must be at most {_MOST_SHARED} bytes")


def _only(records: Sequence[Record], names: Sequence[str], what: str, problems: Problems) -> str | None:
    """The one value that all launches share, where they have it."""
    keys = [key for name in names for key in (f"metric {name}", name)]
    values = dict.fromkeys(r.cells[key][0].strip() for r in records for key in keys if key in r.cells)
    found = [value for value in values if value]
    if len(found) > 1:
        problems.add(names[0], " ".join(found), f"kernels of several {what} are no one program; ncu --devices 0")
    return found[0] if found else None
