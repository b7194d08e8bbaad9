"""Pages of a corridor, an address and a guardian set: their figures are those of the world's tables."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import pyarrow as pa
import pytest
from fastapi.testclient import TestClient

from permalake.api.app import create_app
from permalake.wormhole.codec.vaa import decode_vaas
from permalake.wormhole.reference import load_reference
from permalake.wormhole.rest.identifiers import of_row_key
from support.vaa_data import SYNTHETIC

WIDE = {"start": "2000-01-01", "end": "2999-01-01"}


@pytest.fixture(scope="module")
def client(published_world):
    with TestClient(create_app(published_world[0]), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="module")
def tables(published_world):
    return published_world[1]


def get(client, path, status=200, form="json", **asked):
    days = {} if "/vaa/" in path else WIDE
    answer = client.get(path, params={**days, "format": form, **asked})
    assert answer.status_code == status, answer.text
    return answer.json() if form == "json" else answer.text


def values(tables):
    return {row["row_key"]: row["notional_usd"] for row in tables["token_transfer_details"]}


def test_a_corridor_counts_what_one_chain_sent_to_the_other(client, tables) -> None:
    pairs = Counter(
        (of_row_key(row["row_key"]).chain, row["target_chain"]) for row in tables["token_transfer_payload"]
    )
    (source, target), count = pairs.most_common(1)[0]
    found = get(client, f"/wormhole/corridor/{source}/{target}")
    assert found["of"] == count == sum(one["transfers"] for one in found["tokens"])
    known = values(tables)
    own = [
        known.get(row["row_key"])
        for row in tables["token_transfer_payload"]
        if (of_row_key(row["row_key"]).chain, row["target_chain"]) == (source, target)
    ]
    assert found["valued"] == sum(one is not None for one in own)
    assert Decimal(found["total_usd"] or 0) == sum(one for one in own if one is not None)
    assert all(one["id"].startswith(f"{source}/") for one in found["recent"])
    day = found["charts"][0]["days"][0]
    assert get(client, f"/wormhole/corridor/{source}/{target}", start=day, end=day)["of"] <= count
    get(client, "/wormhole/corridor/2/60000", 404)


def test_an_address_has_its_transfers_with_sides_and_values(client, tables) -> None:
    moved = {row["row_key"] for row in tables["token_transfer_payload"]}
    parties = [row for row in tables["chain_details"] if row["row_key"] in moved]
    sender = Counter(row["sender_address"] for row in parties if row["sender_address"]).most_common(1)[0][0]
    sent = {row["row_key"] for row in parties if row["sender_address"] == sender}
    received = {row["row_key"] for row in parties if row["receiver_address"] == sender} - sent
    found = get(client, f"/wormhole/address/{sender}")
    told = {one["side"]: one for one in found["sums"]}
    known = values(tables)
    for side, keys in (("sent", sent), ("received", received)):
        assert {one["message"] for one in found["moves"] if one["side"] == side} == {
            of_row_key(key).text for key in keys
        }
        own = [known[key] for key in keys if known.get(key) is not None]
        assert (told[side]["transfers"], told[side]["valued"]) == (len(keys), len(own))
        assert Decimal(told[side]["usd"] or 0) == sum(own)
        assert told[side]["usd"] is not None or not own, "unknown is not zero"
    assert sum(one["sent"] + one["received"] for one in found["tokens"]) == len(sent | received)
    assert f"/wormhole/address/{sender}" in get(
        client, "/wormhole/vaa/" + found["moves"][0]["message"], form="html"
    )
    details = {of_row_key(row["row_key"]).text: row for row in tables["token_transfer_details"]}
    marked = {one["message"] for one in found["moves"] if one["stand_in"]}
    assert marked == {key for key in (one["message"] for one in found["moves"]) if details[key]["stand_in"]}
    for one in found["moves"]:
        value = details[one["message"]]["stand_in_notional_usd"]
        assert one["stand_in_usd"] is None or Decimal(one["stand_in_usd"]) == value
    page = get(client, f"/wormhole/address/{sender}", form="html")
    assert page.count('<span class="soft">stand-in</span>') == len(marked)
    assert ("stands in" in page) == bool(marked)
    get(client, "/wormhole/address/0x" + "ab" * 20, 404)
    get(client, "/wormhole/address/no address", 400)


def test_the_page_of_an_address_reads_the_redemptions_of_its_transfers_alone(
    client, tables, monkeypatch
) -> None:
    told = {row["row_key"] for row in tables["redemptions"]}
    address = next(
        row["sender_address"]
        for row in tables["chain_details"]
        if row["sender_address"] and row["row_key"] in told
    )
    reader, answers = client.app.state.reader, {}
    read = reader.rows

    def noted(query):
        return answers.setdefault(query.sql, read(query))

    monkeypatch.setattr(reader, "rows", noted)
    moves = get(client, f"/wormhole/address/{address}")["moves"]
    [redeemed] = [rows for sql, rows in answers.items() if "FROM redemptions" in sql]
    asked = {one["message"] for one in moves if one["redeemed"] != "not asked"}
    assert {of_row_key(row["row_key"]).text for row in redeemed} == asked != set()


def test_the_search_for_an_address_leads_to_its_page(client, tables) -> None:
    receiver = next(row["receiver_address"] for row in tables["chain_details"] if row["receiver_address"])
    answer = client.get("/wormhole", params={"q": receiver}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/wormhole/address/{receiver}")


def test_a_guardian_set_has_its_members_and_what_they_signed(client, tables) -> None:
    sets = Counter(row["guardian_set_index"] for row in tables["message_publication"])
    index, count = sets.most_common(1)[0]
    found = get(client, f"/wormhole/guardian-set/{index}")
    members = load_reference(SYNTHETIC / "reference").guardian_sets[index]
    assert [one["address"] for one in found["guardians"]] == [f"0x{one.hex()}" for one in members]
    assert [one["name"] for one in found["guardians"]] == [f"g{at}" for at in range(len(members))]
    text = get(client, f"/wormhole/guardian-set/{index}", form="html")
    assert f'<td data-name="Name"><bdi>g{len(members) - 1}</bdi></td>' in text
    key = next(row["row_key"] for row in tables["quorum_state"])
    message = get(client, f"/wormhole/vaa/{of_row_key(key).text}")
    named = dict(zip((f"0x{one.hex()}" for one in members), range(len(members)), strict=True))
    assert {one["name"] for one in message["guardians"]} == {
        f"g{named[one['address']]}" for one in message["guardians"]
    }
    assert found["messages"] == count
    of_day = {
        row["row_key"]
        for row in tables["message_publication"]
        if (row["date"].isoformat(), row["guardian_set_index"]) == (found["sampled_day"], index)
    }
    raw = [
        bytes.fromhex(row["signed_vaa"]) if isinstance(row["signed_vaa"], str) else row["signed_vaa"]
        for row in tables["quorum_state"]
        if row["row_key"] in of_day
    ]
    signed = Counter(int(one) for one in decode_vaas(pa.array(raw, pa.binary())).guardian_index)
    assert found["sampled"] == len(raw) == len(of_day)
    assert [one["signed"] for one in found["guardians"]] == [signed[at] for at in range(len(members))]
    nothing = get(client, f"/wormhole/guardian-set/{index}", start="2000-01-01", end="2000-01-02")
    assert {one["signed"] for one in nothing["guardians"]} == {None}
    get(client, "/wormhole/guardian-set/999999", 404)
    get(client, "/wormhole/guardian-set/x", 400)
