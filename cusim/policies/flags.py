"""The optimisation flags W, R, T and A of cuSync (§IV-C; A from its source) and whether they are legal."""

from __future__ import annotations

from dataclasses import dataclass, fields

from cusim.errors import refuse


@dataclass(frozen=True, slots=True)
class Flags:
    """W: no wait-kernel. R: the operand that is not waited for is loaded first. T: no custom tile order, blocks take
    the tile of their block index. A: post by a release store instead of an atomic add.
    """

    W: bool = False
    R: bool = False
    T: bool = False
    A: bool = False

    def __str__(self) -> str:
        return "".join(field.name for field in fields(self) if getattr(self, field.name)) or "-"


def parse_flags(text: str) -> Flags:
    """Flags from letters such as ``WRT``; ``-``, ``none`` and the empty text are no flags."""
    letters = text.strip().upper()
    if letters in ("", "-", "NONE"):
        return Flags()
    wrong = sorted(set(letters) - set("WRTA"))
    if wrong or len(set(letters)) != len(letters):
        raise refuse("--flags", "flags", text, "allowed: the letters W R T A, each once, or none")
    return Flags(*(letter in letters for letter in "WRTA"))
