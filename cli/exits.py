"""Exit codes of the ``cusim`` command."""

from __future__ import annotations

OK = 0
#: A run failed, or cusim itself did.
FAILED = 1
#: The command line or an input file is wrong.
USAGE = 2
NO_GPU = 3
#: A validation missed its gate.
GATE_MISSED = 4
#: A row that was asked for deadlocks.
DEADLOCK = 5
INTERRUPTED = 130
#: Whoever read stdout went away, as after ``| head``; shells know this as SIGPIPE.
PIPE_CLOSED = 141
