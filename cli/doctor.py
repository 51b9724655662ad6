"""``cusim doctor``: versions, name clashes and the GPU backend's needs, as text to paste into an issue."""

from __future__ import annotations

import json
from typing import Any

import click


@click.command(name="doctor", short_help="Report versions, name clashes and the GPU.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of text.")
def command(as_json: bool) -> None:
    """Report versions, name clashes, and whether the GPU backend would find what it needs.

    Paste the output into an issue. A missing GPU is not a failure: the simulator needs none. The exit code
    is 1 only when something here would stop cusim itself.
    """
    from cli.checkup import examine

    findings = examine()
    if as_json:
        click.echo(json.dumps(findings, indent=2))
    else:
        click.echo("\n".join(_lines(findings)))
    if findings["clashes"] or _missing(findings):
        click.get_current_context().exit(1)


def _lines(findings: dict[str, Any]) -> list[str]:
    rows = [
        ("cusim", f"{findings['cusim']}  (distribution {findings['distribution'] or 'not installed'})"),
        ("python", f"{findings['python']}  {findings['platform']}"),
    ]
    rows += [(name, version or "MISSING") for name, version in findings["packages"].items()]
    rows += [(f"module {name}", where or "MISSING") for name, where in findings["modules"].items()]
    rows.append(("g++", findings["compiler"] or "not found (only needed to check generated code)"))
    rows += [(part["name"], _part(part)) for part in findings["gpu"]["parts"]]
    rows += [(f"GPU {device['index']}", _device(device)) for device in findings["gpu"]["devices"]]
    width = max(len(name) for name, _ in rows)
    lines = [f"{name:<{width}}  {text}" for name, text in rows]
    lines += [f"CLASH  {clash}" for clash in findings["clashes"]]
    lines.append("")
    return [*lines, *_conclusion(findings)]


def _missing(findings: dict[str, Any]) -> list[str]:
    """Distributions that the simulator needs and that are not installed."""
    return [name for name, version in findings["packages"].items() if version is None]


def _part(part: dict[str, Any]) -> str:
    shown = "  ".join(text for text in (part["version"], part["where"]) if text)
    if part["problem"] is None:
        return shown
    fix = f"; {part['fix']}" if part["fix"] else ""
    return f"{shown}  {part['problem']}{fix}".strip()


def _device(device: dict[str, Any]) -> str:
    return (
        f"{device['name']}, {device['sms']} SMs, compute capability {device['compute_capability']}, "
        f"{device['memory_mib'] / 1024:.0f} GiB, up to {device['clock_mhz']} MHz"
    )


def _conclusion(findings: dict[str, Any]) -> list[str]:
    simulator = "Simulator: ready."
    if findings["clashes"]:
        simulator = "Simulator: mend the clashes above first."
    if absent := _missing(findings):
        simulator = f"Simulator: not ready, missing {', '.join(absent)}; install cusim-tiles with its dependencies."
    if findings["gpu"]["usable"]:
        return [simulator, "GPU: driver, CuPy and NVRTC found; `cusim run --gpu` can use them."]
    missing = ", ".join(part["name"] for part in findings["gpu"]["parts"] if part["problem"])
    return [simulator, f"GPU backend: not usable here ({missing}); only `cusim run --gpu` needs it."]
