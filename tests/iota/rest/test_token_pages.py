"""Pages of native tokens, with their foundry and without it, against rows that a parser of tests made."""

from __future__ import annotations

from collections import Counter

import pytest
from fastapi.testclient import TestClient

from permalake.api.app import create_app
from support import lakes, synthetic_lake

JSON = {"Accept": "application/json"}
HTML = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def rows():
    return synthetic_lake.tables("stardust")


@pytest.fixture(scope="module")
def later(tmp_path_factory, rows):
    """A lake that begins after the foundries and the first outputs with tokens."""
    settings = synthetic_lake.settings_of(tmp_path_factory.mktemp("later"))
    lake = lakes.OpenLake(settings)
    first = sorted(row["milestone_index"] for row in rows["native_tokens"])[len(rows["native_tokens"]) // 3]
    kept = {
        name: [row for row in found if row.get("milestone_index", first) >= first]
        for name, found in rows.items()
        if name != "foundry_outputs"
    }
    kept["date_cache"] = [
        row | {"start_ms": max(row["start_ms"], first)}
        for row in rows["date_cache"]
        if row["end_ms"] >= first
    ]
    for day in sorted({row["date"] for row in kept["milestones"]}):
        attempt = lake.begin("shimmer", day, day, str(day))
        for name, found in kept.items():
            lakes.put(settings, attempt, name, [row for row in found if row["date"] == day])
        lake.builds.publish(lakes.pass_audit(attempt))
    lake.leave()
    with TestClient(create_app(settings)) as client:
        yield client, kept


def held(rows, token):
    """Amounts by address in unspent outputs that the rows have."""
    spent = {row["output_id"] for row in rows["native_tokens"] if row["is_spent"]}
    found = Counter()
    for row in rows["native_tokens"]:
        if row["token_id"] == token and not row["is_spent"] and row["output_id"] not in spent:
            found[row["address"]] += int(row["amount"])
    return found


def page(client, token):
    answer = client.get(f"/shimmer/explore/foundry/{token}", headers=JSON)
    assert answer.status_code == 200, answer.text
    return answer.json()["found"]


def check(found, rows, token) -> None:
    expected = held(rows, token)
    assert {one["address"]: int(one["amount"]) for one in found["holders"]} == dict(expected)
    assert (found["holder_count"], int(found["amount"])) == (len(expected), sum(expected.values()))
    amounts = [int(one["amount"]) for one in found["holders"]]
    assert amounts == sorted(amounts, reverse=True)
    assert sum(int(one["amount"]) for one in found["outputs"]) == sum(expected.values())
    moved = {}
    for row in rows["native_tokens"]:
        if row["token_id"] == token:
            sides = moved.setdefault(row["transaction_id"], [0, 0])
            sides[row["is_spent"]] += int(row["amount"])
    told = {one["transaction_id"]: [int(one["created"]), int(one["consumed"])] for one in found["moves"]}
    assert told == moved
    assert found["move_count"] == len(moved)


def test_a_token_tells_its_holders_and_moves(synthetic_api, rows) -> None:
    tokens = sorted({row["token_id"] for row in rows["native_tokens"]})
    assert tokens
    for token in tokens[:4]:
        found = page(synthetic_api, token)
        assert found["supply"]
        check(found["token"], rows, token)


def test_a_token_whose_foundry_is_older_than_the_lake_has_a_page(later) -> None:
    client, rows = later
    tokens = sorted({row["token_id"] for row in rows["native_tokens"]})
    token = max(tokens, key=lambda one: len(held(rows, one)))
    assert held(rows, token)
    found = page(client, token)
    assert (found["supply"], found["outputs"], found["json"]) == (None, [], None)
    check(found["token"], rows, token)
    assert found["token"]["since"] == min(row["milestone_index"] for row in rows["milestones"])
    text = client.get(f"/shimmer/explore/foundry/{token}", headers=HTML).text
    assert "Its foundry is older than the lake" in text
    assert f"at least, since milestone {found['token']['since']}" in text
    for holder in found["token"]["holders"]:
        assert f"/shimmer/explore/address/{holder['address']}" in text


@pytest.mark.parametrize("prefix", ["", "0x"])
def test_search_finds_a_token_by_its_id(later, prefix) -> None:
    client, rows = later
    token = rows["native_tokens"][0]["token_id"]
    answer = client.get("/search", params={"q": prefix + token, "in": "shimmer"}, headers=HTML)
    assert answer.url.path == f"/shimmer/explore/foundry/{token}"
    assert answer.status_code == 200
    other = "08" + "7" * 74
    assert client.get(f"/shimmer/explore/foundry/{other}", headers=JSON).status_code == 404


def test_an_address_links_its_tokens(later) -> None:
    client, rows = later
    token = max({row["token_id"] for row in rows["native_tokens"]}, key=lambda one: len(held(rows, one)))
    text = client.get(f"/shimmer/explore/address/{next(iter(held(rows, token)))}", headers=HTML).text
    assert f'href="/shimmer/explore/foundry/{token}"' in text
    assert "its foundry is older than the lake" in text
