"""Units: which a name allows, and what they are worth inside."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cusim.machine.machine import leaf_paths
from cusim.machine.quantity import UnitError, kind_of, to_internal


@pytest.mark.parametrize(
    ("leaf", "value", "unit", "inside"),
    [
        ("post_ps", 1.42, "us", 1_420_000),
        ("post_ps", 0.1, "ns", 100),
        ("same_address_ps", 505.4, "ps", 505),
        ("latency_ps", 1, "s", 10**12),
        ("smem_per_sm_bytes", 228, "KiB", 233472),
        ("l2_capacity_bytes", 1.5, "MiB", 1572864),
        ("l2_capacity_bytes", 1, "GiB", 2**30),
        ("clock_hz", 1.41, "GHz", 1_410_000_000),
        ("hbm_bytes_per_s", 4.3, "TB/s", 4_300_000_000_000),
        ("hbm_bytes_per_s", 831, "GB/s", 831_000_000_000),
        ("sm_l2_bytes_per_clock", 64, "B/clock", 64.0),
        ("tensor_flops_per_clock_sm", 4096, "flop/clock", 4096),
        ("lone_block_share", 56, "%", 0.56),
        ("band_pct", 15, "%", 15.0),
        ("sms", 132, "1", 132),
        ("smem_reserve_bytes", 0, "B", 0),
    ],
)
def test_conversion(leaf: str, value: float, unit: str, inside: float) -> None:
    converted = to_internal(kind_of(leaf), value, unit)
    assert converted == inside
    assert type(converted) is type(inside)


@pytest.mark.parametrize(
    ("leaf", "value", "unit", "told"),
    [
        ("post_ps", 1, "cycles", "unknown unit 'cycles' for a time: .*allowed: ms ns ps s us"),
        ("clock_hz", 1, "GHZ", "did you mean GHz"),
        ("smem_per_sm_bytes", 1, "KB", "allowed: B GiB KiB MiB"),
        ("smem_per_sm_bytes", 0.3, "KiB", "must be a whole number of B"),
        ("smem_per_sm_bytes", 0, "KiB", "must be above 0"),
        ("sms", 1.5, "1", "must be a whole number$"),
        ("post_ps", -1, "ns", "must be 0 or more"),
        ("post_ps", float("inf"), "ns", "finite"),
        ("tensor_efficiency", 101, "%", "at most 1"),
        ("tensor_efficiency", 0, "1", "above 0"),
    ],
)
def test_refusals(leaf: str, value: float, unit: str, told: str) -> None:
    with pytest.raises(UnitError, match=told):
        to_internal(kind_of(leaf), value, unit)


def test_every_leaf_has_an_internal_unit() -> None:
    units = {path: kind_of(path.rpartition(".")[2]).unit for path in leaf_paths()}
    assert all(units.values())
    suffixes = {"_ps": "ps", "_bytes": "B", "_hz": "Hz", "_bytes_per_s": "B/s", "_pct": "%"}
    for path, unit in units.items():
        for suffix, expected in suffixes.items():
            assert not path.endswith(suffix) or unit == expected, path


@given(st.integers(0, 10**4), st.sampled_from(["ps", "ns", "us", "ms"]))
def test_a_time_is_the_same_in_the_next_smaller_unit(value: int, unit: str) -> None:
    kind = kind_of("post_ps")
    smaller = {"ns": "ps", "us": "ns", "ms": "us"}.get(unit)
    inside = to_internal(kind, value, unit)
    assert inside == (value if smaller is None else to_internal(kind, 1000 * value, smaller))
