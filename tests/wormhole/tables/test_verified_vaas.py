"""Copies weighed, conflicts cancelled, bad signatures set apart: with guardians of the test's own."""

import datetime as dt
import json

import pytest

from permalake.wormhole.codec.encode_vaa import encode_body, encode_vaa, sign_body
from permalake.wormhole.tables.messages_daily import messages_daily
from permalake.wormhole.tables.payload_tables import token_transfer_payload
from permalake.wormhole.tables.verified_vaas import judged, published, quarantine, quorum_state
from support.guardians import BRIDGE, GUARDIAN_SETS, PAYLOAD, SECRETS, SET

DAY = dt.date(2024, 3, 10)
NOON = 1710072000
HEADER = {
    "timestamp": NOON,
    "nonce": 0,
    "emitter_chain": 2,
    "emitter_address": BRIDGE,
    "consistency_level": 1,
}
SCHEMA = (
    "raw binary, source string, origin string, claimed_id string, fault string, tx_id string, "
    "date date, in_range boolean"
)


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
def vaas(spark, reference):
    rows = [
        (raw, "files", name, "2/aa/6" if name == "cut" else None, None, tx, DAY, mine)
        for name, (raw, tx, mine) in CASES.items()
    ]
    found = judged(spark.createDataFrame(rows, SCHEMA), reference).persist()
    yield found
    found.unpersist()


def test_one_copy_of_each_sound_message_is_published(vaas):
    rows = {row["origin"]: row for row in published(vaas).collect()}
    assert set(rows) == {"plain", "many", "true", "no transfer"}
    assert rows["plain"]["initiating_tx_id"] == "0x" + "ab" * 32
    assert rows["many"]["initiating_tx_id"] == "0x" + "ab" * 32, "told by another copy of the same body"
    assert rows["no transfer"]["initiating_tx_id"] == "not hex"
    assert rows["plain"]["row_key"] == f"2:{BRIDGE.hex()}:0000000000000001"
    assert {row["signed_vaa"] for row in quorum_state(vaas).collect()} == {
        CASES[name][0] for name in ("plain", "many", "true", "no transfer")
    }


def test_the_rest_is_quarantined_with_its_reason(vaas):
    rows = {row["origin"]: (row["reason"], row["raw"]) for row in quarantine(vaas).collect()}
    assert rows == {
        "here": ("conflicting_digest", CASES["here"][0]),
        "forged": ("bad_signature", CASES["forged"][0]),
        "thin": ("no_quorum", CASES["thin"][0]),
        "cut": ("malformed", CASES["cut"][0]),
    }


def test_payload_rows_are_those_that_decode(vaas):
    rows = token_transfer_payload(vaas).collect()
    assert sorted(row["row_key"][-1] for row in rows) == ["1", "2", "4"]
    assert {(row["amount"], row["origin_chain"], row["target_chain"]) for row in rows} == {("5", 2, 4)}


def test_messages_are_verified_and_quarantined(vaas):
    assert [tuple(row) for row in messages_daily(vaas).collect()] == [(DAY, 2, 8, 4, 4)]
