"""Core API v2 over the synthetic Stardust world: every object, in bytes and against the expected rows."""

from __future__ import annotations

from collections import defaultdict

import pytest

from permalake.iota.codec.from_json import pack_json_block, pack_json_output
from permalake.iota.codec.milestones import milestone_id
from support.served_lakes import consumed, expected

BASE = "/shimmer/api/core/v2"
RAW = {"Accept": "application/vnd.iota.serializer-v1"}
STATES = {0: "conflicting", 1: "included", 2: "noTransaction"}
KINDS = ("basic", "alias", "foundry", "nft")
LAST = 250007
FIRST = min(row["milestone_index"] for row in expected("stardust", "milestones"))


@pytest.fixture
def get(api):
    def ask(path, **headers):
        answer = api.get(f"{BASE}{path}", headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    return ask


def test_every_block_as_json_packs_to_its_bytes(api, get) -> None:
    for row in expected("stardust", "messages"):
        assert pack_json_block(get(f"/blocks/0x{row['message_id']}")).hex() == row["message"]
        answer = api.get(f"{BASE}/blocks/{row['message_id']}", headers=RAW)
        assert (answer.content.hex(), answer.headers["content-type"]) == (row["message"], RAW["Accept"])


def test_every_blocks_metadata(get) -> None:
    milestones = {row["message_id"]: row["milestone_index"] for row in expected("stardust", "milestones")}
    for row in expected("stardust", "messages")[::2]:
        found = get(f"/blocks/{row['message_id']}/metadata")
        assert found["blockId"] == f"0x{row['message_id']}"
        assert found["referencedByMilestoneIndex"] == row["milestone_index"]
        assert found["whiteFlagIndex"] == row["white_flag_index"]
        assert found["ledgerInclusionState"] == STATES[row["inclusion_state"]]
        wanted = row["conflict_reason"] if row["inclusion_state"] == 0 else None
        assert found.get("conflictReason") == wanted
        assert found.get("milestoneIndex") == milestones.get(row["message_id"])


def test_every_output_with_its_metadata(api, get) -> None:
    uses = {row["output_id"]: row for row in consumed("stardust")}
    carriers = {
        row["transaction_id"]: row["message_id"]
        for row in expected("stardust", "transactions")
        if row["inclusion_state"] == 1
    }
    rows = [row for kind in KINDS for row in expected("stardust", f"{kind}_outputs")]
    # All but basic outputs, which are many.
    for row in rows[::6] + [row for row in rows if row["data"][:2] != "03"]:
        found = get(f"/outputs/0x{row['output_id']}")
        assert pack_json_output(found["output"]).hex() == row["data"]
        assert api.get(f"{BASE}/outputs/{row['output_id']}", headers=RAW).content.hex() == row["data"]
        metadata = found["metadata"]
        assert metadata == get(f"/outputs/{row['output_id']}/metadata")
        assert metadata["blockId"] == f"0x{carriers[row['output_id'][:64]]}"
        assert metadata["milestoneIndexBooked"] == row["milestone_index"]
        assert metadata["milestoneTimestampBooked"] == row["ms_timestamp"]
        assert metadata["ledgerIndex"] == LAST
        use = uses.get(row["output_id"])
        assert metadata["isSpent"] == (use is not None)
        assert metadata.get("milestoneIndexSpent") == (use and use["milestone_index"])
        assert metadata.get("milestoneTimestampSpent") == (use and use["ms_timestamp"])
        assert metadata.get("transactionIdSpent") == (use and f"0x{use['transaction_id']}")


def test_the_outputs_of_a_conflicting_transaction_are_not_found(api) -> None:
    rows = expected("stardust", "transactions")
    included = {row["transaction_id"] for row in rows if row["inclusion_state"] == 1}
    conflicting = {row["transaction_id"] for row in rows} - included
    assert conflicting
    for transaction_id in conflicting:
        assert api.get(f"{BASE}/outputs/{transaction_id}0000").status_code == 404
        assert api.get(f"{BASE}/transactions/{transaction_id}/included-block").status_code == 404


def test_the_included_block_of_a_reattached_transaction_is_the_one_that_counted(get) -> None:
    carriers = defaultdict(set)
    for row in expected("stardust", "transactions"):
        carriers[row["transaction_id"]].add((row["message_id"], row["inclusion_state"]))
    reattached = {one: found for one, found in carriers.items() if len(found) > 1}
    assert reattached
    for transaction_id, found in carriers.items():
        for message_id, state in found:
            assert get(f"/blocks/{message_id}/metadata")["ledgerInclusionState"] == STATES[state]
            if state == 1:
                metadata = get(f"/transactions/{transaction_id}/included-block/metadata")
                assert metadata["blockId"] == f"0x{message_id}"


def test_milestones_by_index_and_id(api, get) -> None:
    for row in expected("stardust", "milestones"):
        index, payload = row["milestone_index"], bytes.fromhex(row["payload"])
        by_index = get(f"/milestones/by-index/{index}")
        assert by_index == get(f"/milestones/0x{milestone_id(payload).upper()}")
        assert (by_index["index"], by_index["timestamp"]) == (index, row["timestamp"])
        assert api.get(f"{BASE}/milestones/by-index/{index}", headers=RAW).content == payload
        assert api.get(f"{BASE}/milestones/{milestone_id(payload)}", headers=RAW).content == payload


def test_the_utxo_changes_of_all_milestones_are_the_expected_ledger(get) -> None:
    created, used = set(), set()
    for row in expected("stardust", "milestones"):
        changes = get(f"/milestones/by-index/{row['milestone_index']}/utxo-changes")
        identity = milestone_id(bytes.fromhex(row["payload"]))
        assert changes == get(f"/milestones/{identity}/utxo-changes")
        created |= set(changes["createdOutputs"])
        used |= set(changes["consumedOutputs"])
    rows = [row for kind in KINDS for row in expected("stardust", f"{kind}_outputs")]
    assert created == {f"0x{row['output_id']}" for row in rows}
    assert used == {f"0x{row['output_id']}" for row in consumed("stardust")}


def test_utxo_changes_come_in_white_flag_order(get) -> None:
    order = {row["message_id"]: row["white_flag_index"] for row in expected("stardust", "messages")}
    carriers = {
        row["transaction_id"]: order[row["message_id"]]
        for row in expected("stardust", "transactions")
        if row["inclusion_state"] == 1
    }
    for row in expected("stardust", "milestones"):
        created = get(f"/milestones/by-index/{row['milestone_index']}/utxo-changes")["createdOutputs"]
        places = [(carriers[one[2:66]], int.from_bytes(bytes.fromhex(one[66:]), "little")) for one in created]
        assert places == sorted(places)


def test_info_is_whole(get) -> None:
    info = get("/info")
    last = max(expected("stardust", "milestones"), key=lambda row: row["milestone_index"])
    latest = {
        "index": LAST,
        "timestamp": last["timestamp"],
        "milestoneId": f"0x{milestone_id(bytes.fromhex(last['payload']))}",
    }
    assert info["status"] == {
        "isHealthy": True,
        "latestMilestone": latest,
        "confirmedMilestone": latest,
        "pruningIndex": FIRST - 1,
    }
    assert info["protocol"] == {
        "version": 2,
        "networkName": "shimmer",
        "bech32Hrp": "smr",
        "minPowScore": 1500,
        "belowMaxDepth": 15,
        "rentStructure": {"vByteCost": 100, "vByteFactorData": 1, "vByteFactorKey": 10},
        "tokenSupply": "1813620509061365",
    }
    assert (info["features"], info["pendingProtocolParameters"]) == ([], [])


def test_a_network_without_receipts_has_none_and_no_treasury(get) -> None:
    assert get("/receipts") == get("/receipts/5") == {"receipts": []}
    assert get("/treasury") == {"milestoneId": f"0x{'0' * 64}", "amount": "0"}


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/blocks/nothex", 400),
        ("/blocks/0x00", 400),
        (f"/blocks/{'00' * 32}", 404),
        (f"/outputs/{'00' * 32}", 400),
        (f"/outputs/{'00' * 34}", 404),
        (f"/transactions/{'00' * 32}/included-block/metadata", 404),
        ("/milestones/by-index/-1", 400),
        ("/milestones/by-index/4294967296", 400),
        ("/milestones/by-index/4294967295/utxo-changes", 404),
        (f"/milestones/{'00' * 32}", 404),
        ("/receipts/x", 400),
        ("/info?x=1", 400),
    ],
)
def test_wrong_and_unknown_ids(api, path, status) -> None:
    answer = api.get(f"{BASE}{path}")
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["error"] == {"code": str(status), "message": answer.json()["detail"]}


def test_a_block_may_be_kept_for_ever_and_a_ledger_state_not(api) -> None:
    message_id = expected("stardust", "messages")[0]["message_id"]
    block = api.get(f"{BASE}/blocks/{message_id}")
    raw = api.get(f"{BASE}/blocks/{message_id}", headers=RAW)
    assert "immutable" in block.headers["cache-control"]
    assert "Accept" in block.headers["vary"].split(", ")
    assert block.headers["etag"] != raw.headers["etag"]
    again = api.get(f"{BASE}/blocks/{message_id}", headers={"If-None-Match": block.headers["etag"]})
    assert again.status_code == 304
    assert api.get(f"{BASE}/treasury").headers["cache-control"] == "no-cache"


def test_the_contracts_prefix_answers_the_same(api, get) -> None:
    message_id = expected("stardust", "messages")[3]["message_id"]
    for path in ("/info", f"/blocks/{message_id}", f"/blocks/{message_id}/metadata"):
        assert api.get(f"/api/permanode/v1/shimmer{path}").json() == get(path)
