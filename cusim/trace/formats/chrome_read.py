"""Reads Chrome-trace JSON event by event, so that a check of a large file needs little memory."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

from cusim.errors import InputError, refuse

_SPACE = re.compile(r"\s*")
_PIECE = 1 << 20
#: An event longer than this is taken for damage.
_LONGEST = 1 << 24


def read_events(path: Path, head: dict[str, Any] | None = None) -> Iterator[Any]:
    """The events of a file, compressed or not, in order; numbers with fractions come as exact decimals.

    *head* is filled with the object's other keys that stand before ``traceEvents``. Raises InputError for a file that
    is absent, cut off, damaged or no Chrome trace in object form.
    """
    try:
        with _opened(path) as file:
            yield from _Scanner(file, str(path)).events(head if head is not None else {})
    except InputError:
        raise
    except FileNotFoundError:
        raise refuse(str(path), "file", None, "does not exist") from None
    except (OSError, EOFError, zlib.error) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "is cut off or damaged"
        raise refuse(str(path), "file", None, f"cannot be read: {why}") from None
    except UnicodeDecodeError:
        raise refuse(str(path), "file", None, "is not UTF-8 text") from None


def _opened(path: Path) -> IO[str]:
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rt", encoding="utf-8") if packed else path.open(encoding="utf-8")


class _Scanner:
    """A window over the text that grows where a value is not yet whole."""

    def __init__(self, file: IO[str], source: str) -> None:
        self._file = file
        self._source = source
        self._text = ""
        self._at = 0
        self._ended = False
        self._decoder = json.JSONDecoder(parse_float=Decimal, parse_constant=Decimal)

    def events(self, head: dict[str, Any]) -> Iterator[Any]:
        self._expect("{")
        while (key := self._value()) != "traceEvents":
            self._expect(":")
            head[str(key)] = self._value()
            if self._expect(",}") == "}":
                raise refuse(self._source, "traceEvents", None, "is missing: no Chrome trace in object form")
        self._expect(":")
        self._expect("[")
        if self._peek() == "]":
            self._expect("]")
        else:
            yield self._value()
            while self._expect(",]") == ",":
                yield self._value()
        while self._expect(",}") == ",":
            key = self._value()
            self._expect(":")
            head[str(key)] = self._value()
        if self._peek():
            raise refuse(self._source, "file", None, "goes on after the trace's end")

    def _more(self) -> None:
        piece = self._file.read(_PIECE)
        self._ended = not piece
        self._text = self._text[self._at :] + piece
        self._at = 0

    def _peek(self) -> str:
        """The next character that is no space; nothing at the end of the file."""
        while True:
            found = _SPACE.match(self._text, self._at)
            assert found is not None
            self._at = found.end()
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._more()

    def _expect(self, allowed: str) -> str:
        found = self._peek()
        if not found or found not in allowed:
            raise self._damage(f"expected one of {' '.join(allowed)}")
        self._at += 1
        return found

    def _value(self) -> Any:
        self._peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except (ValueError, RecursionError):
                if self._ended or len(self._text) - self._at > _LONGEST:
                    raise self._damage("no JSON value") from None
            else:
                # A number at the end of the window may go on in the next piece.
                if end < len(self._text) or self._ended:
                    self._at = end
                    return value
            self._more()

    def _damage(self, why: str) -> InputError:
        near = self._text[self._at : self._at + 30]
        place = f"near {near!r}" if near else "at its end"
        return refuse(self._source, "file", None, f"is cut off or no JSON: {why} {place}")
