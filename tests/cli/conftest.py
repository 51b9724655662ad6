"""What the tests of the command share: a way to call it, and a small program of two dependent GEMMs."""

from collections.abc import Callable
from pathlib import Path

import click.testing
import pytest

from cli.main import cusim

PROGRAM = """\
schema = "cusim.program/1"
name = "pair"
[[kernel]]
name = "up"
gemm = { m = 384, n = 512, k = 256, dtype = "fp16" }
tile = "128x128x64"
block = { threads = 256, registers = 128, shared_kib = 128 }
[[kernel]]
name = "down"
gemm = { m = 384, n = 256, k = 512, dtype = "fp16" }
a = "up"
tile = "128x128x64"
block = { threads = 256, registers = 128, shared_kib = 128 }
"""

Call = Callable[..., click.testing.Result]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Calls the command in an empty directory; an exception that gets out of it fails the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CUSIM_DEBUG", raising=False)

    def invoke(*args: str, stdin: str | None = None) -> click.testing.Result:
        done = click.testing.CliRunner().invoke(cusim, list(args), input=stdin)
        assert done.exception is None or isinstance(done.exception, SystemExit)
        assert "Traceback" not in done.output
        return done

    return invoke


@pytest.fixture
def pair(tmp_path: Path) -> str:
    """The file of a program whose kernels have 12 and 6 tiles."""
    (tmp_path / "pair.toml").write_text(PROGRAM, encoding="utf-8")
    return "pair.toml"
