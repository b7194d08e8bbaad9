"""Ten thousand seeded mutations for every reader: each is read or refused, none raises another error."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from permalake.iota.codec.bech32 import decode_address, encode_addresses
from permalake.iota.codec.blocks import decode_blocks
from permalake.iota.codec.chronicle_json import pack_messages, pack_milestone_text, pack_transactions
from permalake.iota.codec.decode_outputs import decode_outputs
from permalake.iota.codec.faults import DecodeError, Fault, MalformedJsonError
from permalake.iota.codec.from_json import pack_json_block, pack_json_milestone, pack_json_output
from permalake.iota.codec.inclusion_proof import TrustedKeys, is_valid_merkle_proof
from permalake.iota.codec.merkle_proof import merkle_proof_json
from permalake.iota.codec.milestones import decode_milestone
from permalake.iota.codec.to_json import block_json, milestone_payload_json, output_json
from support import iota_objects, places
from support.iota_strategies import PROTOCOLS

MUTATIONS = 10_000
PREFIX = {"chrysalis": "", "stardust": "0x"}
HOSTILE_BYTES = (b"", b"\0", b"\xff", b"\xff\xff", b"\xff" * 4, b"\xff" * 8, b"\x80", bytes(32), b"\1" * 3)
HOSTILE_VALUES = (
    None, True, -1, 0, 255, 256, 2**32, 2**63, 2**64, 10**40, 10**12, 1.5, 1e308, float("inf"), float("nan"),
    "", "0", "0x", "0x0", "zz", "-1", "1e9", "0x" + "ff" * 40, "9" * 5000, "\ud800", "Ä\n",
    [], {}, [[]], [None], [-1, 256], [10**12], {"type": 99}, {"type": [], "data": {}}, [0] * 300,
)  # fmt: skip
HOSTILE_TEXTS = ("", "zz", "0x", "Ä", "00 ")
NUMBERS = pa.list_(pa.int16())
AMOUNT = pa.decimal128(20, 0)
CHRONICLE = pa.schema(
    {
        "network_id": AMOUNT,
        "nonce": AMOUNT,
        "parents": pa.list_(pa.string()),
        "inputs": pa.list_(pa.string()),
        "outputs": pa.list_(pa.struct({"kind": pa.string(), "address": pa.string(), "amount": AMOUNT})),
        "index": NUMBERS,
        "data": NUMBERS,
        "unlocks": pa.list_(
            pa.struct({"reference": pa.int32(), "public_key": NUMBERS, "signature": NUMBERS})
        ),
    }
)
protocols = pytest.mark.parametrize("protocol", PROTOCOLS)


def mutated(chance, raw):
    """The bytes with one to three places cut, replaced, repeated or overwritten."""
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(raw) + 1)
        way = chance.randrange(4)
        if way == 0:
            raw = raw[:at]
        elif way == 1:
            raw = raw[:at] + bytes([chance.randrange(256)]) + raw[at + 1 :]
        elif way == 2:
            raw = raw[:at] + raw[chance.randrange(len(raw) + 1) :]
        else:
            new = chance.choice(HOSTILE_BYTES)
            raw = raw[:at] + new + raw[at + len(new) :]
    return raw


def mutations(originals, seed):
    chance = random.Random(seed)
    return [mutated(chance, chance.choice(originals)) for _ in range(MUTATIONS)]


def paths(body, path=()):
    """Where the values of a body are."""
    yield path
    items = body.items() if isinstance(body, dict) else enumerate(body) if isinstance(body, list) else ()
    for key, value in items:
        yield from paths(value, (*path, key))


def replaced(body, path, value):
    """A copy of the body with another value at a path."""
    if not path:
        return value
    copy = dict(body) if isinstance(body, dict) else list(body)
    copy[path[0]] = replaced(copy[path[0]], path[1:], value)
    return copy


def mutated_bodies(bodies, seed):
    chance = random.Random(seed)
    places = [(body, list(paths(body))) for body in bodies]
    for _ in range(MUTATIONS):
        body, found = chance.choice(places)
        yield replaced(body, chance.choice(found), chance.choice(HOSTILE_VALUES))


def refused(read, values, error):
    """How many values the reader refuses; any other error passes through."""
    texts = []
    for value in values:
        try:
            read(value)
        except error as refusal:
            texts.append(str(refusal))
    assert all("\n" not in text and len(text) < 300 for text in texts)
    return len(texts)


@protocols
def test_blocks(protocol) -> None:
    raw = mutations(iota_objects.blocks(protocol), 1)
    blocks = decode_blocks(pa.array(raw, pa.binary()), protocol)
    assert set(blocks.error.tolist()) <= set(Fault)
    assert len(set(blocks.error.tolist())) > 15, "the mutations reach many rules"
    # One by one, for a reader of single rows.
    some = list(range(0, MUTATIONS, 40))
    for at in some:
        assert refused(lambda one: block_json(one, protocol), [raw[at]], DecodeError) == bool(
            blocks.error[at]
        )


@protocols
def test_outputs(protocol) -> None:
    raw = mutations(iota_objects.outputs(protocol), 2)
    outputs = decode_outputs(pa.array(raw, pa.binary()), protocol)
    assert set(outputs.error.tolist()) <= set(Fault)
    assert 0 < np.count_nonzero(outputs.error) < MUTATIONS
    for at in range(0, MUTATIONS, 40):
        assert refused(lambda one: output_json(one, protocol), [raw[at]], DecodeError) == bool(
            outputs.error[at]
        )


@protocols
def test_milestones(protocol) -> None:
    raw = mutations(iota_objects.milestones(protocol), 3)
    assert 0 < refused(lambda one: decode_milestone(one, protocol), raw, DecodeError) < MUTATIONS


@protocols
def test_json_of_blocks(protocol) -> None:
    bodies = [block_json(raw, protocol) for raw in iota_objects.blocks(protocol)[::9]]
    count = refused(lambda one: pack_json_block(one, protocol), mutated_bodies(bodies, 4), MalformedJsonError)
    assert 0 < count < MUTATIONS


@protocols
def test_json_of_milestones(protocol) -> None:
    bodies = [milestone_payload_json(raw, protocol) for raw in iota_objects.milestones(protocol)]
    count = refused(
        lambda one: pack_json_milestone(one, protocol), mutated_bodies(bodies, 5), MalformedJsonError
    )
    assert 0 < count < MUTATIONS


@protocols
def test_json_of_outputs(protocol) -> None:
    bodies = [output_json(raw, protocol) for raw in iota_objects.outputs(protocol)[::3]]
    count = refused(pack_json_output, mutated_bodies(bodies, 6), MalformedJsonError)
    assert 0 < count < MUTATIONS


@protocols
def test_proofs(protocol) -> None:
    raw = next(
        raw for raw in iota_objects.blocks(protocol) if decode_blocks(pa.array([raw]), protocol).milestones
    )
    body = {
        "milestone": block_json(raw, protocol),
        "proof": merkle_proof_json([bytes(32)] * 5, 2, PREFIX[protocol]),
    }
    body["message" if protocol == "chrysalis" else "block"] = body["milestone"]
    if protocol == "stardust":
        body["milestone"] = body["milestone"]["payload"]
    trusted = TrustedKeys([SimpleNamespace(key="00" * 32, start=0, end=None)], 1)

    def read(one):
        assert not is_valid_merkle_proof(one, "applied", protocol, trusted)

    assert 0 < refused(read, mutated_bodies([body], 9), MalformedJsonError) < MUTATIONS


@pytest.fixture(scope="module")
def chronicle_milestones():
    lines = (places.DATA / "synthetic/chronicle/logs/249993to249998.log").read_text().splitlines()
    return [json.loads(line)["milestone"] for line in lines]


def test_chronicle_milestones(chronicle_milestones) -> None:
    assert refused(pack_milestone_text, map(json.dumps, chronicle_milestones), ()) == 0
    texts = map(json.dumps, mutated_bodies(chronicle_milestones, 7))
    assert 0 < refused(pack_milestone_text, texts, MalformedJsonError) < MUTATIONS


def chronicle_row(chance):
    """A transaction in Chronicle's dialect, as Spark types it, with hostile values and nulls anywhere."""

    def maybe(make):
        return None if chance.random() < 0.05 else make()

    def hexed(width):
        good = chance.randbytes(width).hex()
        return maybe(
            lambda: good if chance.random() < 0.9 else chance.choice((*HOSTILE_TEXTS, good[1:], good[:8]))
        )

    def numbers(width):
        return maybe(
            lambda: [maybe(lambda: chance.randint(-1, 256)) for _ in range(chance.choice((0, 1, width)))]
        )

    def several(make):
        return maybe(lambda: [maybe(make) for _ in range(chance.randrange(4))])

    return {
        "network_id": maybe(lambda: Decimal(chance.choice((0, 2**64 - 1, 2**64, -1, 10**20 - 1)))),
        "nonce": maybe(lambda: Decimal(chance.randrange(2**64))),
        "parents": several(lambda: hexed(32)),
        "inputs": several(lambda: hexed(34)),
        "outputs": several(
            lambda: {
                "kind": maybe(lambda: chance.choice(("SignatureLockedSingle", "Treasury", ""))),
                "address": hexed(32),
                "amount": maybe(lambda: Decimal(chance.randrange(2**63))),
            }
        ),
        "index": numbers(8),
        "data": numbers(40),
        "unlocks": several(
            lambda: {
                "reference": maybe(lambda: chance.choice((0, 1, -1, 2**16, 2**31 - 1))),
                "public_key": numbers(32),
                "signature": numbers(64),
            }
        ),
    }


def test_chronicle_columns() -> None:
    chance = random.Random(10)
    rows = [chronicle_row(chance) for _ in range(MUTATIONS)]

    def packed(some):
        batch = pa.RecordBatch.from_pylist(some, CHRONICLE)
        columns = {name: batch.column(name) for name in batch.schema.names}
        payload = pack_transactions(columns)
        return pack_messages(columns, payload).to_pylist()

    whole = packed(rows)
    assert 0 < whole.count(None) < MUTATIONS
    for at in range(0, MUTATIONS, 100):
        assert packed(rows[at : at + 1]) == whole[at : at + 1], "no row depends on its neighbours"


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "", "nul", "9" * 5000, '{"essence": 1}'])
def test_chronicle_text_that_is_no_milestone(text) -> None:
    with pytest.raises(MalformedJsonError, match=r"^milestone in JSON is malformed"):
        pack_milestone_text(text)


@pytest.mark.parametrize("field", ["merkle_proof", "public_keys"])
def test_chronicle_bytes_given_as_a_number_are_not_allocated(chronicle_milestones, field) -> None:
    body = dict(chronicle_milestones[0])
    body["essence"] = body["essence"] | {field: 10**15 if field == "merkle_proof" else [10**15]}
    with pytest.raises(MalformedJsonError, match="must be a list of numbers"):
        pack_milestone_text(json.dumps(body))


def test_addresses() -> None:
    kind = np.repeat(np.array([0, 8, 16], np.int16), 10)
    value = np.random.default_rng(8).integers(0, 256, (30, 32), np.uint8)
    texts = [text.encode() for text in encode_addresses("smr", kind, value).to_pylist()]
    mutants = (raw.decode("latin-1") for raw in mutations(texts, 8))
    accepted = 0
    for text in mutants:
        try:
            decode_address(text)
        except ValueError:
            continue
        accepted += 1
    assert accepted < MUTATIONS // 20
