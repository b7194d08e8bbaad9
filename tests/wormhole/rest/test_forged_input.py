"""Forged cursors and bodies are refused as input; none is an error of the server."""

from __future__ import annotations

import pytest

from support.hostile_input import forged_bodies, forged_cursors

MESSAGES = {
    "recent": {"numRows": "2", "groupBy": "address"},
    "readrow": {"emitterChain": "2", "emitterAddress": "0" * 64, "sequence": "1"},
    "transaction": {"id": "0x" + "0" * 64},
}
"""Bodies by route, of routes that read messages from the store, where there is one."""
FIGURES = {
    "totals": {"forChain": "2", "numDays": 1, "groupBy": "chain"},
    "notionaltransferred": {"daily": "true", "forPeriod": "true", "numDays": "3"},
}
LISTS = ("notional-transferred", "addresses-transferred-to", "totals", "tvl")
"""Lists of figures."""
JSON = {"Content-Type": "application/json"}


def worlds(messages, figures):
    """Names by backend: figures are read from the lake, whatever store there is."""
    given = [("lake", name) for name in (*messages, *figures)]
    return [*given, *(("bigtable_server", name) for name in messages)]


@pytest.mark.parametrize(("world", "name"), worlds(["recent"], LISTS), indirect=["world"])
@pytest.mark.parametrize("sort", ["newest", "oldest"])
def test_forged_cursors(world, name, sort) -> None:
    path = f"/api/wormhole/v1/{name}?sort={sort}"
    cursor = world.get(f"{path}&pageSize=1")["cursor"]
    statuses = [
        (one, world.client.get(path, params={"cursor": one}).status_code) for one in forged_cursors(cursor)
    ]
    assert [(one, status) for one, status in statuses if status not in (200, 400)] == []


@pytest.mark.parametrize(("world", "route"), worlds(MESSAGES, FIGURES), indirect=["world"])
def test_forged_bodies(world, route) -> None:
    for forged in forged_bodies({**MESSAGES, **FIGURES}[route]):
        answer = world.client.post(f"/wormhole/edb/{route}", content=forged, headers=JSON)
        assert answer.status_code in (200, 400, 404), (forged[:200], answer.text)
