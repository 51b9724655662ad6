"""Gates: read strictly, met or missed, and missed where there is nothing to judge."""

from __future__ import annotations

from pathlib import Path

import pytest

from cusim.errors import InputError
from cusim.machine import load_machine
from cusim.validate.gate import ABOVE_RIVALS, figures_of, load_gates, metrics, passed
from cusim.validate.recorded_validation import validate_recordings
from cusim.validate.recordings import load_recordings
from tests.recordings import chain_rows, written

GATE = 'schema = "cusim.gate/1"\n[[gate]]\nset = "dev"\nkind = "chain"\nmetric = "mape_pct"\nat_most = 4.0\n'
MACHINE = load_machine("h200")
COMMITTED = Path(__file__).resolve().parents[2] / "traces" / "h200" / "gates.toml"


def gates(folder: Path, text: str) -> Path:
    path = folder / "gates.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_limits_are_inclusive_and_what_is_missing_is_missed(tmp_path: Path) -> None:
    recordings = load_recordings([written(tmp_path / "a.csv", chain_rows(1.1))], MACHINE)
    tables = validate_recordings(recordings, MACHINE, workers=1).tables
    reached = figures_of(tables[0])["mape_pct"]
    assert reached is not None
    text = GATE.replace("4.0", repr(reached)) + "".join(
        f'[[gate]]\nset = "{label}"\nkind = "{kind}"\nmetric = "{metric}"\n{limit}\n'
        for label, kind, metric, limit in (
            ("dev", "chain", "mape_pct", f"at_most = {reached - 0.001}"),
            ("dev", "chain", "rank_score", "at_least = 0.8\nat_most = 1"),
            ("sealed", "chain", "mape_pct", 'at_most = 99\nwhy = "the aim"'),
            ("dev", "chain", "p95_pct", "at_most = 99"),
            ("dev", "chain-any-tile", ABOVE_RIVALS, "at_most = 0"),
        )
    )
    found = passed(load_gates(gates(tmp_path, text)), tables)
    assert [item.met for item in found] == [True, False, True, False, False, True]
    assert "nothing to judge (the aim)" in found[3].text
    assert f"at most {reached - 0.001:g}" in found[1].text


def test_the_committed_gates_name_known_figures_of_both_sets() -> None:
    found = load_gates(COMMITTED)
    assert {gate.label for gate in found} == {"sealed", "dev"}
    assert {gate.metric for gate in found} <= set(metrics())
    assert len({(gate.label, gate.kind, gate.metric) for gate in found}) == len(found)
    aims = {("single-seen", "mape_pct"): 3, ("chain", "mape_pct"): 4, ("chain", "speedup_err_pts"): 2}
    limits = {(gate.kind, gate.metric): gate for gate in found if gate.label == "sealed"}
    for aim, most in aims.items():
        assert limits[aim].at_most == most or limits[aim].why  # a gate that is softer than its aim says so


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("cusim.gate/1", "cusim.gate/2", 'schema = "cusim.gate/2"'),
        ('"dev"', '"develop"', "did you mean dev"),
        ('"chain"', '"chains"', "did you mean chain"),
        ('"mape_pct"', '"mape"', "did you mean mape_pct"),
        ('"mape_pct"', '"rank_interval"', "metric"),
        ("at_most", "at_mots", "did you mean at_most"),
        ("at_most = 4.0", "", "at_most or at_least"),
        ("4.0", "nan", "must be a number"),
        ("4.0", "true", "must be a number"),
        ("4.0", '"4"', "must be a number"),
        ("[[gate]]", "[gates]", "unknown key"),
        ("[[gate]]", "[[gate", "is not TOML"),
        ('metric = "mape_pct"\n', "", "metric"),
    ],
)
def test_a_gate_that_is_off_is_refused_by_name(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert load_gates(gates(tmp_path, GATE))[0].at_most == 4.0
    assert old in GATE
    with pytest.raises(InputError, match=r"gates\.toml") as caught:
        load_gates(gates(tmp_path, GATE.replace(old, new)))
    assert says in caught.value.text()


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load_gates(tmp_path / "none.toml")


def test_every_figure_of_a_summary_can_be_gated() -> None:
    assert {
        "mape_pct", "worst_pct", "speedup_err_pts", "sign_right_pct", "best_sign_right_pct", "rank_score",
        "regret_pct", "pooled_regret_pct", "pairs_right_pct", ABOVE_RIVALS,
    } <= set(metrics())  # fmt: skip
    assert "rank_interval" not in metrics()
