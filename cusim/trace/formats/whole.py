"""Files that are whole or absent: written to a temporary sibling, then moved into place in one step."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from cusim.errors import refuse


def write_whole(path: Path, write: Callable[[BinaryIO], None]) -> None:
    """Calls *write* with a binary file that becomes *path* when it returns, and vanishes when it raises.

    A device or a pipe is written as it is, since replacing it would destroy it. Raises InputError where the place
    cannot be written: no such directory, no permission, no room.
    """
    try:
        if _is_device(path):
            with path.open("wb") as device:
                write(device)
        else:
            _replace(path, write)
    except OSError as error:
        raise refuse(str(path), "file", None, f"cannot be written: {error.strerror}") from None


def _replace(path: Path, write: Callable[[BinaryIO], None]) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
        part.chmod(0o666 & ~_umask())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _is_device(path: Path) -> bool:
    """True for a place that is there and neither a file nor a directory."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _umask() -> int:
    # The mask can only be read by setting it; a temporary file starts private whatever it is.
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
