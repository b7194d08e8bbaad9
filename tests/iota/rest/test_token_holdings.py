"""Native tokens on pages of outputs and addresses, against a parser that shares no code with the product."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from support import plain_outputs, synthetic_lake

JSON = {"Accept": "application/json"}
OWNERS = {"basic": "address", "nft": "address", "alias": "state_controller"}


@pytest.fixture(scope="module")
def world():
    tables = synthetic_lake.tables("stardust")
    spent = {row["output_id"] for row in tables["consumed_outputs"]}
    rows = [(kind, row) for kind in (*OWNERS, "foundry") for row in tables[f"{kind}_outputs"]]
    return rows, spent


def found(client, path):
    answer = client.get(path, headers=JSON)
    assert answer.status_code == 200, answer.text
    return answer.json()["found"]


def told(tokens):
    return {one["id"]: int(one["amount"]) for one in tokens}


def test_an_output_lists_its_tokens(synthetic_api, world) -> None:
    rows, _ = world
    holding = [row for _, row in rows if plain_outputs.native_tokens(bytes(row["data"]))]
    assert len(holding) > 3
    for row in (holding[0], holding[len(holding) // 2], holding[-1]):
        page = found(synthetic_api, f"/shimmer/explore/output/{row['output_id']}")
        assert told(page["tokens"]) == dict(plain_outputs.native_tokens(bytes(row["data"])))


def test_an_address_lists_what_its_unspent_outputs_hold(synthetic_api, world) -> None:
    rows, spent = world
    held = defaultdict(Counter)
    once = set()
    for kind, row in rows:
        owner = row.get(OWNERS.get(kind, ""))
        tokens = dict(plain_outputs.native_tokens(bytes(row["data"])))
        if owner and tokens:
            once.add(owner)
            if row["output_id"] not in spent:
                held[owner].update(tokens)
    some = sorted(held)[:12]
    assert some
    nothing_left = sorted(once - set(held))[:3]
    for address in (*some, *nothing_left):
        page = found(synthetic_api, f"/shimmer/explore/address/{address}")
        assert told(page["native"]["tokens"]) == dict(held[address])
        assert page["native"]["complete"]
    html = synthetic_api.get(f"/shimmer/explore/address/{some[0]}", headers={"Accept": "text/html"}).text
    assert all(token in html for token in held[some[0]])


def test_a_transaction_lists_the_tokens_that_it_moves(synthetic_api, world) -> None:
    rows, _ = world
    row = next(row for _, row in rows if plain_outputs.native_tokens(bytes(row["data"])))
    page = found(synthetic_api, f"/shimmer/explore/transaction/{row['output_id'][:64]}")
    [made] = [one for one in page["message"]["effect"]["created"]["outputs"] if one["id"] == row["output_id"]]
    assert told(made["tokens"]) == dict(plain_outputs.native_tokens(bytes(row["data"])))


def test_what_a_transaction_consumed_has_its_tokens_or_says_that_they_are_unknown(
    synthetic_api, world
) -> None:
    """The lake of tests has no bytes of consumed outputs, only the tokens that were seen to move."""
    rows, _ = world
    tables = synthetic_lake.tables("stardust")
    held = {row["output_id"]: plain_outputs.native_tokens(bytes(row["data"])) for _, row in rows}
    transactions = {
        bool(held[row["output_id"]]): row["transaction_id"]
        for row in tables["consumed_outputs"]
        if row["output_id"] in held
    }
    assert set(transactions) == {True, False}
    seen = set()
    for transaction in transactions.values():
        page = found(synthetic_api, f"/shimmer/explore/transaction/{transaction}")
        for one in page["message"]["effect"]["consumed"]["outputs"]:
            tokens = dict(held.get(one["id"], []))
            assert one["tokens"] is None or told(one["tokens"]) == tokens
            assert (one["tokens"] is None) == (not tokens)
            seen.add(bool(tokens))
        text = synthetic_api.get(
            f"/shimmer/explore/transaction/{transaction}", headers={"Accept": "text/html"}
        ).text
        if any(one["tokens"] is None for one in page["message"]["effect"]["consumed"]["outputs"]):
            assert "native tokens unknown" in text
    assert seen == {True, False}


def test_chrysalis_has_none(synthetic_api) -> None:
    row = synthetic_lake.tables("chrysalis")["legacy_outputs"][0]
    assert found(synthetic_api, f"/iota/explore/output/{row['output_id']}")["tokens"] == []
    assert found(synthetic_api, f"/iota/explore/address/{row['address']}")["native"]["tokens"] == []
