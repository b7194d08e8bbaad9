"""The indexer against a plain search through all rows."""

from __future__ import annotations

import datetime as dt

import pytest

from support import synthetic_lake
from support.iota_days import expected

BASES = ("/shimmer/api/indexer/v1", "/api/indexer/v1/shimmer")
KINDS = ("basic", "alias", "nft", "foundry")
UNLOCKERS = {
    "basic": ("address", "expiration_return_address", "storage_return_address"),
    "nft": ("address", "expiration_return_address", "dust_return_address"),
    "alias": ("state_controller", "governor"),
    "foundry": ("address",),
}


@pytest.fixture(scope="module")
def tables():
    return synthetic_lake.tables("stardust")


@pytest.fixture(scope="module")
def spent(tables):
    return {row["output_id"] for row in tables["consumed_outputs"]}


def time_of(row):
    return int(row["ms_timestamp"].timestamp())


def search(tables, kinds, wanted, without=()):
    """Ids of the outputs that are wanted, oldest first."""
    found = [
        (time_of(row), row["output_id"])
        for kind in kinds
        for row in tables[f"{kind}_outputs"]
        if wanted(kind, row) and row["output_id"] not in without
    ]
    return [f"0x{output_id}" for _, output_id in sorted(found)]


def ids(client, path, **query):
    """All ids of a list, page by page; none twice."""
    found, cursor = [], None
    while True:
        asked = query | ({"cursor": cursor} if cursor else {})
        answer = client.get(path, params=asked)
        assert answer.status_code == 200, answer.text
        body = answer.json()
        assert len(body["items"]) <= body["pageSize"]
        found += body["items"]
        cursor = body.get("cursor")
        if cursor is None:
            assert len(set(found)) == len(found)
            return found


def some(tables, kind, column):
    return next(row[column] for row in tables[f"{kind}_outputs"] if row[column])


def middle(tables, column):
    times = sorted(row[column] for row in tables["basic_outputs"] if row[column])
    return times[len(times) // 2]


def is_set(column):
    return lambda kind, row: row[column] is not None


def is_null(column):
    return lambda kind, row: row[column] is None


def cases(tables):
    """(kind, query, condition) of every filter."""
    created = tables["basic_outputs"]
    noon = time_of(created[len(created) // 2])
    timelock, expiration = middle(tables, "timelock_time"), middle(tables, "expiration_time")
    yield "basic", {"createdBefore": noon}, lambda kind, row: time_of(row) < noon
    yield "basic", {"createdAfter": noon}, lambda kind, row: time_of(row) > noon
    for kind in ("basic", "nft"):
        back = UNLOCKERS[kind][2]
        for name, column in (
            ("hasStorageDepositReturn", back),
            ("requiresDustReturn", back),
            ("hasTimelock", "timelock_time"),
            ("hasExpiration", "expiration_time"),
        ):
            yield kind, {name: "true"}, is_set(column)
            yield kind, {name: "false"}, is_null(column)
    yield (
        "basic",
        {"timelockedBefore": timelock},
        lambda k, row: (row["timelock_time"] or timelock) < timelock,
    )
    yield "basic", {"timelockedAfter": timelock}, lambda k, row: (row["timelock_time"] or 0) > timelock
    yield (
        "basic",
        {"timelockedBefore": timelock + 1},
        lambda k, row: (row["timelock_time"] or timelock + 1) <= timelock,
    )
    yield (
        "basic",
        {"expiresBefore": expiration},
        lambda k, row: 0 < (row["expiration_time"] or 0) < expiration,
    )
    yield "basic", {"expiresAfter": expiration}, lambda k, row: (row["expiration_time"] or 0) > expiration
    for kind, name, column in (
        ("basic", "address", "address"),
        ("basic", "sender", "sender"),
        ("basic", "storageDepositReturnAddress", "storage_return_address"),
        ("basic", "expirationReturnAddress", "expiration_return_address"),
        ("nft", "address", "address"),
        ("nft", "issuer", "issuer"),
        ("nft", "sender", "sender"),
        ("nft", "expirationReturnAddress", "expiration_return_address"),
        ("alias", "stateController", "state_controller"),
        ("alias", "governor", "governor"),
        ("alias", "governer", "governor"),
        ("alias", "issuer", "issuer"),
        ("foundry", "aliasAddress", "address"),
        ("foundry", "address", "address"),
    ):
        value = some(tables, kind, column)
        yield kind, {name: value}, lambda k, row, column=column, value=value: row[column] == value
    for kind in ("basic", "nft"):
        tag = some(tables, kind, "tag")
        for spelt in (tag, f"0x{tag}", f"0x{tag.upper()}"):
            yield kind, {"tag": spelt}, lambda k, row, tag=tag: row["tag"] == tag
    for kind, columns in UNLOCKERS.items():
        for column in columns:
            if any(row[column] for row in tables[f"{kind}_outputs"]):
                yield (
                    kind,
                    {"unlockableByAddress": some(tables, kind, column)},
                    unlockable(some(tables, kind, column)),
                )
    yield "basic", {"hasNativeTokens": "true"}, lambda k, row: row["native_token_count"] > 0
    yield "basic", {"hasNativeTokens": "false"}, lambda k, row: row["native_token_count"] == 0
    # Chronicle compares the amounts of tokens here; these are counts of distinct tokens.
    yield "basic", {"minNativeTokenCount": 1}, lambda k, row: row["native_token_count"] >= 1
    yield "basic", {"minNativeTokenCount": 2}, lambda k, row: row["native_token_count"] >= 2
    yield "basic", {"maxNativeTokenCount": 0}, lambda k, row: row["native_token_count"] <= 0
    yield "alias", {"maxNativeTokenCount": 64}, lambda k, row: True


def unlockable(address):
    return lambda kind, row: address in [row[column] for column in UNLOCKERS[kind]]


def test_every_filter_selects_what_a_search_finds(synthetic_api, tables, spent) -> None:
    found = 0
    for kind, query, wanted in cases(tables):
        path = f"/shimmer/api/indexer/v1/outputs/{kind}"
        every = search(tables, [kind], wanted)
        assert ids(synthetic_api, path, state="all", **query) == every, query
        assert ids(synthetic_api, path, **query) == search(tables, [kind], wanted, spent), query
        found += len(every) > 0
    assert found > 40


def test_outputs_of_all_kinds_by_who_may_unlock_them(synthetic_api, tables, spent) -> None:
    path = "/shimmer/api/indexer/v1/outputs"
    assert ids(synthetic_api, path) == search(tables, KINDS, lambda kind, row: True, spent)
    for kind, columns in UNLOCKERS.items():
        address = some(tables, kind, columns[0])
        found = ids(synthetic_api, path, unlockableByAddress=address, state="all")
        assert found == search(tables, KINDS, unlockable(address))
    tokens = search(tables, KINDS, lambda kind, row: row["native_token_count"] > 0)
    assert ids(synthetic_api, path, hasNativeTokens="true", includeSpent="true") == tokens


@pytest.mark.parametrize("base", BASES)
def test_names_of_seed_004(synthetic_api, tables, spent, base) -> None:
    """`/outputs` with a filter of basic outputs is basic there; the other lists have names of their own."""
    address = some(tables, "basic", "address")
    own = search(tables, ["basic"], lambda kind, row: row["address"] == address, spent)
    assert ids(synthetic_api, f"{base}/outputs", address=address) == own
    for older, name in (("aliases", "alias"), ("nft", "nft"), ("foundries", "foundry")):
        assert ids(synthetic_api, f"{base}/{older}") == ids(synthetic_api, f"{base}/outputs/{name}")


@pytest.mark.parametrize(
    ("kind", "size"), [("alias", 1), ("alias", 7), ("alias", 8), ("basic", 100), ("basic", 1000)]
)
def test_pages_hold_everything_once(synthetic_api, tables, kind, size) -> None:
    """Chronicle issues 1362 and 923: the same cursor again, and one at the end."""
    path = f"/shimmer/api/indexer/v1/outputs/{kind}"
    wanted = search(tables, [kind], lambda kind, row: row["native_token_count"] == 0)
    query = {"state": "all", "pageSize": size, "hasNativeTokens": "false"}
    assert ids(synthetic_api, path, **query) == wanted
    # Within a time the ids go the same way as the times.
    assert ids(synthetic_api, path, sort="newest", **query) == wanted[::-1]


def test_a_cursor_keeps_its_page_size_and_belongs_to_its_list(synthetic_api) -> None:
    path = "/shimmer/api/indexer/v1/outputs/basic"
    first = synthetic_api.get(path, params={"pageSize": 2}).json()
    again = synthetic_api.get(path, params={"pageSize": 50, "cursor": first["cursor"]}).json()
    assert (again["pageSize"], len(again["items"])) == (2, 2)
    for other, query in (("outputs/nft", {}), ("outputs/basic", {"state": "all"})):
        answer = synthetic_api.get(
            f"/shimmer/api/indexer/v1/{other}", params={**query, "cursor": first["cursor"]}
        )
        assert answer.status_code == 400, other


def test_chains_by_id(synthetic_api, tables, spent) -> None:
    """The newest state of each alias, NFT and foundry; a spent one only with state=all."""
    seen = set()
    for kind, path in (("alias", "aliases"), ("nft", "nft"), ("foundry", "foundries")):
        column = f"{kind}_id"
        consumed_by = {row["output_id"]: row["transaction_id"] for row in tables["consumed_outputs"]}
        for chain_id in {row[column] for row in tables[f"{kind}_outputs"]}:
            states = {row["output_id"] for row in tables[f"{kind}_outputs"] if row[column] == chain_id}
            created_by = {state[:64] for state in states}
            [newest] = [state for state in states if consumed_by.get(state) not in created_by]
            is_spent = newest in spent
            seen.add((kind, is_spent))
            for base in (f"{BASES[0]}/outputs/{kind}", f"{BASES[1]}/{path}"):
                answer = synthetic_api.get(f"{base}/0x{chain_id.upper()}")
                assert answer.status_code == (404 if is_spent else 200)
                if is_spent:
                    end = next(r for r in tables["consumed_outputs"] if r["output_id"] == newest)
                    told = answer.json()["detail"]
                    assert f"{kind} {chain_id} was destroyed in milestone {end['milestone_index']}" in told
                    assert end["transaction_id"] in told
                answer = synthetic_api.get(f"{base}/{chain_id}", params={"state": "all"})
                assert answer.json()["items"] == [f"0x{newest}"]
    assert {("alias", False), ("foundry", False), ("nft", True)} <= seen


def test_a_chain_that_never_was_is_not_said_to_be_destroyed(synthetic_api) -> None:
    answer = synthetic_api.get(f"{BASES[0]}/outputs/nft/{'0' * 63}3", params={"state": "all"})
    assert (answer.status_code, answer.json()["detail"]) == (
        404,
        f"nft {'0' * 63}3 is not in the published days",
    )


BAD = [
    ("outputs/basic", {"nosuch": "1"}),
    ("outputs/basic", {"pageSize": "0"}),
    # inx-indexer takes a page size that is no number as 1000, and ignores a boolean that is none.
    ("outputs/basic", {"pageSize": "many"}),
    ("outputs/basic", {"hasTimelock": "perhaps"}),
    ("outputs/basic", {"cursor": "!"}),
    ("outputs/basic", {"cursor": "W10"}),
    ("outputs/basic", {"address": "smr1qqqq"}),
    ("outputs/basic", {"address": "iota1qrhacyfwlcnzkvzteumekfkrrwks98mpdm37cj4xx3drvmjvnep6xqgyzyx"}),
    ("outputs/basic", {"tag": "0xabc"}),
    ("outputs/basic", {"tag": "ab" * 65}),
    ("outputs/basic", {"createdBefore": "-1"}),
    ("outputs/basic", {"createdBefore": str(2**32)}),
    ("outputs/basic", {"minNativeTokenCount": "65"}),
    ("outputs/basic", {"state": "spent"}),
    ("outputs/basic", {"state": "unspent", "includeSpent": "true"}),
    ("outputs/basic", {"state": "all", "includeSpent": "false"}),
    ("outputs/basic", {"hasStorageDepositReturn": "true", "requiresDustReturn": "false"}),
    ("outputs/alias", {"governor": "smr1a", "governer": "smr1b"}),
    ("outputs/alias", {"tag": "00"}),
    ("outputs/alias/00", {}),
    ("outputs/alias/" + "0" * 64, {"pageSize": "1"}),
    ("outputs/foundry/" + "0" * 64, {}),
]


@pytest.mark.parametrize(("path", "query"), BAD)
def test_wrong_requests_are_told_what_is_wrong(synthetic_api, path, query) -> None:
    answer = synthetic_api.get(f"/shimmer/api/indexer/v1/{path}", params=query)
    assert answer.status_code == 400
    problem = answer.json()
    assert problem["error"]["message"] == problem["detail"]
    assert "\n" not in problem["detail"]


def test_chrysalis_outputs_by_address(synthetic_api) -> None:
    spent = {row["output_id"] for row in synthetic_lake.tables("chrysalis")["consumed_outputs"]}
    rows = sorted(expected("chrysalis", "legacy_outputs"), key=lambda r: (r["ms_timestamp"], r["output_id"]))
    address = rows[0]["address"]
    own = [row["output_id"] for row in rows if row["address"] == address]
    path = "/api/indexer/v1/iota/outputs"
    assert ids(synthetic_api, path, address=address, state="all") == own
    assert ids(synthetic_api, path, address=address) == [one for one in own if one not in spent]
    assert ids(synthetic_api, path, pageSize=7, state="all") == [row["output_id"] for row in rows]
    assert synthetic_api.get(path, params={"hasTimelock": "true"}).status_code == 400


def test_a_list_holds_for_the_published_ledger(synthetic_api, tables) -> None:
    last = max(row["end_ms"] for row in tables["date_cache"])
    answer = synthetic_api.get("/shimmer/api/indexer/v1/outputs/basic", params={"sender": "x"})
    assert answer.status_code == 400
    answer = synthetic_api.get("/shimmer/api/indexer/v1/outputs/nft", params={"createdAfter": 2**32 - 1})
    assert answer.json() == {"ledgerIndex": last, "pageSize": 100, "items": []}
    later = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
    answer = synthetic_api.get(
        "/shimmer/api/indexer/v1/outputs", params={"createdAfter": int(later.timestamp())}
    )
    assert answer.json()["items"] == []
