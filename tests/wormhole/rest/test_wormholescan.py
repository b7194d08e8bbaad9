"""Wormholescan's routes under ``/wormhole``; peers' faults (its issues by number) are cases here."""

from __future__ import annotations

import base64
import datetime as dt
from decimal import Decimal

import pytest
from fastapi.testclient import TestClient

from permalake.api.app import create_app
from permalake.lake.serving import LakeReader
from permalake.lake.serving.copies import RowCopies
from permalake.wormhole.reference import load_reference
from permalake.wormhole.rest.not_served import EVENT_DATABASE, WORMHOLESCAN
from permalake.wormhole.rest.rows import exact_sum
from support.served_wormhole import (
    FAR_CHAIN,
    FAR_EMITTER,
    LAST_DAY,
    LATE_DAYS,
    RECIPIENT,
    RECIPIENT_CHAIN,
    SOLANA_TRANSACTION,
)
from support.vaa_data import SYNTHETIC, read_lines

BASE = "/wormhole/api/v1"


@pytest.fixture(scope="module")
def documents(world):
    """The documents that the world was ingested from, by id, of published messages with one signature set."""
    found = {}
    for file in sorted((SYNTHETIC / "input").glob("*.jsonl.gz")):
        for document in read_lines(file):
            found.setdefault(document["id"], []).append(document)
    published = {row["row_key"]: row for row in world.rows["message_publication"]}
    raw = {row["row_key"]: row["signed_vaa"] for row in world.rows["quorum_state"]}
    chosen = {}
    for key in published:
        chain, emitter, sequence = key.split(":")
        name = f"{chain}/{emitter}/{int(sequence)}"
        for document in found.get(name, ()):
            if base64.b64decode(document["vaa"]) == raw[key]:
                chosen[name] = document
    return chosen


def test_a_vaa_document_is_the_one_that_was_ingested(world, documents) -> None:
    assert len(documents) > 400
    for name in list(documents)[::40]:
        told, served = documents[name], world.get(f"{BASE}/vaas/{name}")["data"]
        same = ("sequence", "id", "version", "emitterChain", "emitterAddr", "guardianSetIndex", "vaa")
        assert {key: served[key] for key in same} == {key: told[key] for key in same}
        assert served["isDuplicated"] is False


def test_digest_is_the_single_keccak_of_the_body(world, documents) -> None:
    from sha3 import keccak_256

    from permalake.wormhole.rest.vaa_documents import single_digest

    name = next(iter(documents))
    served = world.get(f"{BASE}/vaas/{name}")["data"]
    raw = base64.b64decode(served["vaa"])
    body = raw[6 + 66 * raw[5] :]
    assert served["digest"] == keccak_256(body).hexdigest() == single_digest(raw)


def test_a_transaction_gives_all_its_vaas_with_and_without_0x_and_on_solana(world) -> None:
    """#563: one VAA per txHash; #772: 0x; #440: Solana."""
    found = world.get(f"{BASE}/vaas?txHash={SOLANA_TRANSACTION}")["data"]
    assert [one["sequence"] for one in found] == [8, 7]
    own = next(r for r in world.rows["message_publication"] if (r["initiating_tx_id"] or "").startswith("0x"))
    expected = sum(
        r["initiating_tx_id"] == own["initiating_tx_id"] for r in world.rows["message_publication"]
    )
    for text in (own["initiating_tx_id"], own["initiating_tx_id"].removeprefix("0x").upper()):
        assert len(world.get(f"{BASE}/vaas?txHash={text}")["data"]) == expected


def test_chain_ids_go_beyond_a_signed_16_bit_number(world) -> None:
    found = world.get(f"{BASE}/vaas/{FAR_CHAIN}/{FAR_EMITTER}")["data"]
    assert {one["emitterChain"] for one in found} == {FAR_CHAIN}
    assert {"chainId": FAR_CHAIN, "count": 2} in world.get(f"{BASE}/vaas/vaa-counts")["data"]


def test_pages_cover_an_emitter_once_in_either_order(world) -> None:
    row = world.rows["message_publication"][0]
    path = f"{BASE}/vaas/{row['emitter_chain']}/{row['emitter_address']}"
    expected = sum(r["emitter_address"] == row["emitter_address"] for r in world.rows["message_publication"])
    newest, number = [], 0
    while page := world.get(f"{path}?pageSize=7&page={number}")["data"]:
        newest += [one["id"] for one in page]
        number += 1
    assert len(newest) == len(set(newest)) == expected
    oldest = [one["id"] for one in world.get(f"{path}?pageSize=1000&sortOrder=ASC")["data"]]
    assert oldest == newest[::-1]


def test_bodies_that_contradict_each_other_are_told_as_duplicates(world) -> None:
    """#1110: of two bodies of one message, no one may be told as the message."""
    row = next(r for r in world.rows["quarantine"] if r["reason"] == "conflicting_digest" and r["raw"])
    chain, emitter, sequence = row["origin"].split(":")
    name = f"{chain}/{emitter}/{int(sequence)}"
    world.get(f"{BASE}/vaas/{name}", 404)
    found = world.get(f"{BASE}/vaas/{name}/duplicated")["data"]
    assert {base64.b64decode(one["vaa"]) for one in found} == {
        r["raw"]
        for r in world.rows["quarantine"]
        if r["reason"] == "conflicting_digest" and r["origin"] == row["origin"]
    }
    assert all(one["isDuplicated"] and one["id"] == name for one in found)


def test_an_operation_has_payload_value_and_properties(world) -> None:
    details = next(r for r in world.rows["token_transfer_details"] if (r["notional_usd"] or 0) > 1)
    transfer = next(r for r in world.rows["token_transfer_payload"] if r["row_key"] == details["row_key"])
    chain, emitter, sequence = details["row_key"].split(":")
    found = world.get(f"{BASE}/operations/{chain}/{emitter}/{int(sequence)}")
    assert found["data"]["tokenAmount"] == details["amount"]
    assert Decimal(found["data"]["usdAmount"]) == details["notional_usd"]
    assert found["content"]["payload"]["amount"] == transfer["amount"]
    properties = found["content"]["standarizedProperties"]
    assert "PORTAL_TOKEN_BRIDGE" in properties["appIds"]
    assert (properties["toChain"], properties["tokenChain"]) == (
        transfer["target_chain"],
        transfer["origin_chain"],
    )
    one = world.get(f"{BASE}/transactions/{chain}/{emitter}/{int(sequence)}")
    assert (one["tokenAmount"], one["symbol"]) == (details["amount"], details["origin_symbol"])


def test_an_operation_tells_its_redemption_unless_it_is_in_flight(world) -> None:
    done = {r["row_key"]: r for r in world.rows["redemptions"] if r["status"] == "completed"}
    waiting = next(r["row_key"] for r in world.rows["redemptions"] if r["row_key"] not in done)
    asked = {r["row_key"] for r in world.rows["redemptions"]}
    untold = next(r["row_key"] for r in world.rows["token_transfer_payload"] if r["row_key"] not in asked)
    key, row = next(iter(done.items()))
    assert world.get(f"{BASE}/operations/{_path(key)}")["targetChain"] == {
        "chainId": row["target_chain"],
        "transaction": {"txHash": row["target_tx_id"]},
        "status": "completed",
        "from": row["redeemer"],
        "fee": row["fee"],
        "timestamp": "2024-03-12T12:30:00Z",
    }
    target = world.get(f"{BASE}/transactions/{_path(key)}")["globalTx"]["destinationTx"]
    assert (target["txHash"], target["chainId"]) == (row["target_tx_id"], row["target_chain"])
    for other in (waiting, untold):
        assert "targetChain" not in world.get(f"{BASE}/operations/{_path(other)}")
        assert "destinationTx" not in world.get(f"{BASE}/transactions/{_path(other)}")["globalTx"]


def test_operations_of_a_transaction_are_those_that_it_emitted_or_redeemed(world) -> None:
    """A transfer was not found by the transaction that redeemed it."""
    paid = next(r for r in world.rows["redemptions"] if r.get("target_tx_id"))
    for text in (paid["target_tx_id"], paid["target_tx_id"].removeprefix("0x").upper()):
        [operation] = world.get(f"{BASE}/operations?txHash={text}")["operations"]
        assert _key(operation) == paid["row_key"]
        assert world.get(f"{BASE}/vaas?txHash={text}")["data"] == []
    emitted = world.get(f"{BASE}/operations?txHash={SOLANA_TRANSACTION}")["operations"]
    assert [one["sequence"] for one in emitted] == ["8", "7"]


def test_operations_filter_by_address_chains_transaction_and_time(world) -> None:
    details = next(r for r in world.rows["chain_details"] if r["sender_address"])
    key = details["row_key"]
    found = world.get(f"{BASE}/operations?address={details['sender_address']}&pageSize=100")["operations"]
    assert any(_key(one) == key for one in found)
    published = next(r for r in world.rows["message_publication"] if r["row_key"] == key)
    when = published["timestamp"].strftime("%Y-%m-%dT%H:%M:%SZ")
    same = world.get(f"{BASE}/operations?from={when}&to={when}&sourceChain={published['emitter_chain']}")
    assert any(_key(one) == key for one in same["operations"])
    assert all(one["sourceChain"]["timestamp"] == when for one in same["operations"])


def test_a_time_in_another_zone_lists_the_same_operations(world) -> None:
    """The date of a zone ahead of UTC left out what was published before it."""
    times = (r["timestamp"] for r in world.rows["message_publication"])
    moment = max(time for time in times if time.date() < LAST_DAY)
    zones = (dt.UTC, *(dt.timezone(dt.timedelta(hours=hours)) for hours in (-12, 14)))
    lists = []
    for zone in zones:
        time = moment.astimezone(zone).isoformat()
        answer = world.client.get(f"{BASE}/operations", params={"from": time, "to": time})
        lists.append([one["id"] for one in answer.json()["operations"]])
    assert lists[0]
    assert lists[0] == lists[1] == lists[2]
    for time in ("9999-12-31T23:00:00-02:00", "0001-01-01T01:00:00+02:00"):
        assert world.client.get(f"{BASE}/operations", params={"from": time}).status_code == 400


@pytest.fixture(scope="module")
def shown(world):
    """Every operation's properties as they are shown, by id."""
    return {
        one["id"]: one["content"]["standarizedProperties"] for one in whole_list(world, f"{BASE}/operations?")
    }


def whole_list(world, path):
    listed, number = [], 0
    while page := world.get(f"{path}&pageSize=100&page={number}")["operations"]:
        listed += page
        number += 1
    return listed


def test_operations_to_a_chain_are_those_that_show_it(world, shown) -> None:
    """Only those of the token bridge were listed."""
    by_chain = {}
    for name, properties in shown.items():
        by_chain.setdefault(properties["toChain"], set()).add(name)
    apart = {r["target_chain"] for r in world.rows["nft_transfer_payload"]} | {RECIPIENT_CHAIN}
    assert RECIPIENT_CHAIN not in {r["target_chain"] for r in world.rows["token_transfer_payload"]}
    assert apart <= by_chain.keys()
    for chain in sorted(apart | {65_000}):
        listed = whole_list(world, f"{BASE}/operations?targetChain={chain}")
        assert {one["id"] for one in listed} == by_chain[chain], chain
        vaas = world.get(f"{BASE}/vaas?toChain={chain}&pageSize=1000")["data"]
        assert {one["id"] for one in vaas} == by_chain[chain], chain
    assert world.get(f"{BASE}/operations?targetChain=59999")["operations"] == []


def test_operations_of_an_address_are_those_that_show_it(world, shown) -> None:
    """An account behind an application's contract was shown, and found nothing."""
    by_address = {}
    for name, properties in shown.items():
        for side in ("fromAddress", "toAddress"):
            by_address.setdefault(properties[side], set()).add(name)
    del by_address[""]
    assert RECIPIENT in by_address
    for address in {*sorted(by_address)[:: len(by_address) // 8], RECIPIENT}:
        for route in ("operations", "transactions"):
            listed = world.get(f"{BASE}/{route}?address={address}&pageSize=100")[route]
            assert {one["id"] for one in listed} == by_address[address], (route, address)


def test_operations_filter_by_application(world) -> None:
    nfts = {r["row_key"] for r in world.rows["application_messages"] if r["app_id"] == "PORTAL_NFT_BRIDGE"}
    found = world.get(f"{BASE}/operations?appId=PORTAL_NFT_BRIDGE&pageSize=100")["operations"]
    assert nfts
    assert {_key(one) for one in found} == nfts
    properties = [one["content"]["standarizedProperties"] for one in found]
    assert all(one["appIds"] == ["PORTAL_NFT_BRIDGE"] for one in properties)
    assert world.get(f"{BASE}/operations?appId=PORTAL_TOKEN_BRIDGE&pageSize=1")["operations"]
    assert world.get(f"{BASE}/operations?appId=CONNECT")["operations"] == []


def test_operations_of_one_application_alone(world) -> None:
    for name in ("GENERIC_RELAYER", "NATIVE_TOKEN_TRANSFER"):
        wanted = f"{BASE}/operations?appId={name}"
        assert {one["emitterAddress"]["hex"] for one in world.get(wanted)["operations"]} == {FAR_EMITTER}
        assert world.get(f"{wanted}&exclusiveAppId=true")["operations"] == []
    nfts = f"{BASE}/operations?appId=PORTAL_NFT_BRIDGE&pageSize=100"
    assert world.get(f"{nfts}&exclusiveAppId=true") == world.get(nfts)


def _path(key):
    chain, emitter, sequence = key.split(":")
    return f"{chain}/{emitter}/{int(sequence)}"


def _key(one):
    return f"{one['emitterChain']}:{one['emitterAddress']['hex']}:{int(one['sequence']):016d}"


def test_observations_are_the_signatures_of_guardians_of_the_set(world, documents) -> None:
    name = next(iter(documents))
    found = world.get(f"{BASE}/observations/{name}")
    row = next(r for r in world.rows["message_publication"] if _name(r["row_key"]) == name)
    assert len(found) == len({one["guardianAddr"] for one in found}) > 0
    assert {base64.b64decode(one["hash"]).hex() for one in found} == {row["digest"]}
    first = found[0]
    assert world.get(f"{BASE}/observations/{name}/{first['guardianAddr']}/{row['digest']}") == first
    world.get(f"{BASE}/observations/{name}/{first['guardianAddr']}/{'00' * 32}", 404)


def test_observations_have_their_own_times_and_signers_nobody_observed_the_vaa_s(world) -> None:
    rows = world.rows["observations"]
    name = _name(rows[0]["row_key"])
    found = {one["guardianAddr"].removeprefix("0x"): one for one in world.get(f"{BASE}/observations/{name}")}
    assert found.keys() > {row["guardian_address"] for row in rows}
    for row in rows:
        told = found.pop(row["guardian_address"])
        assert base64.b64decode(told["signature"]).hex() == row["signature"]
        assert dt.datetime.fromisoformat(told["indexedAt"]) == row["observed_at"]
    [signer] = found.values()
    [published] = [r for r in world.rows["message_publication"] if r["row_key"] == rows[0]["row_key"]]
    assert dt.datetime.fromisoformat(signer["indexedAt"]) == published["timestamp"]
    chain, emitter, _ = name.split("/")
    listed = world.get(f"{BASE}/observations/{chain}/{emitter}?pageSize=1000")
    times = [
        dt.datetime.fromisoformat(one["indexedAt"]) for one in listed if one["id"].startswith(f"{name}/")
    ]
    assert len(times) == len(rows) + 1
    assert times == sorted(times, reverse=True)


def _name(key):
    chain, emitter, sequence = key.split(":")
    return f"{chain}/{emitter}/{int(sequence)}"


def test_sums_agree_across_routes(world) -> None:
    """#1747: the same figure by different routes."""
    cards = world.get(f"{BASE}/scorecards")
    total = exact_sum(r["notional_usd"] or Decimal(0) for r in world.rows["notional_transferred_daily"])
    assert Decimal(cards["total_volume"]) == total
    activity = world.get(f"{BASE}/x-chain-activity?timeSpan=all-time")["txs"]
    assert exact_sum(Decimal(one["volume"]) for one in activity) == total
    for one in activity:
        parts = exact_sum(Decimal(target["volume"]) for target in one["destinations"])
        assert parts == Decimal(one["volume"])
    transfers = world.get(f"{BASE}/x-chain-activity?timeSpan=all-time&by=tx")["txs"]
    assert sum(Decimal(one["volume"]) for one in transfers) == sum(
        r["transfers"] for r in world.rows["notional_transferred_daily"]
    )
    assert int(cards["total_messages"]) == sum(r["verified"] for r in world.rows["messages_daily"])
    last = world.get(f"{BASE}/last-txs")
    times = [r["timestamp"] for r in world.rows["message_publication"] if r["emitter_chain"] != 26]
    week = world.get(f"{BASE}/last-txs?timeSpan=1w&sampleRate=1d")
    assert week[0]["count"] == sum(one["count"] for one in last)
    assert sum(one["count"] for one in last) == sum(time.date() == LAST_DAY for time in times)


def test_the_value_locked_is_of_the_newest_day_that_has_it(late_tvl) -> None:
    values = [row["notional_usd"] for row in late_tvl.rows["tvl_daily"] if row["date"] == LATE_DAYS[1]]
    total = exact_sum(value for value in values if value is not None)
    assert Decimal(late_tvl.get(f"{BASE}/scorecards")["tvl"]) == total > 0


def test_top_lists_are_the_largest(world) -> None:
    assets = world.get(f"{BASE}/top-assets-by-volume?timeSpan=30d")["assets"]
    volumes = [Decimal(one["volume"]) for one in assets]
    assert volumes == sorted(volumes, reverse=True)
    pairs = world.get(f"{BASE}/top-chain-pairs-by-num-transfers?timeSpan=7d")["chainPairs"]
    assert pairs[0]["numberOfTransfers"] == max(one["numberOfTransfers"] for one in pairs) > 0
    assert world.get(f"{BASE}/top-assets-by-volume", 400)["code"] == 3


def test_an_empty_lake_answers_zeros(no_days) -> None:
    """#304, #334: 500; #571: no tvl."""
    cards = no_days.get(f"{BASE}/scorecards").json()
    assert {str(value) for value in cards.values()} == {"0"}
    assert "tvl" in cards
    assert no_days.get(f"{BASE}/last-txs").json() == []
    assert no_days.get(f"{BASE}/x-chain-activity").json() == {"txs": []}
    assert no_days.get(f"{BASE}/vaas").json() == {"data": [], "pagination": {"next": ""}}
    assert no_days.get(f"{BASE}/operations").json() == {"operations": []}


def test_guardian_routes(world) -> None:
    row = world.rows["quorum_state"][0]
    served = world.get(f"/wormhole/v1/signed_vaa/{_name(row['row_key'])}")
    assert base64.b64decode(served["vaaBytes"]) == row["signed_vaa"]
    assert world.get(f"/wormhole/v1/governor/is_vaa_enqueued/{_name(row['row_key'])}") == {
        "isEnqueued": False
    }
    unknown = f"2/{'0' * 64}/1"
    assert world.get(f"/wormhole/v1/governor/is_vaa_enqueued/{unknown}", 501)["code"] == 12
    missing = world.get(f"/wormhole/v1/signed_vaa/{unknown}", 404)
    assert (missing["code"], missing["details"]) == (5, [])
    sets = world.get("/wormhole/v1/guardianset/current")["guardianSet"]
    assert sets["index"] == 101
    assert sets["addresses"]


def test_a_token_is_told_as_attested(world) -> None:
    row = world.rows["asset_meta_payload"][0]
    found = world.get(f"{BASE}/token/{row['token_chain']}/{row['token_address']}")
    attested = [
        (r["symbol"], r["decimals"])
        for r in world.rows["asset_meta_payload"]
        if (r["token_chain"], r["token_address"]) == (row["token_chain"], row["token_address"])
    ]
    assert (found["symbol"], found["decimals"]) in attested
    world.get(f"{BASE}/token/2/{'0' * 63}1", 404)


def test_a_token_is_told_as_its_own_chain_attested_it(world) -> None:
    """The newest attestation counted, of whichever chain's bridge."""
    listed = load_reference(SYNTHETIC / "reference").tokens
    own, forged = {}, set()
    for row in world.rows["asset_meta_payload"]:
        token = row["token_chain"], row["token_address"]
        if row["row_key"].startswith(f"{token[0]}:"):
            own.setdefault(token, set()).add(row["symbol"])
        else:
            forged.add(token)
    assert len(forged) > 1
    for token in forged:
        answer = world.client.get(f"{BASE}/token/{token[0]}/{token[1]}")
        expected = own.get(token) or {entry.symbol for entry in [listed.get(token)] if entry}
        assert answer.status_code == (200 if expected else 404)
        assert not expected or answer.json()["symbol"] in expected


@pytest.mark.parametrize(
    "path", [*(f"/wormhole{one}" for one in WORMHOLESCAN), *(f"/wormhole/edb{one}" for one in EVENT_DATABASE)]
)
def test_what_a_lake_cannot_answer_is_501_with_a_reason(world, path) -> None:
    for name, value in (
        ("{chain}", "2"),
        ("{transaction}", "0x1"),
        ("{nonce}", "1"),
        ("{rest:path}", "x/y"),
    ):
        path = path.replace(name, value)
    assert world.get(path, 501)["detail"].startswith("not served: ")


@pytest.mark.parametrize("name", ["notionaltransferredtocumulative", "addressestransferredtocumulative"])
def test_the_event_database_s_cumulative_figures_are_not_served(world, name) -> None:
    path = f"/wormhole/edb/{name}"
    reason = "not served: sums that grow by the day; "
    assert world.get(path, 501)["detail"].startswith(reason)
    assert world.client.post(path, json={}).json()["detail"].startswith(reason)


@pytest.mark.parametrize(
    "name", ["computenotionaltransferredfrom", "computenotionaltvl", "computenotionaltvlcumulative"]
)
def test_the_event_database_s_upkeep_is_not_served(world, name) -> None:
    path = f"/wormhole/edb/{name}"
    assert world.get(path, 501)["detail"].startswith("not served: the event database's own upkeep")
    assert world.client.post(path, json={}).status_code == 501


def test_a_signed_vaa_at_once_is_that_of_the_route(published_world, monkeypatch) -> None:
    settings, rows = published_world
    with TestClient(create_app(settings)) as client:
        client.app.state.reader.copy_rows()  # type: ignore[attr-defined]
        paths = [
            f"/wormhole/v1/signed_vaa/{row['emitter_chain']}/{row['emitter_address']}/{row['sequence']}"
            for row in rows["message_publication"][::5]
        ]
        with monkeypatch.context() as patch:
            patch.setattr(LakeReader, "rows", lambda *_: pytest.fail("a query"))
            at_once = [client.get(path) for path in paths]
        monkeypatch.setattr(RowCopies, "find", lambda *_: None)
        for path, answer in zip(paths, at_once, strict=True):
            routed = client.get(path)
            assert answer.status_code == routed.status_code == 200, path
            assert (answer.content, answer.headers) == (routed.content, routed.headers), path
        key = {row["row_key"]: row for row in rows["quorum_state"]}[rows["message_publication"][0]["row_key"]]
        assert base64.b64decode(at_once[0].json()["vaaBytes"]) == key["signed_vaa"]
