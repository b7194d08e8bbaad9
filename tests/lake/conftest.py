from __future__ import annotations

import pytest
from lake_support import settings_of

from permalake.lake import Lake


@pytest.fixture
def settings(tmp_path):
    return settings_of(tmp_path / "warehouse")


@pytest.fixture
def lake(settings):
    return Lake(settings)
