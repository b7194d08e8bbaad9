"""Forged cursors and bodies are refused as input; none is an error of the server."""

from __future__ import annotations

import pytest

from support.hostile_input import forged_bodies, forged_cursors

LISTS = ("recent", "notional-transferred", "addresses-transferred-to", "totals", "tvl")
JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("sort", ["newest", "oldest"])
def test_forged_cursors(world, name, sort) -> None:
    path = f"/api/wormhole/v1/{name}?sort={sort}"
    cursor = world.get(f"{path}&pageSize=1")["cursor"]
    statuses = [
        (one, world.client.get(path, params={"cursor": one}).status_code) for one in forged_cursors(cursor)
    ]
    assert [(one, status) for one, status in statuses if status not in (200, 400)] == []


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("totals", {"forChain": "2", "numDays": 1, "groupBy": "chain"}),
        ("recent", {"numRows": "2", "groupBy": "address"}),
        ("notionaltransferred", {"daily": "true", "forPeriod": "true", "numDays": "3"}),
        ("readrow", {"emitterChain": "2", "emitterAddress": "0" * 64, "sequence": "1"}),
        ("transaction", {"id": "0x" + "0" * 64}),
    ],
)
def test_forged_bodies(world, route, body) -> None:
    for forged in forged_bodies(body):
        answer = world.client.post(f"/wormhole/edb/{route}", content=forged, headers=JSON)
        assert answer.status_code in (200, 400, 404), (forged[:200], answer.text)
