"""What a paper prints, from its file of constants beside this module."""

from __future__ import annotations

import functools
import tomllib
from importlib import resources
from typing import Any


@functools.cache
def printed(paper: str) -> dict[str, Any]:
    """The constants of *paper*: text as printed, sizes, and where each stands."""
    text = (resources.files("cusim") / "reproduce" / f"{paper}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
