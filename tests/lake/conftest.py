from __future__ import annotations

import pytest

from support.lakes import OpenLake, settings_of


@pytest.fixture
def settings(tmp_path):
    return settings_of(tmp_path / "warehouse")


@pytest.fixture
def lake(settings):
    return OpenLake(settings)
