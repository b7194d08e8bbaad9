from __future__ import annotations

from contextlib import contextmanager
from datetime import date
from types import SimpleNamespace

import pytest
from fastapi.testclient import TestClient

from permalake.api.app import create_app
from support import served_stores
from support.conformance import conforming_answers  # noqa: F401 - autouse
from support.served_wormhole import (
    LATE_DAYS,
    expected_rows,
    publish_days,
    publish_world,
    wormhole_settings,
)


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


@pytest.fixture(scope="session")
def late_tvl(tmp_path_factory):
    """The API over days whose value locked lags behind: the last day has none, and the one of three before.

    Of two tokens the value is unknown on one of both days, and a third has come since the first.
    """
    settings = wormhole_settings(tmp_path_factory.mktemp("late"))
    rows = {name: expected_rows(name) for name in ("messages_daily", "tvl_daily")}
    dates = {date(2024, 3, 10): LATE_DAYS[0], date(2024, 3, 11): LATE_DAYS[1]}
    rows["tvl_daily"] = [
        row | {"date": dates[row["date"]]} for row in rows["tvl_daily"] if row["date"] in dates
    ]
    priced = {
        day: {_token(row): row for row in rows["tvl_daily"] if row["date"] == day and row["notional_usd"]}
        for day in LATE_DAYS
    }
    both = sorted(set.intersection(*map(set, priced.values())))
    for day, token in zip(LATE_DAYS, both, strict=False):
        priced[day][token]["notional_usd"] = None
    rows["tvl_daily"].remove(priced[LATE_DAYS[0]][both[2]])
    publish_days(settings, rows, sorted({row["date"] for table in rows.values() for row in table}))
    with served(settings, rows) as world:
        yield world


def _token(row):
    return row["origin_chain"], row["origin_address"]
