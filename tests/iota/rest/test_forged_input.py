"""Forged cursors, bodies and ranges are refused as input; none is an error of the server."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest

from support import synthetic_lake
from support.hostile_input import forged_bodies, forged_cursors
from support.length import LONG

JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def worlds():
    return {protocol: synthetic_lake.tables(protocol) for protocol in ("stardust", "chrysalis")}


def most(rows, column):
    counts = Counter(row[column] for row in rows if row[column])
    return counts.most_common(1)[0][0]


@pytest.fixture(scope="module")
def lists(worlds):
    """Lists of both networks that have more than one item."""
    stardust, chrysalis = worlds["stardust"], worlds["chrysalis"]
    milestone = most(stardust["messages"], "milestone_index")
    owner = most(stardust["basic_outputs"], "address")
    legacy = most(chrysalis["legacy_outputs"], "address")
    explorer, node, permanode = "/shimmer/api/explorer/v2", "/iota/api/v1", "/api/permanode/v1"
    return [
        f"{explorer}/milestones",
        f"{explorer}/milestones/by-index/{milestone}/blocks",
        f"{explorer}/ledger/updates/by-address/{owner}",
        "/shimmer/api/indexer/v1/outputs/basic?state=all",
        f"/shimmer/api/indexer/v1/outputs/basic?state=all&address={owner}",
        f"{permanode}/shimmer/milestones/{milestone}",
        f"{permanode}/shimmer/messages?index={most(stardust['tags'], 'tag')}",
        f"{permanode}/shimmer/messages/{most(stardust['parents'], 'parent_id')}/children",
        f"{permanode}/shimmer/addresses/{owner}/outputs",
        f"{node}/addresses/{legacy}/outputs?include-spent=true",
        f"{node}/addresses/{legacy}/tx-history",
        f"{node}/messages/{most(chrysalis['parents'], 'parent_id')}/children",
    ]


def refused(client, path, cursor):
    answer = client.get(path, params={"cursor": cursor})
    assert answer.status_code in (200, 400), (path, cursor, answer.text)
    return answer.status_code == 400


def with_cursor(client, path):
    """Return the path with the smallest page, and the cursor of the next."""
    path += f"{'&' if '?' in path else '?'}pageSize=1"
    answer = client.get(path)
    assert answer.status_code == 200, (path, answer.text)
    body = answer.json()
    return path, body.get("cursor") or body.get("data", {}).get("cursor")


def test_forged_cursors_of_the_ledger(synthetic_api, lists) -> None:
    for path in lists:
        asked, cursor = with_cursor(synthetic_api, path)
        assert cursor, path
        outcomes = [refused(synthetic_api, asked, one) for one in forged_cursors(cursor)]
        assert sum(outcomes) > len(outcomes) / 2, path


def test_forged_cursors_of_every_analytics_table(synthetic_api, worlds) -> None:
    rows = worlds["stardust"]
    wanted = {
        "address": most(rows["basic_outputs"], "address"),
        "token_id": most(rows["native_tokens"], "token_id"),
    }
    asked = 0
    for table in synthetic_api.get("/api/analytics/v1/").json()["tables"]:
        if table["network"] != "shimmer":
            continue
        path = table["path"] + "?" + "&".join(f"{name}={wanted[name]}" for name in table["required"])
        path, cursor = with_cursor(synthetic_api, path)
        if cursor:
            asked += 1
            for forged in forged_cursors(cursor):
                refused(synthetic_api, path, forged)
    assert asked > 5


@pytest.mark.scaled
def test_forged_proofs(synthetic_api, worlds) -> None:
    """All bodies at each address; a third of them, another one each, in ``make test``."""
    addresses = (
        ("shimmer", "/shimmer/api/poi/v1", "stardust"),
        ("iota", "/iota/api/poi/v1", "chrysalis"),
        ("iota", "/iota/api/plugins/poi", "chrysalis"),
    )
    for turn, (network, base, protocol) in enumerate(addresses):
        rows = worlds[protocol]["messages"]
        message = next(row["message_id"] for row in rows[len(rows) // 2 :] if row["inclusion_state"] == 1)
        proof = synthetic_api.get(f"{base}/create/{message}").json()
        bodies = forged_bodies(proof)
        for body in bodies if LONG else islice(bodies, turn, None, len(addresses)):
            answer = synthetic_api.post(f"{base}/validate", content=body, headers=JSON)
            assert answer.status_code in (200, 400), (network, body[:200], answer.text)


@pytest.mark.parametrize("network", ["shimmer", "iota"])
def test_days_at_the_ends_of_the_calendar(synthetic_api, network) -> None:
    page = {"Accept": "text/html"}
    links = {f"/{network}", "/", "/quality", "/operations"}
    for path in sorted(links):
        for start, end in (("", "0001-01-01"), ("0001-01-01", ""), ("9999-12-31", ""), ("", "9999-12-31")):
            query = {name: value for name, value in (("start", start), ("end", end)) if value}
            answer = synthetic_api.get(path, params=query, headers=page)
            assert answer.status_code in (200, 400), (path, query, answer.text[:300])
