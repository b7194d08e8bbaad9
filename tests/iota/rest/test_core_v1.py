"""Core API v1 over the synthetic Chrysalis world: every object, in bytes and against the expected rows."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from permalake.iota.codec.bech32 import decode_address
from permalake.iota.codec.from_json import pack_json_block
from permalake.iota.codec.milestones import decode_milestone
from support.served_lakes import conflicts, consumed, expected

BASE = "/chrysalis-mainnet/api/v1"
STATES = {0: "conflicting", 1: "included", 2: "noTransaction"}
LAST = 250007
FIRST = min(row["milestone_index"] for row in expected("chrysalis", "milestones"))


@pytest.fixture
def get(api):
    def ask(path, **query):
        answer = api.get(f"{BASE}{path}", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    return ask


def walk(get, path, name, size, **query):
    """All items of a list, page by page."""
    items, cursor = [], None
    while True:
        page = get(path, pageSize=size, **query, **({"cursor": cursor} if cursor else {}))
        assert page["count"] == len(page[name]) <= size == page["maxResults"]
        items += page[name]
        cursor = page.get("cursor")
        if cursor is None:
            return items


def test_every_message_as_json_packs_to_its_bytes(api, get) -> None:
    for row in expected("chrysalis", "messages"):
        packed = pack_json_block(get(f"/messages/{row['message_id']}"), "chrysalis")
        assert packed.hex() == row["message"]
        raw = api.get(f"{BASE}/messages/0x{row['message_id']}/raw")
        assert (raw.content.hex(), raw.headers["content-type"]) == (
            row["message"],
            "application/octet-stream",
        )


def test_every_messages_metadata(get) -> None:
    milestones = {row["message_id"]: row["milestone_index"] for row in expected("chrysalis", "milestones")}
    for row in expected("chrysalis", "messages"):
        found = get(f"/messages/{row['message_id']}/metadata")
        assert found["messageId"] == row["message_id"]
        assert found["referencedByMilestoneIndex"] == row["milestone_index"]
        assert found["ledgerInclusionState"] == STATES[row["inclusion_state"]]
        assert found.get("conflictReason") == (
            row["conflict_reason"] if row["inclusion_state"] == 0 else None
        )
        assert found.get("milestoneIndex") == milestones.get(row["message_id"])


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_children_come_whole_and_once_at_any_page_size(get, size) -> None:
    wanted = defaultdict(set)
    for row in expected("chrysalis", "parents"):
        wanted[row["parent_id"]].add(row["message_id"])
    most = sorted(wanted, key=lambda parent: -len(wanted[parent]))[:3]
    for parent in most:
        newest = walk(get, f"/messages/{parent}/children", "childrenMessageIds", size)
        assert len(newest) == len(wanted[parent])
        assert set(newest) == wanted[parent]
        oldest = walk(get, f"/messages/{parent}/children", "childrenMessageIds", size, sort="oldest")
        assert oldest == newest[::-1]


def test_an_unknown_message_has_no_children(get) -> None:
    assert get(f"/messages/{'00' * 32}/children")["count"] == 0


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_messages_by_index_come_whole_and_once(get, size) -> None:
    wanted = defaultdict(set)
    for row in expected("chrysalis", "tags"):
        wanted[row["tag"]].add(row["message_id"])
    for tag in wanted if size > 1 else sorted(wanted)[:5]:
        found = walk(get, "/messages", "messageIds", size, index=tag)
        assert len(found) == len(wanted[tag])
        assert set(found) == wanted[tag]


def test_messages_by_text_and_expanded(get) -> None:
    tag, text = next(
        (row["tag"], bytes.fromhex(row["tag"]).decode())
        for row in expected("chrysalis", "tags")
        if bytes.fromhex(row["tag"]).isascii() and bytes.fromhex(row["tag"]).decode().isprintable()
    )
    plain = get("/messages", index=text, utf8="true")
    assert plain["index"] == tag
    states = {row["message_id"]: row for row in expected("chrysalis", "messages")}
    for one in get("/messages", index=tag, expanded="true")["messageIds"]:
        row = states[one["id"]]
        assert one["inclusionState"] == STATES[row["inclusion_state"]]
        assert one["milestoneIndex"] == row["milestone_index"]


def test_chronicles_names_of_paging_are_taken(get) -> None:
    tag = expected("chrysalis", "tags")[0]["tag"]
    page = get("/messages", index=tag, page_size=1)
    assert page["maxResults"] == 1
    assert get("/messages", index=tag, state=page["cursor"]) == get(
        "/messages", index=tag, cursor=page["cursor"]
    )


def test_a_cursor_belongs_to_its_list(api, get) -> None:
    one, other = sorted({row["tag"] for row in expected("chrysalis", "tags")})[:2]
    tags = [row["tag"] for row in expected("chrysalis", "tags")]
    most = max(set(tags), key=tags.count)
    cursor = get("/messages", index=most, pageSize=1)["cursor"]
    for index in {one, other} - {most}:
        assert api.get(f"{BASE}/messages", params={"index": index, "cursor": cursor}).status_code == 400


def test_every_output(get) -> None:
    uses = {row["output_id"]: row for row in consumed("chrysalis")}
    carriers = {
        row["transaction_id"]: row["message_id"]
        for row in expected("chrysalis", "transactions")
        if row["inclusion_state"] == 1
    }
    milestones = {row["milestone_index"]: row["message_id"] for row in expected("chrysalis", "milestones")}
    for row in expected("chrysalis", "legacy_outputs")[::6]:
        found = get(f"/outputs/{row['output_id']}")
        transaction_id, index = (
            row["output_id"][:64],
            int.from_bytes(bytes.fromhex(row["output_id"][64:]), "little"),
        )
        assert found == get(f"/outputs/{transaction_id}/{index}")
        carrier = carriers.get(transaction_id) or milestones[row["milestone_index"]]
        assert (found["messageId"], found["outputIndex"]) == (carrier, index)
        assert found["output"]["amount"] == row["amount"]
        assert found["output"]["type"] == row["output_type"]
        assert found["output"]["address"]["address"] == decode_address(row["address"])[2].hex()
        use = uses.get(row["output_id"])
        assert found["isSpent"] == (use is not None)
        assert found.get("milestoneIndexSpent") == (use and use["milestone_index"])
        assert found.get("transactionIdSpent") == (use and use["transaction_id"])


def test_every_balance_is_the_sum_of_the_unspent_outputs(get) -> None:
    used = {row["output_id"] for row in consumed("chrysalis")}
    outputs = defaultdict(list)
    for row in expected("chrysalis", "legacy_outputs"):
        outputs[row["address"]].append(row)
    for address, rows in sorted(outputs.items())[::4]:
        unspent = [row for row in rows if row["output_id"] not in used]
        found = get(f"/addresses/{address}")
        value = decode_address(address)[2].hex()
        assert found == get(f"/addresses/ed25519/{value}")
        assert (found["address"], found["balance"]) == (value, sum(row["amount"] for row in unspent))
        dust = sum(row["output_type"] == 0 and row["amount"] < 1_000_000 for row in unspent)
        allowance = sum(row["amount"] for row in unspent if row["output_type"] == 1)
        assert found["dustAllowed"] == (min(allowance // 100_000, 100) > dust)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_outputs_of_an_address_come_whole_and_once(get, size) -> None:
    used = {row["output_id"] for row in consumed("chrysalis")}
    outputs = defaultdict(list)
    for row in expected("chrysalis", "legacy_outputs"):
        outputs[row["address"]].append(row)
    most = sorted(outputs, key=lambda address: -len(outputs[address]))[:4]
    for address in most:
        path, rows = f"/addresses/{address}/outputs", outputs[address]
        unspent = walk(get, path, "outputIds", size)
        assert sorted(unspent) == sorted(row["output_id"] for row in rows if row["output_id"] not in used)
        every = walk(get, path, "outputIds", size, **{"include-spent": "true"})
        assert sorted(every) == sorted(row["output_id"] for row in rows)
        dust = walk(get, path, "outputIds", size, type=1, **{"include-spent": "true"})
        assert sorted(dust) == sorted(row["output_id"] for row in rows if row["output_type"] == 1)


def test_an_address_never_used_has_nothing(get) -> None:
    found = get(f"/addresses/ed25519/{'07' * 32}")
    assert (found["balance"], found["dustAllowed"], found["ledgerIndex"]) == (0, False, LAST)
    assert get(f"/addresses/ed25519/{'07' * 32}/outputs")["outputIds"] == []
    assert get(f"/addresses/ed25519/{'07' * 32}/tx-history")["history"] == []


@pytest.mark.parametrize("size", [3, 1000])
def test_a_history_adds_up_to_the_balance_of_what_was_created(get, size) -> None:
    outputs = defaultdict(int)
    for row in expected("chrysalis", "legacy_outputs"):
        outputs[row["address"]] += row["amount"]
    for row in consumed("chrysalis"):
        if row["address"]:
            outputs[row["address"]] -= row["amount"]
    counts = defaultdict(lambda: [0, 0])
    for row in expected("chrysalis", "transactions"):
        if row["variant"] != "unlock":
            counts[row["message_id"]][row["variant"] == "output"] += 1
    transactions = {row["transaction_id"] for row in expected("chrysalis", "transactions")}
    created = expected("chrysalis", "legacy_outputs")
    migrations = [row for row in created if row["output_id"][:64] not in transactions]
    funds = Counter(row["milestone_index"] for row in migrations)
    migrants = {row["address"] for row in migrations}
    states = set()
    for address in sorted({*sorted(outputs)[:40], *sorted(migrants)[:3]}):
        history = walk(get, f"/addresses/{address}/tx-history", "history", size)
        moved = [
            one["addressBalanceChange"] for one in history if one["ledgerInclusionState"] != "conflicting"
        ]
        assert sum(moved) == outputs[address]
        places = [(entry["referencedByMilestoneIndex"], entry["messageId"]) for entry in history]
        assert places == sorted(set(places), reverse=True)
        for entry in history:
            states.add(entry["ledgerInclusionState"])
            if entry["ledgerInclusionState"] == "included":
                assert [entry["inputsCount"], entry["outputsCount"]] == counts[entry["messageId"]]
            if entry["ledgerInclusionState"] == "migrated":
                migrated = funds[entry["referencedByMilestoneIndex"]]
                assert [entry["inputsCount"], entry["outputsCount"]] == [1, migrated]
    assert states == {"included", "conflicting", "migrated"}


def conflicts_by_address():
    """(reason, change) by address and message: what conflicting transactions would have changed."""
    found = defaultdict(dict)
    for row in conflicts("chrysalis"):
        found[row["address"]][row["message_id"]] = [row["conflict_reason"], row["amount"]]
    known = {row["output_id"]: row for row in expected("chrysalis", "legacy_outputs")}
    for row in expected("chrysalis", "transactions"):
        if row["inclusion_state"] == 0 and row["variant"] == "input":
            output = known.get(row["data"][2:])
            told = found[output["address"]].get(row["message_id"]) if output else None
            if told:
                told[1] -= output["amount"]
    return found


def test_a_history_has_the_conflicting_transactions(get) -> None:
    seen = set()
    for address, messages in sorted(conflicts_by_address().items())[:40]:
        history = walk(get, f"/addresses/{address}/tx-history", "history", 5)
        listed = {
            one["messageId"]: [one["conflictReason"], one["addressBalanceChange"]]
            for one in history
            if one["ledgerInclusionState"] == "conflicting"
        }
        assert listed == messages
        seen.update((reason, change < 0) for reason, change in listed.values())
    assert len({reason for reason, _ in seen}) > 2
    assert {spends for _, spends in seen} == {False, True}


def test_a_history_as_csv(api, get) -> None:
    address = sorted(conflicts_by_address())[0]
    answer = api.get(f"{BASE}/addresses/{address}/tx-history", headers={"Accept": "text/csv"})
    lines = answer.text.splitlines()
    history = get(f"/addresses/{address}/tx-history")["history"]
    assert answer.headers["content-type"].startswith("text/csv")
    assert len(lines) == 1 + len(history)
    assert lines[1].startswith(history[0]["messageId"])
    states = [one["ledgerInclusionState"] for one in history]
    assert [line.split(",")[4] for line in lines[1:]] == states
    assert "conflicting" in states


def test_milestones_and_their_changes(get) -> None:
    created, used = set(), set()
    for row in expected("chrysalis", "milestones"):
        index = row["milestone_index"]
        assert get(f"/milestones/{index}") == {
            "index": index,
            "messageId": row["message_id"],
            "timestamp": row["timestamp"],
        }
        changes = get(f"/milestones/{index}/utxo-changes")
        created |= set(changes["createdOutputs"])
        used |= set(changes["consumedOutputs"])
    assert created == {row["output_id"] for row in expected("chrysalis", "legacy_outputs")}
    assert used == {row["output_id"] for row in consumed("chrysalis") if row["kind"] != "treasury"}


def test_receipts_and_the_treasury(get) -> None:
    receipts = [
        (row["milestone_index"], decode_milestone(bytes.fromhex(row["payload"]), "chrysalis").receipt)
        for row in expected("chrysalis", "milestones")
    ]
    wanted = [(index, receipt.migrated_at) for index, receipt in receipts if receipt]
    found = get("/receipts")["receipts"]
    assert [(one["milestoneIndex"], one["receipt"]["migratedAt"]) for one in found] == wanted
    assert wanted
    for _, migrated_at in wanted:
        some = get(f"/receipts/{migrated_at}")["receipts"]
        assert some == [one for one in found if one["receipt"]["migratedAt"] == migrated_at]
    newest = max(expected("chrysalis", "treasury_outputs"), key=lambda row: row["milestone_index"])
    assert get("/treasury") == {"milestoneId": newest["output_id"], "amount": newest["amount"]}


def test_info(get) -> None:
    info = get("/info")
    assert (info["networkId"], info["bech32HRP"], info["minPoWScore"]) == ("chrysalis-mainnet", "iota", 4000)
    assert info["latestMilestoneIndex"] == info["confirmedMilestoneIndex"] == LAST
    assert (info["isHealthy"], info["pruningIndex"]) == (True, FIRST - 1)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/messages/nothex", 400),
        ("/messages", 400),
        ("/messages?index=", 400),
        (f"/messages?index={'00' * 65}", 400),
        ("/messages?index=aa&pageSize=0", 400),
        ("/messages?index=aa&sort=upwards", 400),
        ("/messages?index=aa&nosuch=1", 400),
        # inx-api-core-v1 ignores a bad boolean.
        (f"/addresses/ed25519/{'00' * 32}/outputs?include-spent=maybe", 400),
        ("/messages?index=aa&expanded=perhaps", 400),
        (f"/messages/{'00' * 32}", 404),
        (f"/messages/{'00' * 32}/raw", 404),
        (f"/outputs/{'00' * 32}/65536", 400),
        (f"/outputs/{'00' * 32}/3", 404),
        ("/addresses/smr1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqv3dfq2", 400),
        ("/addresses/nothing", 400),
        ("/milestones/1", 404),
        (f"/transactions/{'00' * 32}/included-message", 404),
    ],
)
def test_wrong_and_unknown_ids(api, path, status) -> None:
    answer = api.get(f"{BASE}{path}")
    assert answer.status_code == status, answer.text
    assert answer.json()["error"] == {"code": str(status), "message": answer.json()["detail"]}


def test_both_bases_answer_the_same(api, get) -> None:
    message_id = expected("chrysalis", "messages")[3]["message_id"]
    for path in ("/info", f"/messages/{message_id}", f"/messages/{message_id}/children"):
        for base in ("/chrysalis-mainnet/api/core/v1", "/api/permanode/v1/chrysalis-mainnet"):
            assert api.get(base + path).json()["data"] == get(path)
