"""The settings that presets are judged with: read strictly, and refused where the machine has no such number."""

import pytest

from cusim.errors import InputError
from cusim.machine.load import load_machine
from cusim.machine.machine import leaf_paths
from cusim.validate.machines import SCHEMA, judged_machine, parse_settings, settings_of

GOOD = '[[setting]]\ngpu = "v100"\nkey = "launch.gap_ps"\nvalue = "6us"\nreason = "a paper"\n'


def settings(*tables: str) -> str:
    return f'schema = "{SCHEMA}"\n' + "\n".join(tables)


def refusal(*tables: str) -> str:
    with pytest.raises(InputError) as caught:
        parse_settings(settings(*tables), "machines.toml")
    return str(caught.value)


def test_the_shipped_settings_have_reasons_and_are_recorded() -> None:
    machine = judged_machine("v100")
    assert machine.launch.gap_ps == 6_000_000
    assert list(machine.overrides) == [setting.text for setting in settings_of("v100")]
    assert all(setting.reason for setting in settings_of("v100"))
    assert {setting.key for setting in settings_of("v100")} <= set(leaf_paths())


def test_a_preset_without_settings_is_the_preset() -> None:
    assert judged_machine("h200") is load_machine("h200")


def test_a_fitted_setting_is_among_the_values_that_are_tried() -> None:
    fitted = [setting for setting in settings_of("v100") if setting.fitted]
    assert len(fitted) == 1
    assert fitted[0].value in fitted[0].grid


def test_another_value_may_stand_in() -> None:
    assert judged_machine("v100", {"launch.gap_ps": "3us"}).launch.gap_ps == 3_000_000


def test_a_setting_that_the_machine_lacks_is_refused() -> None:
    assert "unknown leaf" in refusal(GOOD.replace("gap_ps", "gap_of_launch_ps"))


def test_values_of_the_grid_are_tried() -> None:
    fitted = GOOD.replace("launch.gap_ps", "rates.lone_block_share").replace("6us", "0.8")
    assert "must be at most 1" in refusal(fitted + 'fitted = true\ngrid = ["0.9", "1.5"]\n')


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (GOOD.replace("a paper", ""), "setting[0].reason"),
        (GOOD.replace("reason", "raeson"), "did you mean reason?"),
        (GOOD + "fitted = true\n", "setting[0].grid"),
        (GOOD + 'grid = ["1us"]\n', "setting[0].grid"),
        (GOOD + "fitted = 1\n", "setting[0].fitted"),
        (GOOD.replace("v100", "v10"), "did you mean v100?"),
    ],
)
def test_what_is_off_is_named(table: str, says: str) -> None:
    assert says in refusal(table)
