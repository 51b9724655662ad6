"""Opening the files that people name: those of a sane size, so that a slip such as /dev/zero is told at once."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

MIB = 2**20
#: The most that a text of settings, programs, orders or plans may hold; the largest written by hand is far smaller.
MOST_TEXT_BYTES = 64 * MIB
#: The most that recorded data may hold: millions of blocks, as much as a laptop has room for.
MOST_DATA_BYTES = 4096 * MIB


def open_file(path: Path, most_bytes: int = MOST_TEXT_BYTES) -> BinaryIO:
    """*path* opened to be read; OSError, whose ``strerror`` says why, for what is too large and for a device."""
    try:
        file = path.open("rb")
    except ValueError:  # a name that no file can have, such as one with a null byte
        raise OSError(errno.ENOENT, "no such file") from None
    status = os.fstat(file.fileno())
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISFIFO(status.st_mode)):
        why = "a device, not a file"
    elif status.st_size > most_bytes:
        why = _too_large(most_bytes)
    else:
        return file
    file.close()
    raise OSError(errno.EINVAL, why)


def read_file(path: Path, most_bytes: int = MOST_TEXT_BYTES) -> bytes:
    """All that *path* holds, a file or a pipe; OSError as for :func:`open_file`."""
    with open_file(path, most_bytes) as file:
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return file.read()
        held = file.read(most_bytes + 1)  # the size of a pipe is not known before
    if len(held) > most_bytes:
        raise OSError(errno.EFBIG, _too_large(most_bytes))
    return held


def _too_large(most_bytes: int) -> str:
    return f"larger than {most_bytes // MIB} MiB"
