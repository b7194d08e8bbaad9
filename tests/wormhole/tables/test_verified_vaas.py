"""Copies weighed, conflicts cancelled, bad signatures set apart: with guardians of the test's own."""

import datetime as dt
import json

import pyarrow as pa
import pytest

from permalake.wormhole.reference import load_reference
from permalake.wormhole.tables.copies import VAA_SCHEMA
from permalake.wormhole.tables.event_tables import CHAIN_MESSAGES, chain_messages, event_tables
from permalake.wormhole.tables.verified_vaas import verified
from permalake_simulate.wormhole.encode_vaa import encode_body, encode_vaa, sign_body
from support.guardians import BRIDGE, GUARDIAN_SETS, PAYLOAD, SECRETS, SET

DAY, ELSEWHERE = dt.date(2024, 3, 10), dt.date(2024, 3, 11)
NOON = 1710072000
HEADER = {
    "timestamp": NOON,
    "nonce": 0,
    "emitter_chain": 2,
    "emitter_address": BRIDGE,
    "consistency_level": 1,
}
SCHEMA = VAA_SCHEMA.append(pa.field("in_range", pa.bool_()))


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference")
    (folder / "guardian_sets.json").write_text(json.dumps(GUARDIAN_SETS))
    bridge = {"chain": 2, "emitter": BRIDGE.hex()}
    (folder / "bridges.json").write_text(json.dumps({"tokenbridge_emitters": [bridge]}))
    return folder


def vaa(sequence, signers=(0, 1, 2), payload=PAYLOAD, flip=False):
    body = encode_body(**HEADER, sequence=sequence, payload=payload)
    signatures = sign_body(body, {n: SECRETS[n] for n in signers})
    if flip:
        guardian, signature = signatures[0]
        signatures[0] = (guardian, bytes([signature[0] ^ 1]) + signature[1:])
    return encode_vaa(SET, signatures, body)


TX = "AB" * 32
CASES = {
    "plain": (vaa(1), TX, True),
    "few": (vaa(2), None, True),
    "many": (vaa(2, (0, 1, 2, 3)), None, True),
    "equal": (vaa(2, (1, 2, 3)), "0x" + TX, True),
    "here": (vaa(3), None, True),
    "elsewhere": (vaa(3, payload=b""), None, False),
    "forged": (vaa(4, flip=True), None, True),
    "true": (vaa(4), None, True),
    "thin": (vaa(4, (0, 1)), None, True),
    "no transfer": (vaa(5, payload=b"\x01cut"), "not hex", True),
    "cut": (vaa(6)[:100], None, True),
}


@pytest.fixture(scope="module")
def vaas(reference):
    rows = [
        {
            "message": "cut" if name == "cut" else f"message {body_of(raw)[42:50].hex()}",
            "raw": raw,
            "source": "files",
            "origin": name,
            "claimed_id": "2/aa/6" if name == "cut" else None,
            "tx_id": tx,
            "date": DAY if mine else ELSEWHERE,
            "in_range": mine,
        }
        for name, (raw, tx, mine) in CASES.items()
    ]
    rows.sort(key=lambda row: (row["message"], row["raw"]))
    return verified(pa.Table.from_pylist(rows, SCHEMA), load_reference(reference))


def body_of(raw):
    return raw[6 + 66 * raw[5] :]


@pytest.fixture(scope="module")
def tables(vaas):
    return {name: rows.to_pylist() for name, rows in event_tables(vaas)}


def test_one_copy_of_each_sound_message_is_published(vaas, tables) -> None:
    kept = vaas.vaas.filter(vaas.published)["origin"].to_pylist()
    rows = dict(zip(kept, tables["message_publication"], strict=True))
    assert set(rows) == {"plain", "many", "true", "no transfer"}
    assert rows["plain"]["initiating_tx_id"] == "0x" + "ab" * 32
    assert rows["many"]["initiating_tx_id"] == "0x" + "ab" * 32, "told by another copy of the same body"
    assert rows["no transfer"]["initiating_tx_id"] == "not hex"
    assert rows["plain"]["row_key"] == f"2:{BRIDGE.hex()}:0000000000000001"
    assert {row["signed_vaa"] for row in tables["quorum_state"]} == {
        CASES[name][0] for name in ("plain", "many", "true", "no transfer")
    }


def test_the_rest_is_quarantined_with_its_reason(vaas) -> None:
    rows = {row["origin"]: (row["reason"], row["raw"]) for row in vaas.refused.to_pylist()}
    assert rows == {
        "here": ("conflicting_digest", CASES["here"][0]),
        "forged": ("bad_signature", CASES["forged"][0]),
        "thin": ("no_quorum", CASES["thin"][0]),
        "cut": ("malformed", CASES["cut"][0]),
    }


def test_a_conflict_names_the_other_day(vaas) -> None:
    assert vaas.elsewhere.to_pylist() == [
        {"row_key": f"2:{BRIDGE.hex()}:0000000000000003", "cause": DAY, "date": ELSEWHERE}
    ]


def test_payload_rows_are_those_that_decode(tables) -> None:
    rows = tables["token_transfer_payload"]
    assert sorted(row["row_key"][-1] for row in rows) == ["1", "2", "4"]
    assert {(row["amount"], row["origin_chain"], row["target_chain"]) for row in rows} == {("5", 2, 4)}


def test_messages_are_verified_and_quarantined(vaas) -> None:
    counts = chain_messages(vaas)
    assert counts.schema == CHAIN_MESSAGES
    assert counts.to_pylist() == [{"date": DAY, "emitter_chain": 2, "messages": 8, "verified": 4}]
