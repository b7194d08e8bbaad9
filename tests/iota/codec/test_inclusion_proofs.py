"""Proofs of inclusion: created, validated by a second implementation, and rejected after any change."""

from __future__ import annotations

import copy
import json
import random
from dataclasses import replace
from hashlib import blake2b
from itertools import pairwise
from types import SimpleNamespace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from permalake.iota.codec.encode import (
    MilestoneDraft,
    TaggedData,
    pack_block,
    pack_milestone,
    pack_milestone_essence,
    pack_tagged_data,
)
from permalake.iota.codec.faults import MalformedJsonError
from permalake.iota.codec.inclusion_proof import (
    TrustedKeys,
    is_valid_merkle_proof,
    is_valid_path_proof,
    merkle_inclusion_proof,
    path_proof,
    path_to_message,
)
from permalake.iota.codec.merkle_proof import MAX_DEPTH, merkle_proof_json, proven_leaf
from permalake.iota.codec.milestones import decode_milestone
from support import iota_objects
from support.iota_json import as_nodes_write

SIGNERS = sorted(
    (Ed25519PrivateKey.from_private_bytes(bytes([at]) * 32) for at in (1, 2, 3)),
    key=lambda key: key.public_key().public_bytes_raw(),
)
PUBLIC = [key.public_key().public_bytes_raw() for key in SIGNERS]
TRUSTED = TrustedKeys([SimpleNamespace(key=key.hex(), start=0, end=None) for key in PUBLIC], 2)
ZERO = "0x" + "00" * 32
NETWORK = {"chrysalis": 7, "stardust": 0}
MERKLE = [("stardust", "inclusion"), ("stardust", "applied"), ("chrysalis", "applied")]


def blake(data):
    return blake2b(data, digest_size=32).digest()


def root_of(ids):
    """TIP-4, straight from its definition."""
    if len(ids) < 2:
        return blake(b"\0" + ids[0]) if ids else blake(b"")
    half = 1
    while 2 * half < len(ids):
        half *= 2
    return blake(b"\1" + root_of(ids[:half]) + root_of(ids[half:]))


def hash_of(node):
    """iota.go's hash of a proof."""
    if "h" in node:
        return bytes.fromhex(node["h"].removeprefix("0x"))
    if "value" in node:
        return blake(b"\0" + bytes.fromhex(node["value"].removeprefix("0x")))
    return blake(b"\1" + hash_of(node["l"]) + hash_of(node["r"])) if "r" in node else hash_of(node["l"])


def block_of(number, protocol, parents=(bytes(32),)):
    payload = pack_tagged_data(TaggedData(b"proof", number.to_bytes(4, "big")), protocol)
    return pack_block(
        sorted(parents), payload, protocol, nonce=number, network_id=7 if protocol == "chrysalis" else 0
    )


def milestone_of(protocol, ids, parents, signers=SIGNERS):
    keys = tuple(key.public_key().public_bytes_raw() for key in signers)
    draft = MilestoneDraft(
        9, 1_664_385_901, tuple(sorted(parents)), root_of(ids), inclusion_root=root_of(ids)
    )
    if protocol == "chrysalis":
        draft = replace(draft, public_keys=keys)
    essence = pack_milestone_essence(draft, protocol)
    signed = [(key, signer.sign(blake(essence))) for key, signer in zip(keys, signers, strict=True)]
    payload = pack_milestone(essence, signed, protocol)
    if protocol == "stardust":
        return payload
    return pack_block(draft.parents, payload, protocol, nonce=3, network_id=7)


def proof_of(protocol, root, count, at, signers=SIGNERS):
    blocks = [block_of(number, protocol) for number in range(count)]
    ids = [blake(block) for block in blocks]
    milestone = milestone_of(protocol, ids, ids[:2], signers)
    return merkle_inclusion_proof(milestone, blocks[at], ids, root, protocol)


@pytest.mark.parametrize(("protocol", "root"), MERKLE)
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 9, 33])
def test_merkle_proofs_hold_for_every_position(protocol, root, count) -> None:
    for at in range(count):
        proof = json.loads(json.dumps(proof_of(protocol, root, count, at)))
        assert is_valid_merkle_proof(proof, root, protocol, TRUSTED)
        ids = [blake(block_of(number, protocol)) for number in range(count)]
        assert hash_of(proof["proof"]) == root_of(ids)


def changed(value, chance):
    """The value with one bit changed."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value ^ 1 << chance.randrange(8)
    if value.isdecimal() and len(value) < 32:
        return str(int(value) ^ 1 << chance.randrange(8))
    prefix = "0x" if value.startswith("0x") else ""
    raw = bytearray.fromhex(value.removeprefix("0x"))
    raw[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
    return prefix + raw.hex()


def leaves(body, path=()):
    items = body.items() if isinstance(body, dict) else enumerate(body) if isinstance(body, list) else ()
    if isinstance(body, str | int) and body != "":
        yield path
    for key, value in items:
        yield from leaves(value, (*path, key))


def with_change(body, path, chance):
    copied = copy.deepcopy(body)
    holder = copied
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = changed(holder[path[-1]], chance)
    return copied


def rejected(is_valid, *arguments) -> bool | None:
    try:
        return not is_valid(*arguments)
    except MalformedJsonError:
        return True


@pytest.mark.parametrize(("protocol", "root"), MERKLE)
def test_a_merkle_proof_with_any_changed_bit_is_rejected(protocol, root) -> None:
    chance = random.Random(1)
    unsigned = {("milestone", "networkId"), ("milestone", "nonce")}
    for count, at in ((1, 0), (2, 1), (7, 3), (40, 38)):
        proof = proof_of(protocol, root, count, at)
        for path in leaves(proof):
            for _ in range(4 if path not in unsigned else 0):
                wrong = with_change(proof, path, chance)
                assert rejected(lambda wrong=wrong: is_valid_merkle_proof(wrong, root, protocol, TRUSTED)), (
                    path
                )


@given(st.integers(2, 70), st.data())
@settings(max_examples=40)
def test_proofs_of_other_ids_and_trees_are_rejected(count, data) -> None:
    at, other = data.draw(st.integers(0, count - 1)), data.draw(st.integers(0, count - 1))
    proof = proof_of("stardust", "inclusion", count, at)
    moved = proof | {"proof": proof_of("stardust", "inclusion", count, other)["proof"]}
    assert is_valid_merkle_proof(moved, "inclusion", "stardust", TRUSTED) is (at == other)
    longer = proof | {"proof": proof_of("stardust", "inclusion", count + 1, at)["proof"]}
    assert not is_valid_merkle_proof(longer, "inclusion", "stardust", TRUSTED)
    single = {"l": {"value": f"0x{blake(block_of(at, 'stardust')).hex()}"}}
    assert not is_valid_merkle_proof(proof | {"proof": single}, "inclusion", "stardust", TRUSTED)


def test_signatures_count_by_key_range_and_threshold() -> None:
    def valid(proof, keys, threshold):
        return is_valid_merkle_proof(proof, "applied", "stardust", TrustedKeys(keys, threshold))

    proof, alone = proof_of("stardust", "applied", 3, 1), proof_of("stardust", "applied", 3, 1, SIGNERS[:1])
    assert valid(proof, TRUSTED.keys, 3)
    assert not valid(proof, TRUSTED.keys, 4)
    assert valid(alone, TRUSTED.keys, 1)
    assert not valid(alone, TRUSTED.keys, 2)
    assert not valid(proof, TRUSTED.keys[:2], 2), "a signer that is not among the keys"
    ended = [SimpleNamespace(key=key.hex(), start=0, end=8) for key in PUBLIC]
    assert not valid(proof, ended, 1)
    for keys, threshold in (([], 1), (TRUSTED.keys, 0)):
        with pytest.raises(ValueError, match="needs coordinator keys"):
            TrustedKeys(keys, threshold)


def test_real_blocks_are_proven_by_their_milestone() -> None:
    payloads = {decode_milestone(raw, "stardust").index: raw for raw in iota_objects.milestones("stardust")}
    rows = iota_objects.rows("iota/shimmer/blocks.jsonl")
    for index in (17339, 17340):
        cone = [row for row in rows if row["milestone"] == index]
        cone.sort(key=lambda row: row["metadata"]["whiteFlagIndex"])
        ids = [bytes.fromhex(row["metadata"]["blockId"][2:]) for row in cone]
        states = [row["metadata"]["ledgerInclusionState"] for row in cone]
        included = [at for at, state in enumerate(states) if state == "included"]
        keys = [
            SimpleNamespace(key=key.hex(), start=0, end=None)
            for key, _ in decode_milestone(payloads[index], "stardust").signatures
        ]
        trusted = TrustedKeys(keys, len(keys))
        for at, row in enumerate(cone):
            block = bytes.fromhex(row["raw"])
            proof = merkle_inclusion_proof(payloads[index], block, ids, "inclusion", "stardust")
            assert is_valid_merkle_proof(proof, "inclusion", "stardust", trusted)
            if at in included:
                proof = merkle_inclusion_proof(
                    payloads[index], block, [ids[one] for one in included], "applied", "stardust"
                )
                assert is_valid_merkle_proof(proof, "applied", "stardust", trusted)
                assert not is_valid_merkle_proof(proof, "inclusion", "stardust", trusted)


def test_what_other_software_writes_is_the_same_proof() -> None:
    proof = proof_of("stardust", "inclusion", 5, 2)
    spelled = copy.deepcopy(proof)
    spelled["milestone"] |= {"metadata": "0x", "options": []}
    assert as_nodes_write(spelled) == proof
    assert is_valid_merkle_proof(spelled, "inclusion", "stardust", TRUSTED)


def test_proofs_that_cannot_be_made() -> None:
    blocks = [block_of(number, "stardust") for number in range(3)]
    ids = [blake(block) for block in blocks]
    milestone = milestone_of("stardust", ids, ids[:1])
    with pytest.raises(ValueError, match="do not have the inclusion root"):
        merkle_inclusion_proof(milestone, blocks[0], ids[:2], "inclusion", "stardust")
    with pytest.raises(ValueError, match="not in list"):
        merkle_inclusion_proof(milestone, block_of(9, "stardust"), ids, "inclusion", "stardust")


@pytest.mark.parametrize(
    "proof",
    [
        None,
        [],
        {},
        {"l": {}},
        {"l": {"h": ZERO}},
        {"l": {"h": ZERO}, "r": {"h": ZERO}},
        {"l": {"value": "0x00"}},
        {"l": {"value": ZERO[2:]}},
        {"l": {"value": "0x" + "AA" * 32}},
        {"l": {"value": 7}},
        {"r": {"value": ZERO}},
        {"l": {"value": ZERO}, "r": {"h": ZERO, "value": ZERO}},
    ],
)
def test_merkle_proofs_of_another_shape_are_malformed(proof) -> None:
    with pytest.raises(MalformedJsonError, match="Merkle proof in JSON is malformed"):
        proven_leaf(proof, "0x")


def test_merkle_proofs_end_at_the_deepest_tree() -> None:
    sibling, node = {"h": "0x" + "11" * 32}, {"value": "0x" + "22" * 32}
    for _ in range(MAX_DEPTH):
        node = {"l": node, "r": sibling}
    assert proven_leaf(node, "0x")[1] == hash_of(node)
    for _ in range(100_000):
        node = {"l": node, "r": sibling}
    with pytest.raises(MalformedJsonError, match="deeper than 64"):
        proven_leaf(node, "0x")


@given(st.lists(st.binary(min_size=32, max_size=32), min_size=1, max_size=70, unique=True), st.data())
@settings(max_examples=40)
def test_the_json_of_a_path_is_that_of_iota_go(ids, data) -> None:
    def expected(ids, at):
        """iota.go's computeProof, from its definition."""
        if len(ids) == 1:
            return {"value": ids[0].hex()}
        half = 1
        while 2 * half < len(ids):
            half *= 2
        if at < half:
            return {"l": expected(ids[:half], at), "r": {"h": root_of(ids[half:]).hex()}}
        return {"l": {"h": root_of(ids[:half]).hex()}, "r": expected(ids[half:], at - half)}

    at = data.draw(st.integers(0, len(ids) - 1))
    found = merkle_proof_json(ids, at, "")
    assert found == (expected(ids, at) if len(ids) > 1 else {"l": {"value": ids[0].hex()}})
    assert proven_leaf(found, "") == (ids[at], root_of(ids))


def messages(count, seed):
    """Messages that approve up to four earlier ones, by id, and the raw milestone message above them."""
    chance, found = random.Random(seed), {}
    for number in range(count):
        earlier = list(found)
        parents = set(chance.sample(earlier, min(len(earlier), chance.randint(1, 4)))) or {bytes(32)}
        raw = block_of(number, "chrysalis", parents)
        found[blake(raw)] = (raw, sorted(parents))
    return found, milestone_of("chrysalis", [], list(found)[-2:])


def referenced(top, parents):
    """The messages in the cone of the milestone."""
    reached, todo = set(), list(top)
    while todo:
        if (message := todo.pop()) not in reached and message in parents:
            reached.add(message)
            todo.extend(parents[message])
    return reached


def test_path_proofs_hold_for_every_message_that_is_referenced() -> None:
    found, milestone = messages(60, 5)
    parents = {message: above for message, (_, above) in found.items()}
    top, lengths = list(found)[-2:], set()
    reached = referenced(top, parents)
    for message in found:
        if message not in reached:
            with pytest.raises(ValueError, match="does not reference message"):
                path_to_message(message, top, parents)
            continue
        path = path_to_message(message, top, parents)
        proof = path_proof(milestone, found[message][0], [found[step][0] for step in path])
        assert is_valid_path_proof(json.loads(json.dumps(proof)), TRUSTED)
        chain = [message, *path]
        assert all(below in parents[above] for below, above in pairwise(chain))
        assert chain[-1] in top
        lengths.add(len(path))
    assert lengths > {0, 1, 2}


def test_a_path_proof_with_any_changed_bit_is_rejected() -> None:
    found, milestone = messages(60, 5)
    parents, chance = {message: above for message, (_, above) in found.items()}, random.Random(2)
    top = list(found)[-2:]
    paths = {message: path_to_message(message, top, parents) for message in referenced(top, parents)}
    longest = max(paths, key=lambda message: len(paths[message]))
    assert len(paths[longest]) > 2
    for message in (longest, top[1]):
        path = paths[message]
        proof = path_proof(milestone, found[message][0], [found[step][0] for step in path])
        assert is_valid_path_proof(proof, TRUSTED)
        for place in leaves(proof):
            for _ in range(4 if place not in {("milestone", "networkId"), ("milestone", "nonce")} else 0):
                wrong = with_change(proof, place, chance)
                assert rejected(is_valid_path_proof, wrong, TRUSTED), place
        for wrong in ({"proof": proof["proof"][1:]}, {"proof": proof["proof"][:-1]}, {"version": 2}):
            if path or "version" in wrong:
                assert not is_valid_path_proof(proof | wrong, TRUSTED)


@pytest.mark.parametrize(
    "body", [None, [], {}, {"milestone": {}}, {"version": 1, "milestone": 1, "message": 2, "proof": 3}]
)
def test_proofs_of_another_shape_are_malformed(body) -> None:
    with pytest.raises(MalformedJsonError):
        is_valid_path_proof(body, TRUSTED)
    for protocol, root in MERKLE:
        with pytest.raises(MalformedJsonError):
            is_valid_merkle_proof(body, root, protocol, TRUSTED)
