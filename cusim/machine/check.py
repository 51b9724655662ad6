"""What the numbers of one machine must satisfy together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cusim.errors import Problems

WARP_SIZE = 32


def check_values(problems: Problems, values: Mapping[str, Mapping[str, Any]]) -> None:
    """Adds to *problems* each contradiction between *values* (section, leaf, internal value)."""
    _check_limits(problems, values["limits"])
    _check_order(problems, values["dispatch"]["sm_order"], values["limits"]["sms"])


def _check_limits(problems: Problems, limits: Mapping[str, Any]) -> None:
    most_warps = limits["threads_per_sm"] // WARP_SIZE
    if limits["warps_per_sm"] > most_warps:
        problems.add("limits.warps_per_sm", limits["warps_per_sm"], f"at most threads_per_sm / 32 = {most_warps}")
    room = limits["smem_per_sm_bytes"] - limits["smem_reserve_bytes"]
    if limits["smem_per_block_bytes"] > room:
        why = f"at most smem_per_sm_bytes - smem_reserve_bytes = {room}"
        problems.add("limits.smem_per_block_bytes", limits["smem_per_block_bytes"], why)
    for per_block, per_sm in (
        ("threads_per_block", "threads_per_sm"),
        ("registers_per_block", "registers_per_sm"),
    ):
        if limits[per_block] > limits[per_sm]:
            problems.add(f"limits.{per_block}", limits[per_block], f"at most {per_sm} = {limits[per_sm]}")


def _check_order(problems: Problems, order: tuple[int, ...], sms: int) -> None:
    if sorted(order) == list(range(sms)):
        return
    missing = sorted(set(range(sms)) - set(order))
    beyond = sorted(set(order) - set(range(sms)))
    doubled = len(order) - len(set(order))
    parts = [f"missing {_some(missing)}" if missing else "", f"no such SM {_some(beyond)}" if beyond else ""]
    parts.append(f"{doubled} given twice" if doubled else "")
    told = ", ".join(part for part in parts if part)
    problems.add("dispatch.sm_order", f"{len(order)} ids", f"must name each of the {sms} SMs once: {told}")


def _some(ids: list[int]) -> str:
    return " ".join(map(str, ids[:4])) + (" ..." if len(ids) > 4 else "")
