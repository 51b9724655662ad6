"""Files that people name: what is read, and what is told at once instead of filling the memory."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from cusim.errors import InputError
from cusim.files import MIB, open_file, read_file
from cusim.importers.ncu import load_ncu
from cusim.machine import load_machine
from cusim.policies.registry import parse_order
from cusim.program.toml_read import load_program
from cusim.trace.formats import read_trace

DEVICE = Path("/dev/zero")


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "two"
    path.write_bytes(bytes(2 * MIB))
    assert len(read_file(path, 2 * MIB)) == 2 * MIB
    for opens in (open_file, read_file):
        with pytest.raises(OSError, match="larger than 1 MiB"):
            opens(path, MIB)


def test_a_pipe_is_read_and_has_the_same_limit(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    for size in (3, MIB + 1):
        writer = threading.Thread(target=path.write_bytes, args=(bytes(size),))
        writer.start()
        if size <= MIB:
            assert read_file(path, MIB) == bytes(size)
        else:
            with pytest.raises(OSError, match="larger than 1 MiB"):
                read_file(path, MIB)
        writer.join()


def test_a_device_and_a_name_that_cannot_be_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="a device, not a file"):
        read_file(DEVICE)
    with pytest.raises(OSError, match="no such file"):
        read_file(tmp_path / "null\0byte")


@pytest.mark.parametrize(
    ("name", "load"),
    [
        ("m.toml", load_machine),
        ("m.json", load_machine),
        ("p.toml", load_program),
        ("o.json", lambda path: parse_order(str(path))),
        ("t.csv", read_trace),
        ("t.npz", read_trace),
        ("r.csv", load_ncu),
    ],
)
def test_no_loader_reads_a_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, load: Callable[[Path], object]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).symlink_to(DEVICE)
    with pytest.raises(InputError, match="a device, not a file") as caught:
        load(Path(name))
    assert name in caught.value.text()
