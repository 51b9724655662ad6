"""Lists and ranges on options."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.sweep import integers, values_of, words
from cusim.errors import Problems


@given(st.integers(1, 10_000), st.integers(0, 5_000), st.integers(1, 100))
def test_a_range_holds_both_ends_when_the_step_fits(start: int, count: int, step: int) -> None:
    count = count % 900
    problems = Problems("options")
    found = integers("--m", [f"{start}:{start + count * step}:{step}"], problems)
    assert not problems.found
    assert found == [start + place * step for place in range(count + 1)]


def test_lists_ranges_and_repeated_options_join_without_repeats() -> None:
    problems = Problems("options")
    assert integers("--m", ["256,512", "512:1024:256", "[7]"], problems) == [256, 512, 768, 1024, 7]
    assert not problems.found


def test_an_open_step_is_one() -> None:
    assert integers("--seed", ["0:3"], Problems("options"), least=0) == [0, 1, 2, 3]


@pytest.mark.parametrize("text", ["0", "-4", "abc", "1.5", "nan", "10:2:1", "1:10:0", "1:1000000:1", "", "1,,2", "1e3"])
def test_bad_numbers_are_recorded_with_what_was_given(text: str) -> None:
    problems = Problems("options")
    integers("--m", [text], problems)
    assert [problem.key for problem in problems.found] == ["--m"]


def test_every_bad_number_is_recorded() -> None:
    problems = Problems("options")
    assert integers("--m", ["x,7,y"], problems) == [7]
    assert [problem.given for problem in problems.found] == ["x", "y"]


def test_values_of_a_setting_spell_out_ranges_and_keep_units() -> None:
    problems = Problems("options")
    assert values_of("--set", "1us,900ns", problems) == ["1us", "900ns"]
    assert values_of("--set", "66:132:66", problems) == ["66", "132"]
    assert not problems.found


def test_words_keep_their_order() -> None:
    assert words(["row,tile", "row", " batched:2 "]) == ["row", "tile", "batched:2"]
