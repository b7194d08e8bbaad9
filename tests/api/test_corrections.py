"""What a day that was published again has otherwise than before: counts by table, and the first rows."""

from __future__ import annotations

from datetime import date

import pytest
from fastapi.testclient import TestClient

from permalake.api.app import create_app
from permalake.config import Settings
from permalake.transparency import corrections
from support import lakes

DAY = lakes.DAY1
JSON = {"Accept": "application/json"}
NETWORKS = {lakes.NETWORK: {"protocol": "stardust", "bech32_hrp": "smr", "path": "."}}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A lake whose first day is published three times, corrected the second time."""
    settings = Settings(lake={"warehouse": str(tmp_path_factory.mktemp("lake"))}, networks=NETWORKS)
    lake = lakes.OpenLake(settings)
    rows = lakes.messages(DAY, 7, 5)
    corrected = [rows[0] | {"inclusion_state": 0, "conflict_reason": 4}, *rows[1:4]]
    corrected += [one | {"message_id": "f" * 64, "white_flag_index": 9} for one in rows[4:]]
    for number, own in enumerate((rows, corrected, corrected)):
        attempt = lake.begin(lakes.NETWORK, DAY, DAY, f"run-{number}")
        lakes.put(settings, attempt, "messages", own)
        lakes.put(settings, attempt, "ms_analytics", lakes.analytics(DAY, 7, len(own)))
        lakes.put(settings, attempt, "date_cache", lakes.cache(DAY, 7, 7))
        lake.builds.publish(lakes.pass_audit(attempt))
    lakes.build(settings, lake, lakes.DAY2, 8, 3, "other")
    lake.leave()
    with TestClient(create_app(settings)) as client:
        yield client


def changes(client, **options):
    answer = client.get("/quality/changes", params={"network": lakes.NETWORK, "format": "json", **options})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_without_a_day_those_that_were_published_again_are_listed(client) -> None:
    assert changes(client)["again"] == [{"date": str(DAY)}]
    assert changes(client, network="", day="")["network"] == lakes.NETWORK
    page = client.get("/quality/changes", headers={"Accept": "text/html"}).text
    assert f"day={DAY}" in page
    day = client.get(f"/day?network={lakes.NETWORK}&date={DAY}", headers={"Accept": "text/html"}).text
    for link in ("/quality/changes?", "/verify?", "/operations?"):
        assert f'href="{link}network={lakes.NETWORK}&amp;da' in day
    assert "3 times" in day


def test_a_correction_is_counted_by_table(client) -> None:
    listed = changes(client, day=str(DAY))["publications"]
    assert [one["kind"] for one in listed] == ["days"] * 3
    _, corrected, first = (one["number"] for one in listed)
    assert [one["before"] for one in listed] == [corrected, first, None]
    found = changes(client, day=str(DAY), publication=corrected)
    assert (found["before"], found["number"]) == (first, corrected)
    tables = {one["table"]: one for one in found["tables"]}
    counts = {name: (one["added"], one["removed"], one["changed"]) for name, one in tables.items()}
    assert counts.pop("messages") == (1, 1, 1)
    assert set(counts.values()) == {(0, 0, 0)}
    told = {tuple(row) for row in tables["messages"]["first"]}
    assert {what for _, what in told} == {
        "added",
        "removed",
        "inclusion_state: 2 → 0; conflict_reason: 0 → 4",
    }
    assert any("f" * 64 in key for key, what in told if what == "added") or len(told) == 3


def test_the_newest_publication_comes_first_and_may_change_nothing(client) -> None:
    found = changes(client, day=str(DAY))
    assert found["number"] == found["publications"][0]["number"]
    assert {(one["added"], one["removed"], one["changed"]) for one in found["tables"]} == {(0, 0, 0)}
    text = client.get(
        "/quality/changes",
        params={"network": lakes.NETWORK, "day": str(DAY)},
        headers={"Accept": "text/html"},
    ).text
    assert "No row differs." in text


def test_pages_of_the_day_lead_there(client) -> None:
    link = f"/quality/changes?network={lakes.NETWORK}&amp;day={DAY}"
    html = {"Accept": "text/html"}
    assert link in client.get(f"/{lakes.NETWORK}/explore/day/{DAY}", headers=html).text
    assert link in client.get(f"/quality?network={lakes.NETWORK}&day={DAY}", headers=html).text
    once = client.get(f"/quality/changes?network={lakes.NETWORK}&day={lakes.DAY2}", headers=html).text
    assert "published once" in once


def test_what_is_not_there_is_404(client) -> None:
    for options in ({"day": str(date(2020, 1, 1))}, {"day": str(DAY), "publication": 999}):
        answer = client.get("/quality/changes", params={"network": lakes.NETWORK, **options}, headers=JSON)
        assert answer.status_code == 404


def test_too_many_rows_are_counted_and_not_compared(client, monkeypatch) -> None:
    monkeypatch.setattr(corrections, "MOST_ROWS", 4)
    number = changes(client, day=str(DAY))["publications"][1]["number"]
    tables = {one["table"]: one for one in changes(client, day=str(DAY), publication=number)["tables"]}
    assert (tables["messages"]["before"], tables["messages"]["after"]) == (5, 5)
    assert tables["messages"]["changed"] is None
