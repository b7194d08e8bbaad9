from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from fastapi.testclient import TestClient

from permalake.api.app import create_app
from support import served_stores
from support.conformance import conforming_answers  # noqa: F401 - autouse
from support.served_wormhole import publish_world, wormhole_settings


@pytest.fixture(scope="session")
def published_world(tmp_path_factory):
    """The synthetic world as a lake: its settings, and rows by table."""
    settings = wormhole_settings(tmp_path_factory.mktemp("served-wormhole"))
    return settings, publish_world(settings)


@pytest.fixture(scope="session", params=["lake", "bigtable_server"])
def world(request, published_world):
    """The world behind the API, read from each backend: ``client``, ``rows`` by table, ``get`` for JSON."""
    settings, rows = published_world
    if request.param == "lake":
        with served(settings, rows) as world:
            yield world
        return
    server = request.getfixturevalue(request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BIGTABLE_EMULATOR_HOST", f"127.0.0.1:{server.port}")
        settings = served_stores.with_bigtable(settings)
        served_stores.fill_bigtable(settings, rows)
        with served(settings, rows) as world:
            yield world


@contextmanager
def served(settings, rows):
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
