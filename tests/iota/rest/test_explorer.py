"""Chronicle's explorer routes against a plain walk over the rows."""

from __future__ import annotations

from collections import Counter

import pytest

from permalake.iota.rest import balances as sums
from support import synthetic_lake

BASES = ("/shimmer/api/explorer/v2", "/api/permanode/v1/shimmer")
CUT = "/cut/api/explorer/v2"
OWNERS = {"basic": "address", "alias": "state_controller", "nft": "address", "foundry": "address"}


@pytest.fixture(scope="module")
def tables():
    return synthetic_lake.tables("stardust")


def get(client, path, **query):
    answer = client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def pages(client, path, items, **query):
    """All items of a list, page by page."""
    found, cursor = [], None
    while True:
        body = get(client, path, **query, **({"cursor": cursor} if cursor else {}))
        found += body[items]
        cursor = body.get("cursor")
        if cursor is None:
            return found


def time_of(row):
    return int(row["ms_timestamp"].timestamp())


# -- Balances ----------------------------------------------------------------------------------------


def balances(tables):
    """(total, available) by address, output by output: who may unlock it at the end, and what he keeps."""
    time = max(row["timestamp"] for row in tables["milestones"])
    spent = {row["output_id"] for row in tables["consumed_outputs"]}
    total, available = Counter(), Counter()
    for kind, owner in OWNERS.items():
        for row in tables[f"{kind}_outputs"]:
            if row["output_id"] in spent:
                continue
            address, amount = row[owner], row["amount"]
            if (row.get("expiration_time") or time + 1) <= time:
                address = row["expiration_return_address"]
            back = row.get("storage_return_address") or row.get("dust_return_address")
            if back and back != address:
                amount -= row["storage_return_amount"]
            total[address] += amount
            if (row.get("timelock_time") or 0) <= time:
                available[address] += amount
    return total, available


@pytest.mark.parametrize("base", BASES)
def test_balances(synthetic_api, tables, base) -> None:
    """Chronicle issue 1314 and explorer issue 925: conditions count, on both sides."""
    total, available = balances(tables)
    conditions = ("expiration_return_address", "storage_return_address")
    special = {row[name] for row in tables["basic_outputs"] for name in conditions if row[name]}
    special |= {
        row["address"] for row in tables["basic_outputs"] if row["expiration_time"] or row["timelock_time"]
    }
    plain = sorted(total)[: 5 if base == BASES[0] else 1]
    chosen = special if base != BASES[1] else sorted(special)[:2]
    for address in (*chosen, *plain):
        body = get(synthetic_api, f"{base}/balance/{address}")
        assert (int(body["totalBalance"]), int(body["availableBalance"])) == (
            total[address],
            available[address],
        )
        assert body["ledgerIndex"] == max(row["end_ms"] for row in tables["date_cache"])


def test_an_address_that_was_never_seen_is_not_found(synthetic_api) -> None:
    never = "smr1qpzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzqqqqqq"
    assert synthetic_api.get(f"{BASES[0]}/balance/{never}").status_code == 400
    unseen = synthetic_lake.text(0, bytes(range(32)), "smr")
    assert synthetic_api.get(f"{BASES[0]}/balance/{unseen}").status_code == 404
    other = synthetic_lake.text(0, bytes(range(32)), "rms")
    assert synthetic_api.get(f"{BASES[0]}/balance/{other}").status_code == 400


def test_a_balance_of_too_many_outputs_leads_to_the_statement(synthetic_api, tables, monkeypatch) -> None:
    row = tables["basic_outputs"][0]
    path = f"{BASES[0]}/balance/{row['address']}"
    assert synthetic_api.get(path).status_code == 200
    monkeypatch.setattr(sums, "_MOST_OUTPUTS", 0)
    refused = synthetic_api.get(path)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "400")
    statement = next(word for word in refused.json()["detail"].split() if word.startswith("/api"))
    assert row["output_id"][:64] in synthetic_api.get(statement).text
    page = get(synthetic_api, f"/shimmer/explore/address/{row['address']}", format="json")
    assert page["found"]["balance"] is None


# -- Blocks and milestones ---------------------------------------------------------------------------


@pytest.mark.parametrize("base", BASES)
def test_children_at_any_distance(synthetic_api, tables, base) -> None:
    """Chronicle looks for children below the max depth only."""
    place = {row["message_id"]: row["milestone_index"] for row in tables["messages"]}
    children = {}
    for row in tables["parents"]:
        children.setdefault(row["parent_id"], set()).add(row["message_id"])
    most = max(children, key=lambda parent: len(children[parent]))
    far = max(
        (parent for parent in children if parent in place),
        key=lambda parent: max(place[child] for child in children[parent]) - place[parent],
    )
    for parent in (most, far):
        wanted = sorted(children[parent], key=lambda child: (place[child], child))
        body = get(synthetic_api, f"{base}/blocks/0x{parent}/children")
        assert body["children"] == [f"0x{one}" for one in wanted]
        assert (body["count"], body["maxResults"]) == (len(wanted), 100)
    found = []
    for number in range(len(children[most])):
        found += get(synthetic_api, f"{base}/blocks/{most}/children", pageSize=1, page=number)["children"]
    assert found == get(synthetic_api, f"{base}/blocks/{most}/children")["children"]
    last = get(synthetic_api, f"{base}/blocks/{most}/children", page=1)
    assert (last["count"], last["children"]) == (0, [])
    assert synthetic_api.get(f"{base}/blocks/{'0' * 63}1/children").status_code == 404


@pytest.mark.parametrize("base", BASES)
def test_milestones_of_a_time(synthetic_api, tables, base) -> None:
    rows = sorted(tables["milestones"], key=lambda row: row["milestone_index"])
    every = [{"milestoneId": f"0x{row['milestone_id']}", "index": row["milestone_index"]} for row in rows]
    for size in (1, 7, 1000):
        assert pages(synthetic_api, f"{base}/milestones", "items", pageSize=size, sort="oldest") == every
        assert pages(synthetic_api, f"{base}/milestones", "items", pageSize=size) == every[::-1]
    start, end = rows[2]["timestamp"], rows[-2]["timestamp"]
    query = {"startTimestamp": start, "endTimestamp": end, "sort": "oldest"}
    assert pages(synthetic_api, f"{base}/milestones", "items", pageSize=3, **query) == [
        item for item, row in zip(every, rows, strict=True) if start <= row["timestamp"] <= end
    ]
    assert get(synthetic_api, f"{base}/milestones", startTimestamp=2**32 - 1) == {"items": []}


@pytest.mark.parametrize("base", BASES)
def test_blocks_of_a_milestone_in_white_flag_order(synthetic_api, tables, base) -> None:
    milestone = max(tables["milestones"], key=lambda row: row["milestone_index"])
    rows = [row for row in tables["messages"] if row["milestone_index"] == milestone["milestone_index"]]
    wanted = [f"0x{row['message_id']}" for row in sorted(rows, key=lambda row: row["white_flag_index"])]
    names = (f"by-index/{milestone['milestone_index']}", f"0x{milestone['milestone_id']}")
    for name, size in zip(names, (3, 1000), strict=True):
        path = f"{base}/milestones/{name}/blocks"
        found = pages(synthetic_api, path, "blocks", pageSize=size, sort="oldest")
        assert [one["blockId"] for one in found] == wanted
        assert pages(synthetic_api, path, "blocks", pageSize=size) == found[::-1]
    # Tagged data 5, transactions 6, milestones 7 (TIP-23, TIP-20, TIP-29).
    kinds = {one["blockId"][2:]: one.get("payloadType") for one in found}
    transactions = {row["message_id"] for row in rows if row["inclusion_state"] != 2}
    assert {one for one, kind in kinds.items() if kind == 6} == transactions
    assert set(kinds.values()) <= {None, 5, 6, 7}
    assert synthetic_api.get(f"{base}/milestones/by-index/1/blocks").status_code == 404
    assert synthetic_api.get(f"{base}/milestones/{'0' * 64}/blocks").status_code == 404


# -- The ledger --------------------------------------------------------------------------------------


def updates(tables):
    """(milestone, output, spent, time, address) of every update, in order."""
    found = [
        (row["milestone_index"], row["output_id"], False, time_of(row), row[owner])
        for kind, owner in OWNERS.items()
        for row in tables[f"{kind}_outputs"]
    ]
    found += [
        (row["milestone_index"], row["output_id"], True, time_of(row), row["address"])
        for row in tables["consumed_outputs"]
        if row["kind"] != "treasury"
    ]
    return sorted(found)


@pytest.mark.parametrize("named", [200, 0])
@pytest.mark.parametrize("base", BASES)
def test_ledger_updates_of_an_address(synthetic_api, tables, base, named, monkeypatch) -> None:
    """Chronicle issues 278, 371 and 441: sorts mirror; created and spent in one milestone makes two."""
    monkeypatch.setattr("permalake.lake.serving.snapshot._NAMED_MILESTONES", named)
    every = updates(tables)
    most = [address for address, _ in Counter(one[4] for one in every).most_common(2)]
    keys = Counter((one[0], one[1]) for one in every)
    at_once = next(one[4] for one in every if keys[one[0], one[1]] == 2)
    chain = [tables["alias_outputs"][0]["state_controller"], tables["foundry_outputs"][0]["address"]]
    for address in (*most, at_once, *chain):
        wanted = [
            {
                "milestoneIndex": index,
                "milestoneTimestamp": time,
                "outputId": f"0x{output_id}",
                "isSpent": spent,
            }
            for index, output_id, spent, time, owner in every
            if owner == address
        ]
        path = f"{base}/ledger/updates/by-address/{address}"
        for size in (7, 1000):
            assert pages(synthetic_api, path, "items", pageSize=size, sort="oldest") == wanted
            assert pages(synthetic_api, path, "items", pageSize=size) == wanted[::-1]
        start = wanted[len(wanted) // 2]["milestoneIndex"]
        later = [one for one in wanted if one["milestoneIndex"] >= start]
        earlier = [one for one in wanted if one["milestoneIndex"] <= start]
        query = {"startMilestoneIndex": start, "pageSize": 5}
        assert pages(synthetic_api, path, "items", sort="oldest", **query) == later
        assert pages(synthetic_api, path, "items", **query) == earlier[::-1]


@pytest.mark.parametrize("base", BASES)
def test_ledger_updates_of_a_milestone(synthetic_api, tables, base) -> None:
    ids = {row["milestone_index"]: row["milestone_id"] for row in tables["milestones"]}
    every = updates(tables)
    busy = Counter(one[0] for one in every).most_common(1)[0][0]
    path = f"{base}/ledger/updates/by-milestone/{ids[busy]}"
    wanted = [
        {"address": address, "outputId": f"0x{output_id}", "isSpent": spent}
        for index, output_id, spent, _, address in every
        if index == busy
    ]
    for size in (10, 1000):
        assert pages(synthetic_api, path, "items", pageSize=size) == wanted
    assert get(synthetic_api, path)["milestoneIndex"] == busy


@pytest.mark.parametrize("base", BASES)
def test_holders_at_the_end_of_a_day(synthetic_api, tables, base) -> None:
    """Amounts as text; a milestone within a day stands for the end of the day before."""
    first, last = sorted(tables["date_cache"], key=lambda row: row["date"])
    for row in (first, last):
        for name in ("ledgerIndex", "ledger_index"):
            body = get(synthetic_api, f"{base}/ledger/richest-addresses", **{name: row["end_ms"]}, top=2)
            wanted = [one for one in tables["richest_addresses"] if one["date"] == row["date"]]
            assert body["ledgerIndex"] == row["end_ms"]
            assert body["top"] == [
                {"address": one["address"], "balance": str(one["balance"])} for one in wanted[:2]
            ]
    body = get(synthetic_api, f"{base}/ledger/token-distribution", ledgerIndex=last["end_ms"] - 1)
    assert body == {
        "distribution": [{"range": {"start": 100, "end": 1000}, "addressCount": "3", "totalBalance": "600"}],
        "ledgerIndex": first["end_ms"],
        "sinceMilestone": None,
    }
    newest = get(synthetic_api, f"{base}/ledger/token-distribution")
    assert newest["ledgerIndex"] == last["end_ms"]
    before = synthetic_api.get(
        f"{base}/ledger/richest-addresses", params={"ledgerIndex": first["end_ms"] - 1}
    )
    assert before.status_code == 404
    both = {"ledgerIndex": 1, "ledger_index": 2}
    assert synthetic_api.get(f"{base}/ledger/token-distribution", params=both).status_code == 400


def test_balances_since_some_milestone_are_not_passed_off_as_the_ledgers(synthetic_api) -> None:
    for path in ("richest-addresses", "token-distribution"):
        assert get(synthetic_api, f"{CUT}/ledger/{path}")["sinceMilestone"] == 1


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("ledger/richest-addresses", {"top": 0}),
        ("ledger/token-distribution", {"top": 1}),
        ("ledger/updates/by-address/x", {}),
        ("ledger/updates/by-milestone/00", {}),
        ("milestones", {"cursor": "W10"}),
        ("milestones", {"startTimestamp": -1}),
        ("blocks/00/children", {}),
    ],
)
def test_wrong_requests(synthetic_api, path, query) -> None:
    assert synthetic_api.get(f"{BASES[0]}/{path}", params=query).status_code == 400
