"""Fixtures of the stores' tests."""

from __future__ import annotations

import lake_frames
import pytest


@pytest.fixture(scope="session")
def spark(spark):
    """The run's session, set for hundreds of plans over a few rows."""
    return lake_frames.quick(spark.newSession())
