"""What the server tells of a network's live head: in headers, on the overview, in metrics and in status."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest
from fastapi.testclient import TestClient

from permalake.api.app import create_app
from permalake.cli import status
from permalake.domains import domain_of
from permalake.iota.contracts import IOTA_TABLES
from permalake.lake.head import Head
from permalake.lake.head_position import Reached, last_reached, set_position
from permalake.lake.serving import LakeReader
from support import lakes, synthetic_lake

DAY = date(2022, 10, 1)
AT = int(datetime(2022, 10, 1, 0, 0, 5, tzinfo=UTC).timestamp())
JSON = {"accept": "application/json"}
PATHS = ("/shimmer/api/core/v2/info", "/shimmer/health")


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    """The configuration of a lake that gets its head in the second test."""
    found = synthetic_lake.settings_of(tmp_path_factory.mktemp("heads") / "warehouse")
    synthetic_lake.build(found, ["shimmer"])
    return found


@pytest.fixture(scope="module")
def api(settings, tmp_path_factory):
    reader = LakeReader(settings, domain_of, cache=tmp_path_factory.mktemp("index"))
    with TestClient(create_app(settings, reader)) as client:
        yield client


def follow(settings) -> None:
    """A head with one milestone of the day after the published ones."""
    head = Head(settings, lakes.OpenLake(settings).database, "shimmer", {"messages": IOTA_TABLES["messages"]})
    head.ensure()
    rows = pa.Table.from_pylist(lakes.messages(DAY, 250_008, 3), schema=IOTA_TABLES["messages"].arrow)
    head.commit(head.write("messages", rows), reached=Reached(250_008, AT))


def publish(settings) -> None:
    lake = lakes.OpenLake(settings)
    attempt = lake.begin("shimmer", DAY, DAY, "day")
    lakes.stage_day(settings, attempt, DAY, 250_008, 3)
    lake.builds.publish(lakes.pass_audit(attempt))


def told(api, path):
    headers = api.get(path).headers
    return headers.get("permalake-head-milestone"), headers.get("permalake-head-lag")


def test_no_head_is_no_header_and_no_figure(api) -> None:
    assert [told(api, path) for path in PATHS] == [(None, None)] * 2
    assert [card["live"] for card in api.get("/", headers=JSON).json()["cards"]] == [None]
    assert "permalake_head_milestone{" not in api.get("/metrics").text


def test_a_head_is_told_and_its_publication_ends_it(settings, api, capsys, tmp_path) -> None:
    published = api.get(PATHS[0]).json()
    follow(settings)
    since = datetime.now(UTC).timestamp() - AT
    for path in PATHS:
        milestone, lag = told(api, path)
        assert milestone == "250008"
        assert abs(float(lag) - since) < 60
    assert api.get(PATHS[0]).json() == published, "history does not rest on the head"
    (card,) = api.get("/", headers=JSON).json()["cards"]
    assert card["live"] | {"lagSeconds": 0} == {
        "milestone": 250_008,
        "time": "2022-10-01T00:00:05Z",
        "lagSeconds": 0,
        "provisional": True,
    }
    assert abs(card["live"]["lagSeconds"] - since) < 60
    page = api.get("/", headers={"accept": "text/html"}).text
    assert "Live up to milestone 250008 of 2022-10-01 00:00 UTC: provisional" in page
    metrics = api.get("/metrics").text
    assert 'permalake_head_milestone{network="shimmer"} 250008.0' in metrics
    assert 'permalake_head_lag_seconds{network="shimmer"}' in metrics
    config = tmp_path / "permalake.toml"
    config.write_text(f'[lake]\nwarehouse = "{settings.lake.warehouse}"\n')
    status.command(config=str(config))
    assert "shimmer: live up to milestone 250008, " in capsys.readouterr().out
    publish(settings)
    assert [told(api, path) for path in PATHS] == [(None, None)] * 2


def test_a_head_without_milestones_is_told_by_its_time(settings, api, capsys, tmp_path) -> None:
    database = lakes.OpenLake(settings).database
    with database.write() as connection:
        set_position(connection, "wormhole", Reached(None, AT, {"vaas.jsonl": [1, 2]}))
    assert last_reached(database, "wormhole") == Reached(None, AT, {"vaas.jsonl": [1, 2]})
    metrics = api.get("/metrics").text
    assert 'permalake_head_milestone{network="wormhole"}' not in metrics
    assert 'permalake_head_lag_seconds{network="wormhole"}' in metrics
    config = tmp_path / "permalake.toml"
    config.write_text(f'[lake]\nwarehouse = "{settings.lake.warehouse}"\n')
    status.command(config=str(config))
    assert "wormhole: live up to 2022-10-01 00:00:05 UTC, " in capsys.readouterr().out
