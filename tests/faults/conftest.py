"""A lake of its own for each case, on the bundled sample."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fault_runs import configuration, start
from fault_watch import rows


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> dict:
    """What a run that nobody disturbs publishes."""
    config = configuration(tmp_path_factory.mktemp("undisturbed"))
    assert start(config).wait(timeout=400) == 0, (config.parent / "run.log").read_text()
    return rows(config, "shimmer")


@pytest.fixture
def lake_of_its_own(tmp_path) -> Callable[[], Path]:
    """Makes a fresh configuration."""
    return lambda: configuration(tmp_path / "lake")
