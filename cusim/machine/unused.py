"""Numbers that a machine carries and the model does not read yet, each with the reason."""

from __future__ import annotations

from collections.abc import Sequence

from cusim.machine.machine import Machine

#: Leaf: why nothing that is predicted depends on it. A later scheduler that reads one takes it out of here.
UNUSED = {
    "sync.poll_ps": "visible_ps has the mean half of a poll period in it",
    "launch.latency_ps": "a run is queued behind a busy kernel, so no launch meets an idle device",
    "launch.enqueue_ps": "every launch was enqueued before the run begins; it only stamps the trace's enqueue times",
    "launch.event_host_ps": "events are recorded before the run begins, so the host's time for them is hidden",
}


def unused_notes(machine: Machine) -> list[str]:
    """A sentence for every what-if setting of *machine* that changes no prediction."""
    keys = [setting.partition("=")[0].strip().removeprefix("machine.") for setting in machine.overrides]
    return [f"--set {path} changes nothing: {UNUSED[path]}" for path in _paths(keys)]


def _paths(keys: Sequence[str]) -> list[str]:
    """The unused leaves that *keys* name, in full or by their last part."""
    return [path for path in UNUSED if path in keys or path.rpartition(".")[2] in keys]
