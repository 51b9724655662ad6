"""The version of cusim that runs, for documents and ``--version``."""

from __future__ import annotations

import importlib.metadata

import cusim

#: Name of the distribution; the plain name belongs to another package on the public index.
DISTRIBUTION = "cusim-tiles"
_UNINSTALLED = "0+unknown"


def cusim_version() -> str:
    """The version: the package's own word, else its distribution's; ``0+unknown`` from a bare checkout."""
    own = getattr(cusim, "__version__", None)
    return own if isinstance(own, str) else installed_version(DISTRIBUTION) or _UNINSTALLED


def installed_version(distribution: str) -> str | None:
    """The version of an installed distribution, None when it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
