"""What every test shares: where the repository is, no display, and hypothesis without surprises."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("MPLBACKEND", "Agg")

# Wall-clock deadlines are flaky on busy cores, and a suite that gates changes gives one verdict per commit.
# To look for new counterexamples: HYPOTHESIS_PROFILE=search.
settings.register_profile("gate", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=2000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "gate"))


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's top directory."""
    return Path(__file__).resolve().parents[1]
