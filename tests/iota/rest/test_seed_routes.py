"""Every route and parameter as seeds 003 (permanode) and 004 (indexation plugin) spell them."""

from __future__ import annotations

import pytest

from permalake.iota.codec.from_json import pack_json_block, pack_json_output
from support import synthetic_lake

PERMANODE, INDEXER = "/api/permanode/v1", "/api/indexer/v1"
NETWORKS = {"shimmer": "stardust", "iota": "chrysalis"}


@pytest.fixture(scope="module")
def worlds():
    return {network: synthetic_lake.tables(protocol) for network, protocol in NETWORKS.items()}


@pytest.fixture
def get(synthetic_api):
    def ask(path, **query):
        answer = synthetic_api.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    return ask


def bare(ids):
    return {one.removeprefix("0x") for one in ids}


@pytest.mark.parametrize("network", NETWORKS)
def test_seed_003(synthetic_api, worlds, get, network) -> None:
    base, tables, protocol = f"{PERMANODE}/{network}", worlds[network], NETWORKS[network]
    row = max(tables["messages"], key=lambda one: len(one["message"]))
    message_id = row["message_id"]
    packed = pack_json_block(get(f"{base}/messages/{message_id}")["data"], protocol)
    assert packed == row["message"]
    metadata = get(f"{base}/messages/{message_id}/metadata")["data"]
    assert (metadata["messageId"], metadata["referencedByMilestoneIndex"]) == (
        message_id,
        row["milestone_index"],
    )
    parent = tables["parents"][len(tables["parents"]) // 2]["parent_id"]
    children = get(f"{base}/messages/{parent}/children", pageSize=1000)["data"]["childrenMessageIds"]
    assert set(children) == {one["message_id"] for one in tables["parents"] if one["parent_id"] == parent}
    tag = tables["tags"][0]["tag"]
    tagged = get(f"{base}/messages", index=tag, pageSize=1000)["data"]["messageIds"]
    assert set(tagged) == {one["message_id"] for one in tables["tags"] if one["tag"] == tag}
    kind = "basic" if protocol == "stardust" else "legacy"
    output = tables[f"{kind}_outputs"][0]
    owned = get(f"{base}/addresses/{output['address']}/outputs", pageSize=1000)["data"]["outputIds"]
    kinds = (("basic", "address"), ("nft", "address"), ("foundry", "address"), ("alias", "state_controller"))
    assert set(owned) == {
        one["output_id"]
        for name, column in (*kinds, ("legacy", "address"))
        for one in tables.get(f"{name}_outputs", ())
        if one[column] == output["address"]
    }
    found = get(f"{base}/outputs/{output['output_id']}")
    body = found["output"] if protocol == "stardust" else found["data"]["output"]
    assert int(body["amount"]) == output["amount"]
    index = tables["milestones"][1]["milestone_index"]
    listed = get(f"{base}/milestones/{index}", pageSize=1000)["data"]["messageIds"]
    of_milestone = [one for one in tables["messages"] if one["milestone_index"] == index]
    assert listed == [
        one["message_id"] for one in sorted(of_milestone, key=lambda one: one["white_flag_index"])
    ]


SEED_004 = (
    # route, its parameter, kind of outputs, column that must have the value
    ("outputs", "address", "basic", "address"),
    ("outputs", "sender", "basic", "sender"),
    ("outputs", "tag", "basic", "tag"),
    ("aliases", "stateController", "alias", "state_controller"),
    ("aliases", "governer", "alias", "governor"),
    ("aliases", "issuer", "alias", "issuer"),
    ("nft", "address", "nft", "address"),
    ("nft", "issuer", "nft", "issuer"),
    ("nft", "sender", "nft", "sender"),
    ("nft", "tag", "nft", "tag"),
    ("foundries", "address", "foundry", "address"),
)


@pytest.mark.parametrize(("route", "parameter", "kind", "column"), SEED_004)
def test_lists_of_seed_004(worlds, get, route, parameter, kind, column) -> None:
    rows = worlds["shimmer"][f"{kind}_outputs"]
    value = next(one[column] for one in rows if one[column])
    found = get(f"{INDEXER}/shimmer/{route}", **{parameter: value, "state": "all", "pageSize": 1000})
    assert bare(found["items"]) == {one["output_id"] for one in rows if one[column] == value} != set()


def test_aliases_by_sender(worlds, get) -> None:
    """No alias of the world has one, so the filter must leave none."""
    sender = next(one["sender"] for one in worlds["shimmer"]["basic_outputs"] if one["sender"])
    assert not any(one["sender"] for one in worlds["shimmer"]["alias_outputs"])
    assert get(f"{INDEXER}/shimmer/aliases", sender=sender, state="all")["items"] == []
    assert get(f"{INDEXER}/shimmer/aliases", state="all")["items"]


@pytest.mark.parametrize(
    ("route", "kind", "column"),
    [("outputs", "basic", "storage_return_address"), ("nft", "nft", "dust_return_address")],
)
@pytest.mark.parametrize("wanted", [True, False])
def test_a_dust_return_may_be_required(worlds, get, route, kind, column, wanted) -> None:
    rows = worlds["shimmer"][f"{kind}_outputs"]
    query = {"requiresDustReturn": str(wanted).lower(), "state": "all", "pageSize": 1000}
    found = get(f"{INDEXER}/shimmer/{route}", **query)
    assert bare(found["items"]) == {one["output_id"] for one in rows if (one[column] is not None) == wanted}


def test_single_outputs_of_seed_004(worlds, get) -> None:
    tables = worlds["shimmer"]
    output = tables["basic_outputs"][0]
    found = get(f"{INDEXER}/shimmer/outputs/{output['output_id']}")["output"]
    assert pack_json_output(found) == output["data"]
    for route, kind in (("aliases", "alias"), ("nft", "nft"), ("foundries", "foundry")):
        rows = tables[f"{kind}_outputs"]
        chain_id = rows[0][f"{kind}_id"]
        [item] = get(f"{INDEXER}/shimmer/{route}/{chain_id}", state="all")["items"]
        states = {one["output_id"] for one in rows if one[f"{kind}_id"] == chain_id}
        assert item.removeprefix("0x") in states
