"""Proofs of inclusion over the API: checked by TIP-4 itself, valid, and rejected after any changed bit."""

from __future__ import annotations

import copy
from hashlib import blake2b

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from permalake.api.app import create_app
from permalake.config.networks import NetworkSettings
from permalake.iota.rest.proofs import threshold_at
from support import synthetic_lake

STARDUST = ("/shimmer/api/poi/v1", "/api/poi/v1/shimmer")
CHRYSALIS = ("/iota/api/poi/v1", "/api/poi/v1/iota")
HORNET = "/iota/api/plugins/poi"


@pytest.fixture(scope="module")
def worlds():
    return {protocol: synthetic_lake.tables(protocol) for protocol in ("stardust", "chrysalis")}


def blake(data):
    return blake2b(data, digest_size=32).digest()


def hash_of(node):
    """TIP-4: what a proof's node hashes to."""
    if "h" in node:
        return bytes.fromhex(node["h"].removeprefix("0x"))
    if "value" in node:
        return blake(b"\0" + bytes.fromhex(node["value"].removeprefix("0x")))
    return blake(b"\1" + hash_of(node["l"]) + hash_of(node["r"])) if "r" in node else hash_of(node["l"])


def leaf_of(node):
    """The id in a proof."""
    if "value" in node:
        return node["value"].removeprefix("0x")
    return next(
        (found for side in node.values() if isinstance(side, dict) and (found := leaf_of(side))), None
    )


def some(world, state, skip=()):
    """Messages of a state, from the first, the middle and the last milestone that has any."""
    rows = [
        row for row in world["messages"] if row["inclusion_state"] == state and row["message_id"] not in skip
    ]
    return [rows[0], rows[len(rows) // 2], rows[-1]]


def is_valid(client, base, proof, kind=""):
    answer = client.post(f"{base}/{kind}validate", json=proof)
    assert answer.status_code == 200, answer.text
    return answer.json()["valid"]


@pytest.mark.parametrize("base", STARDUST)
def test_referenced_blocks(synthetic_api, worlds, base) -> None:
    """Included, conflicting and without transaction: the inclusion root covers them all."""
    for state in (0, 1, 2):
        for row in some(worlds["stardust"], state):
            proof = synthetic_api.get(f"{base}/create/0x{row['message_id']}").json()
            assert f"0x{hash_of(proof['proof']).hex()}" == proof["milestone"]["inclusionMerkleRoot"]
            assert proof["milestone"]["index"] == row["milestone_index"]
            assert leaf_of(proof["proof"]) == row["message_id"]
            assert is_valid(synthetic_api, base, proof)
            assert is_valid(synthetic_api, base, proof, "referenced-block/")
            for path in (f"/referenced-block/create/{row['message_id'].upper()}", f"/{row['message_id']}"):
                assert synthetic_api.get(base + path).json() == proof


def test_applied_blocks(synthetic_api, worlds) -> None:
    base = STARDUST[0]
    for row in some(worlds["stardust"], 1):
        proof = synthetic_api.get(f"{base}/applied-block/create/{row['message_id']}").json()
        assert f"0x{hash_of(proof['proof']).hex()}" == proof["milestone"]["appliedMerkleRoot"]
        assert is_valid(synthetic_api, base, proof, "applied-block/")
    for state in (0, 2):
        [row, *_] = some(worlds["stardust"], state)
        answer = synthetic_api.get(f"{base}/applied-block/create/{row['message_id']}")
        assert answer.status_code == 400


@pytest.mark.parametrize("base", CHRYSALIS)
def test_included_messages_of_chrysalis(synthetic_api, worlds, base) -> None:
    for row in some(worlds["chrysalis"], 1):
        proof = synthetic_api.get(f"{base}/{row['message_id']}").json()
        root = proof["milestone"]["payload"]["inclusionMerkleProof"]
        assert hash_of(proof["proof"]).hex() == root
        assert leaf_of(proof["proof"]) == row["message_id"]
        assert is_valid(synthetic_api, base, proof)


def test_other_messages_of_chrysalis_by_a_path(synthetic_api, worlds) -> None:
    world = worlds["chrysalis"]
    carriers = {row["message_id"] for row in world["milestones"]}
    parents = {(row["parent_id"], row["message_id"]) for row in world["parents"]}
    index = {row["message_id"]: row["milestone_index"] for row in world["messages"]}
    lengths = set()
    for row in (*some(world, 2, carriers), *some(world, 0)):
        proof = synthetic_api.get(f"{CHRYSALIS[1]}/{row['message_id']}").json()
        assert proof["milestone"]["payload"]["index"] == row["milestone_index"]
        assert synthetic_api.get(f"{HORNET}/create/{row['message_id']}").json() == proof
        below = row["message_id"]
        for step in proof["proof"]:
            assert below in step["parentMessageIds"]
            [below] = [one for parent, one in parents if parent == below and step_id(one, step, world)]
            assert index[below] == row["milestone_index"]
        assert below in proof["milestone"]["parentMessageIds"]
        lengths.add(len(proof["proof"]))
        assert is_valid(synthetic_api, CHRYSALIS[0], proof)
        assert is_valid(synthetic_api, HORNET, proof)
    assert max(lengths) > 0
    # Hornet proves included messages by a path too.
    [included, *_] = some(world, 1)
    proof = synthetic_api.get(f"{HORNET}/create/{included['message_id']}").json()
    assert is_valid(synthetic_api, HORNET, proof)


def step_id(message_id, step, world):
    """Whether a message has the parents of a step."""
    own = sorted(row["parent_id"] for row in world["parents"] if row["message_id"] == message_id)
    return own == sorted(set(step["parentMessageIds"]))


def test_a_milestones_message_is_proven_by_the_next_one(synthetic_api, worlds) -> None:
    milestones = sorted(worlds["chrysalis"]["milestones"], key=lambda row: row["milestone_index"])
    statuses = []
    for row in milestones:
        answer = synthetic_api.get(f"{CHRYSALIS[1]}/{row['message_id']}")
        statuses.append(answer.status_code)
        if answer.status_code == 200:
            proof = answer.json()
            assert proof["milestone"]["payload"]["index"] == row["milestone_index"] + 1
            assert is_valid(synthetic_api, CHRYSALIS[1], proof)
    assert 200 in statuses
    assert statuses[-1] == 404
    assert set(statuses) <= {200, 404}


def leaves(value, path=()):
    """Where a proof has text, numbers and truth values."""
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for name, inner in pairs:
            yield from leaves(inner, (*path, name))
    elif value is not None:
        yield path


def with_changed_bit(proof, path, bit):
    """The proof with one bit of a leaf changed."""
    proof = copy.deepcopy(proof)
    *outer, last = path
    holder = proof
    for name in outer:
        holder = holder[name]
    value = holder[last]
    if isinstance(value, bool):
        holder[last] = not value
    elif isinstance(value, int):
        holder[last] = value ^ 1 << bit % 16
    elif value.isdecimal() and len(value) < 32:
        holder[last] = str(int(value) ^ 1 << bit % 16)
    else:
        prefix, digits = ("0x", value[2:]) if value.startswith("0x") else ("", value)
        raw = bytearray.fromhex(digits)
        raw[bit // 8 % len(raw)] ^= 1 << bit % 8
        holder[last] = prefix + raw.hex()
    return proof


# A signature does not cover these of a milestone's message (TIP-6, TIP-8).
UNSIGNED = {("milestone", "networkId"), ("milestone", "nonce")}


@pytest.mark.parametrize("kind", ["referenced", "applied", "merkle", "path"])
def test_any_changed_bit_is_rejected(synthetic_api, worlds, kind) -> None:
    protocol, state = {"referenced": ("stardust", 1), "path": ("chrysalis", 0)}.get(kind, ("chrysalis", 1))
    base, create, check = CHRYSALIS[1], "", ""
    if kind == "applied":
        protocol = "stardust"
    if protocol == "stardust":
        base, create, check = STARDUST[0], f"{kind}-block/create/", f"{kind}-block/"
    row = some(worlds[protocol], state)[1]
    proof = synthetic_api.get(f"{base}/{create}{row['message_id']}".replace("//", "/")).json()
    assert is_valid(synthetic_api, base, proof, check)
    places = [path for path in leaves(proof) if path not in UNSIGNED]

    @settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
    @given(st.sampled_from(places), st.integers(0, 4095))
    def rejected(path, bit):
        answer = synthetic_api.post(f"{base}/{check}validate", json=with_changed_bit(proof, path, bit))
        # What is no proof any more is a wrong request.
        assert answer.status_code == 400 or answer.json() == {"valid": False}, (path, bit)

    rejected()


def test_a_proof_of_another_block_is_not_valid(synthetic_api, worlds) -> None:
    """Chronicle panics at a foreign proof of a single leaf."""
    first, second, _ = some(worlds["stardust"], 1)
    base = STARDUST[0]
    proof = synthetic_api.get(f"{base}/create/{first['message_id']}").json()
    other = synthetic_api.get(f"{base}/create/{second['message_id']}").json()
    assert not is_valid(synthetic_api, base, proof | {"proof": other["proof"]})
    assert not is_valid(synthetic_api, base, proof | {"block": other["block"]})
    single = {"l": {"value": f"0x{first['message_id']}"}}
    assert not is_valid(synthetic_api, base, proof | {"proof": single})
    # A proof under one root is none under the other, unless both cover the same blocks.
    [referenced, *_] = some(worlds["stardust"], 2)
    proof = synthetic_api.get(f"{base}/create/{referenced['message_id']}").json()
    assert not is_valid(synthetic_api, base, proof, "applied-block/")


@pytest.mark.parametrize("base", [STARDUST[0], CHRYSALIS[0], HORNET])
@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        "{}",
        "1",
        "{",
        '{"milestone": {}, "block": {}, "proof": {}}',
        '{"version": 1}',
        '{"a":' * 5000,
    ],
)
def test_what_is_no_proof_is_a_bad_request(synthetic_api, base, body) -> None:
    answer = synthetic_api.post(
        f"{base}/validate", content=body, headers={"content-type": "application/json"}
    )
    assert answer.status_code == 400
    assert "\n" not in answer.json()["detail"]


def test_unknown_ids(synthetic_api) -> None:
    for base in (*STARDUST, *CHRYSALIS):
        assert synthetic_api.get(f"{base}/create/{'0' * 64}").status_code == 404
        assert synthetic_api.get(f"{base}/create/{'0' * 63}").status_code == 400
        assert synthetic_api.get(f"{base}/create/{'0' * 64}?nosuch=1").status_code == 400


def test_a_key_without_an_end_counts_for_the_threshold() -> None:
    key = {"key": "07" * 32, "start": 2, "threshold": 3}
    for end, thresholds in ((0, [1, 3, 3]), (4, [1, 3, 1])):
        keys = [{**key, "end": end}]
        network = NetworkSettings(
            protocol="stardust", bech32_hrp="smr", path=".", coordinator_public_keys=keys
        )
        assert [threshold_at(network, index) for index in (1, 2, 5)] == thresholds


def test_without_coordinator_keys_nothing_can_be_validated(synthetic_api, synthetic_settings, worlds) -> None:
    [row, *_] = some(worlds["stardust"], 1)
    proof = synthetic_api.get(f"{STARDUST[0]}/{row['message_id']}").json()
    network = synthetic_settings.networks["shimmer"].model_copy(update={"coordinator_public_keys": ()})
    without = synthetic_settings.model_copy(update={"networks": {"shimmer": network}})
    with TestClient(create_app(without)) as client:
        answer = client.post(f"{STARDUST[0]}/validate", json=proof)
    assert answer.status_code == 501
    assert "coordinator_public_keys" in answer.json()["detail"]
