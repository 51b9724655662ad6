"""From words of the command line to machines and to values of the other axes; every mistake at once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

from cli.options import DEFAULT_MACHINE, DISPATCHES
from cli.sweep import integers, values_of, words
from cusim.errors import InputError, Problems, did_you_mean

if TYPE_CHECKING:
    from cusim.machine.machine import Machine
    from cusim.report.rows import Dispatch

T = TypeVar("T")
#: Options that :func:`read_axes` reads, by parameter name.
AXES = ("m", "tile", "split_k", "machine", "settings", "dispatch", "seed")


@dataclass(frozen=True, slots=True)
class Setting:
    """A machine and the what-if settings that one case gives it; they are applied after the workload's own."""

    machine: Machine
    settings: tuple[str, ...] = ()

    def apply(self, first: Sequence[str] = ()) -> Machine:
        """The machine with *first*, then these settings; a key that comes twice takes the later value."""
        from cusim.machine.override import with_overrides

        settings = (*first, *self.settings)
        return with_overrides(self.machine, settings) if settings else self.machine


@dataclass(frozen=True, slots=True)
class Axes:
    """Every value of every swept option around the plan, in the order given; never empty.

    None stands for what the workload has by itself. Tiles and splits are text, which the workload reads.
    """

    ms: tuple[int | None, ...]
    tiles: tuple[str | None, ...]
    splits: tuple[str | None, ...]
    machines: tuple[Setting, ...]
    dispatches: tuple[Dispatch, ...]
    seeds: tuple[int, ...]


def read_axes(given: Mapping[str, Any]) -> Axes:
    """The axes that the options :data:`AXES` spell; InputError with everything that is wrong in any of them."""
    problems = Problems("the command line")
    axes = gather_axes(given, problems)
    problems.raise_if_any()
    return axes


def gather_axes(given: Mapping[str, Any], problems: Problems) -> Axes:
    """As :func:`read_axes`, mistakes recorded; an axis of which nothing is right has what it has when not given."""
    return Axes(
        tuple(integers("--m", given["m"], problems)) or (None,),
        tuple(words(given["tile"])) or (None,),
        tuple(v for text in given["split_k"] for v in values_of("--split-k", text, problems)) or (None,),
        tuple(_machines(given["machine"], given["settings"], problems)) or (_default_setting(),),
        tuple(_dispatches(given["dispatch"], problems)) or ("arrival",),
        tuple(integers("--seed", given["seed"], problems, least=0)) or (0,),
    )


def _default_setting() -> Setting:
    from cusim.machine.load import load_machine

    return Setting(load_machine(DEFAULT_MACHINE))


def gathered(problems: Problems, make: Callable[..., T], *given: Any) -> T | None:
    """What *make* returns for *given*; where it refuses, None and its problems recorded."""
    try:
        return make(*given)
    except InputError as error:
        for problem in error.problems:
            problems.add(option_key(error.source, problem.key), problem.given, problem.why)
        return None


def option_key(source: str, key: str) -> str:
    """Where a mistake stands: the option alone if the key only repeats it, else the file or option and the key."""
    if source.startswith("workload"):
        known = {"workload": "WORKLOAD", "architecture": "--machine (its arch)"}
        return known.get(key, f"--{key.replace('_', '-')}")
    if source.startswith("--"):
        return source if key == source.lstrip("-") else f"{source} {key}"
    return key if source == "the command line" else f"{source}: {key}"


def _machines(names: Sequence[str], settings: Sequence[str], problems: Problems) -> Iterator[Setting]:
    """Each machine with each combination of what-if settings, all of them tried."""
    from cusim.machine.load import load_machine

    choices = [_settings(setting, problems) for setting in settings]
    loaded = [gathered(problems, load_machine, name) for name in words(names) or [DEFAULT_MACHINE]]
    # Where no machine could be read, settings are still judged, on the default one.
    for machine in list(filter(None, loaded)) or [load_machine(DEFAULT_MACHINE)]:
        for combination in itertools.product(*choices):
            setting = Setting(machine, combination)
            if gathered(problems, setting.apply) is not None:
                yield setting


def _settings(setting: str, problems: Problems) -> list[str]:
    """``machine.sms=108,132`` as one setting for each value."""
    key, equals, text = setting.partition("=")
    return [f"{key}{equals}{value}" for value in values_of("--set", text, problems)] or [setting]


def _dispatches(given: Sequence[str], problems: Problems) -> Iterator[Dispatch]:
    for word in words(given) or [DISPATCHES[0]]:
        if word not in DISPATCHES:
            problems.add("--dispatch", word, did_you_mean(word, DISPATCHES))
        else:
            yield cast("Dispatch", word)
