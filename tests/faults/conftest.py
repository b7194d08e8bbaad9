"""A lake of its own for each case, on the bundled sample."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support import whole_runs


@pytest.fixture
def lake_of_its_own(tmp_path) -> Callable[[], Path]:
    """Makes a fresh configuration."""
    return lambda: whole_runs.configuration(tmp_path / "lake")
