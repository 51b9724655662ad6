"""The README says what the commands print."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```console\n\$ (cusim [^\n]+)\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.parametrize(("command", "printed"), BLOCKS, ids=[command for command, _ in BLOCKS])
def test_printed_output_is_real(command: str, printed: str) -> None:
    words = [sys.executable, "-m", "cli.main", *shlex.split(command)[1:]]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.rstrip() == printed.rstrip()


def test_readme_shows_the_outputs_that_it_promises() -> None:
    assert len(BLOCKS) >= 2


def test_commands_of_the_readme_exist() -> None:
    from cli.main import VERBS

    named = set(re.findall(r"(?:`|\$ )cusim ([a-z]+)", README))
    assert {"predict", "run", "plot", "show", "doctor"} <= named <= set(VERBS)


def test_toml_of_the_readme_is_read_and_python_of_the_readme_runs(tmp_path: Path) -> None:
    import cusim

    (toml,) = re.findall(r"```toml\n(.*?)```", README, flags=re.DOTALL)
    path = tmp_path / "mine.toml"
    path.write_text(toml, encoding="utf-8")
    assert [kernel.name for kernel in cusim.load_program(path).kernels] == ["up", "down"]
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    scope: dict[str, object] = {}
    exec(code, scope)
    assert isinstance(scope["result"], cusim.Prediction)
