"""Routes of the permanode's own prefix, on networks of both protocols."""

from __future__ import annotations

from collections import defaultdict

import pytest

from permalake.iota.codec.bech32 import decode_address
from permalake.iota.codec.from_json import pack_json_block
from permalake.iota.codec.milestones import milestone_id
from permalake.iota.rest import not_served
from support.served_lakes import NETWORKS, consumed, expected

PROTOCOLS = ("stardust", "chrysalis")
OWNERS = {"alias": "state_controller"}
KINDS = ("basic", "alias", "foundry", "nft", "legacy")


@pytest.fixture
def ask(api):
    def get(protocol, path, **query):
        answer = api.get(f"/api/permanode/v1/{NETWORKS[protocol]}{path}", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    return get


def walk(ask, protocol, path, name, size, **query):
    items, cursor = [], None
    while True:
        extra = {"cursor": cursor} if cursor else {}
        page = ask(protocol, path, pageSize=size, **query, **extra)["data"]
        items += page[name]
        cursor = page.get("cursor")
        if cursor is None:
            return items


@pytest.mark.parametrize("size", [7, 1000])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_milestone_lists_its_messages_in_white_flag_order(ask, protocol, size) -> None:
    wanted = defaultdict(dict)
    for row in expected(protocol, "messages"):
        wanted[row["milestone_index"]][row["white_flag_index"]] = row["message_id"]
    for row in expected(protocol, "milestones"):
        path = f"/milestones/{row['milestone_index']}"
        found = walk(ask, protocol, path, "messageIds", size)
        assert found == [message for _, message in sorted(wanted[row["milestone_index"]].items())]
        assert walk(ask, protocol, path, "messageIds", size, sort="newest") == found[::-1]
        data = ask(protocol, path)["data"]
        assert data["milestoneId"] == milestone_id(bytes.fromhex(row["payload"]))
        assert (data["index"], data["timestamp"]) == (row["milestone_index"], row["timestamp"])


def test_a_stardust_milestone_by_id_is_its_payload(ask) -> None:
    row = expected("stardust", "milestones")[0]
    identity = milestone_id(bytes.fromhex(row["payload"]))
    assert ask("stardust", f"/milestones/{identity}")["index"] == row["milestone_index"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_messages_of_either_protocol(ask, protocol) -> None:
    for row in expected(protocol, "messages")[:40]:
        found = ask(protocol, f"/messages/{row['message_id']}")["data"]
        assert pack_json_block(found, protocol).hex() == row["message"]
        metadata = ask(protocol, f"/messages/{row['message_id']}/metadata")["data"]
        assert metadata["referencedByMilestoneIndex"] == row["milestone_index"]
        assert all(len(parent) == 64 for parent in metadata["parentMessageIds"])
    tags = defaultdict(set)
    for row in expected(protocol, "tags"):
        tags[row["tag"]].add(row["message_id"])
    for tag, messages in list(tags.items())[:5]:
        assert set(walk(ask, protocol, "/messages", "messageIds", 7, index=tag)) == messages


@pytest.mark.parametrize("size", [3, 1000])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_outputs_of_an_address_of_every_kind(ask, protocol, size) -> None:
    used = {row["output_id"] for row in consumed(protocol)}
    owned = defaultdict(set)
    for kind in KINDS:
        for row in expected(protocol, f"{kind}_outputs"):
            owned[row[OWNERS.get(kind, "address")]].add(row["output_id"])
    special = {
        row[OWNERS.get(kind, "address")]
        for kind in ("alias", "foundry", "nft")
        for row in expected(protocol, f"{kind}_outputs")
    }
    most = sorted(owned, key=lambda address: -len(owned[address]))[:3]
    for address in {*most, *special}:
        path = f"/addresses/{address}/outputs"
        every = walk(ask, protocol, path, "outputIds", size)
        assert len(every) == len(owned[address])
        assert set(every) == owned[address]
        unspent = walk(ask, protocol, path, "outputIds", size, **{"include-spent": "false"})
        assert sorted(unspent) == sorted(owned[address] - used)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_spent_outputs_are_listed_by_one_rule_per_dialect(ask, api, protocol) -> None:
    """The permanode's routes list spent outputs too, a node's do not, by bech32 and by hex alike."""
    used = {row["output_id"] for row in consumed(protocol)}
    owned = defaultdict(dict)
    for kind in KINDS:
        for row in expected(protocol, f"{kind}_outputs"):
            owned[row[OWNERS.get(kind, "address")]][row["output_id"]] = row
    address = max((one for one in owned if decode_address(one)[1] == 0), key=lambda one: len(owned[one]))
    outputs = owned[address]
    unspent = {output for output in outputs if output not in used}
    assert unspent < set(outputs)
    for place in (address, f"ed25519/{decode_address(address)[2].hex()}"):
        path = f"/addresses/{place}/outputs"
        assert set(walk(ask, protocol, path, "outputIds", 1000)) == set(outputs)
        assert set(walk(ask, protocol, path, "outputIds", 7, **{"include-spent": "false"})) == unspent
        legacy = walk(ask, protocol, path, "outputIds", 1000, type=0)
        assert set(legacy) == {output for output, row in outputs.items() if row.get("output_type") == 0}
        if protocol == "chrysalis":
            answer = api.get(f"/{NETWORKS[protocol]}/api/v1{path}?pageSize=1000").json()["data"]
            assert set(answer["outputIds"]) == unspent


PREFIXES = {
    "stardust": ("/{net}/api/core/v2", "/api/permanode/v1/{net}"),
    "chrysalis": ("/{net}/api/v1", "/{net}/api/core/v1", "/api/permanode/v1/{net}"),
}
CORE = {"stardust": not_served.CORE_V2, "chrysalis": not_served.CORE_V1}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_a_permanode_cannot_answer_is_501_with_a_reason(api, protocol) -> None:
    places = [(f"{prefix}{path}", rest) for prefix in PREFIXES[protocol] for path, *rest in CORE[protocol]]
    places += [(f"/api/permanode/v1/{{net}}{path}", rest) for path, *rest in not_served.MESSAGES]
    places += [(f"/{{net}}{path}", rest) for path, *rest in not_served.PLUGINS]
    for template, (reason, methods) in places:
        path = (
            template.replace("{net}", NETWORKS[protocol])
            .replace("{peerId}", "12D3")
            .replace("{rest:path}", "a/b")
        )
        for method in methods:
            answer = api.request(method, path)
            assert (answer.status_code, answer.json()["detail"]) == (501, f"not served: {reason}"), path
            assert answer.json()["error"]["code"] == "501"


def test_messages_are_listed_where_they_cannot_be_submitted(api) -> None:
    network = NETWORKS["chrysalis"]
    assert api.get(f"/{network}/api/v1/messages?index=00").status_code == 200
    assert api.put(f"/{network}/api/v1/messages").headers["allow"] == "GET, HEAD, POST"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_is_published(ask, protocol) -> None:
    days = sorted((row["start_ms"], row["end_ms"]) for row in expected(protocol, "date_cache"))
    assert days[0][1] + 1 == days[1][0]
    assert ask(protocol, "/sync") == {
        "completed": [{"start": days[0][0], "end": days[1][1] + 1}],
        "synced_but_unlogged": [],
        "gaps": [],
    }


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_activity_of_a_range_of_milestones(ask, protocol) -> None:
    start, end = 249995, 250003
    rows = [row for row in expected(protocol, "ms_analytics") if start <= row["milestone_index"] < end]
    names = ("message_count", "transaction_count", "transferred_tokens")
    sums = {name: sum(row[name] for row in rows) for name in names}
    assert ask(protocol, "/analytics", start=start, end=end) == {
        "ranges": [{"start": start, "end": end, **sums}]
    }
    assert ask(protocol, "/analytics", start=1, end=5) == {"ranges": []}


@pytest.mark.parametrize("path", ["/milestones/x", "/milestones/99999999999", "/analytics?start=5&end=1"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_wrong_parameters(api, protocol, path) -> None:
    assert api.get(f"/api/permanode/v1/{NETWORKS[protocol]}{path}").status_code == 400
