"""The REST API over a lake of both synthetic tangles, in this process."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from permalake.api.app import create_app
from support.conformance import conforming_answers  # noqa: F401 - autouse


@pytest.fixture(scope="session")
def synthetic_settings(whole_lake):
    """The configuration of a lake with the networks of :mod:`support.synthetic_lake`."""
    return whole_lake.settings.model_copy(update={"wormhole": None})


@pytest.fixture(scope="session")
def synthetic_api(synthetic_settings):
    """A client of the API over that lake."""
    with TestClient(create_app(synthetic_settings)) as client:
        yield client
