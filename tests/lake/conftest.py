from __future__ import annotations

import pytest

from permalake.domains import open_lake
from support.lakes import settings_of


@pytest.fixture
def settings(tmp_path):
    return settings_of(tmp_path / "warehouse")


@pytest.fixture
def lake(settings):
    return open_lake(settings)
