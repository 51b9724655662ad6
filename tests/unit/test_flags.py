"""The letters of the flags."""

import pytest

from cusim.errors import InputError
from cusim.policies.flags import Flags, parse_flags


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("", Flags()),
        ("-", Flags()),
        ("none", Flags()),
        ("WRT", Flags(W=True, R=True, T=True)),
        ("trw", Flags(W=True, R=True, T=True)),
        (" A ", Flags(A=True)),
    ],
)
def test_letters_become_flags_and_back(text: str, flags: Flags) -> None:
    assert parse_flags(text) == flags
    assert parse_flags(str(flags)) == flags


@pytest.mark.parametrize("text", ["X", "WW", "W R", "W,R", "WRTAW", "--"])
def test_other_letters_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="the letters W R T A, each once"):
        parse_flags(text)


def test_no_flags_print_as_a_dash_and_others_in_the_papers_order() -> None:
    assert str(Flags()) == "-"
    assert str(parse_flags("ATRW")) == "WRTA"
