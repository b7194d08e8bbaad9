from __future__ import annotations

from types import SimpleNamespace

import pytest
from fastapi.testclient import TestClient

from permalake.api.app import create_app
from support.served_wormhole import publish_world, wormhole_settings


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    """The synthetic world behind the API: ``client``, ``rows`` by table, ``get`` for JSON."""
    settings = wormhole_settings(tmp_path_factory.mktemp("served-wormhole"))
    rows = publish_world(settings)
    with TestClient(create_app(settings), raise_server_exceptions=False) as client:

        def get(path, status=200):
            answer = client.get(path)
            assert answer.status_code == status, (path, answer.text)
            return answer.json()

        yield SimpleNamespace(client=client, rows=rows, get=get, settings=settings)


@pytest.fixture
def no_days(tmp_path):
    """The API over a lake without a published day."""
    with TestClient(create_app(wormhole_settings(tmp_path))) as client:
        yield client
