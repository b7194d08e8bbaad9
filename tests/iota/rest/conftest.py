"""The REST API over a lake of both synthetic tangles, in this process."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from permalake.api.app import create_app
from support import synthetic_lake


@pytest.fixture(scope="session")
def synthetic_settings(tmp_path_factory):
    """The configuration of a lake with the networks of :mod:`support.synthetic_lake`, built once."""
    settings = synthetic_lake.settings_of(tmp_path_factory.mktemp("rest") / "lake")
    synthetic_lake.build(settings)
    return settings


@pytest.fixture(scope="session")
def synthetic_api(synthetic_settings):
    """A client of the API over that lake."""
    with TestClient(create_app(synthetic_settings)) as client:
        yield client
