"""The official WebAssembly clients of IOTA nodes against the API over a socket, on both synthetic worlds."""

from __future__ import annotations

import json
import subprocess

import httpx
import pytest

from permalake.api.app import create_app
from permalake.domains import domain_of
from permalake.iota.codec.milestones import decode_milestone, milestone_id
from permalake.lake.serving import LakeReader
from support import official_clients
from support.live_api import live_api
from support.served_lakes import consumed, expected

LAST = 250007
CHRYSALIS = "chrysalis-mainnet"


@pytest.fixture(scope="module")
def address(served_settings, tmp_path_factory):
    """A server with the Chrysalis network at its root: client-wasm replaces the path of a node's address."""
    serve = served_settings.serve.model_copy(update={"default_network": CHRYSALIS})
    settings = served_settings.model_copy(update={"serve": serve})
    reader = LakeReader(settings, domain_of, cache=tmp_path_factory.mktemp("index"))
    with live_api(create_app(settings, reader)) as url:
        yield url


def answers(library, kind, address, calls):
    """What each call gave, by its place."""
    official_clients.install()
    command = [official_clients.BIN / "node", official_clients.HERE / "iota_wasm.js", library, kind, address]
    done = subprocess.run(
        command, input=json.dumps(calls), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def named(calls, found):
    """Answers by method; none is an error."""
    wrong = [(call[0], one) for call, one in zip(calls, found, strict=True) if is_error(one)]
    assert not wrong
    return {call[0]: one for call, one in zip(calls, found, strict=True)}


def asked(address, route):
    """How often a route was asked, by the server's metrics."""
    lines = httpx.get(f"{address}/metrics").text.splitlines()
    own = (line for line in lines if line.startswith("permalake_http_requests_total{"))
    return sum(float(line.rpartition(" ")[2]) for line in own if f'route="{route}"' in line)


def is_error(one):
    return isinstance(one, dict) and "error" in one


def unspent(protocol, kind):
    uses = {row["output_id"] for row in consumed(protocol)}
    return [row for row in expected(protocol, f"{kind}_outputs") if row["output_id"] not in uses]


def ids(rows):
    """Output ids as the indexer lists them."""
    ordered = sorted(rows, key=lambda row: (row["ms_timestamp"], row["output_id"]))
    return [f"0x{row['output_id']}" for row in ordered]


def test_every_call_of_sdk_wasm(address) -> None:
    row = next(
        one
        for one in expected("stardust", "transactions")
        if one["inclusion_state"] == 1 and one["variant"] == "output"
    )
    block = next(one for one in expected("stardust", "messages") if one["message_id"] == row["message_id"])
    block_id, transaction_id = f"0x{row['message_id']}", f"0x{row['transaction_id']}"
    made = ids(
        one
        for kind in ("basic", "alias", "foundry", "nft")
        for one in expected("stardust", f"{kind}_outputs")
        if one["output_id"].startswith(row["transaction_id"])
    )
    milestone = expected("stardust", "milestones")[4]
    index, identity = milestone["milestone_index"], f"0x{milestone_id(bytes.fromhex(milestone['payload']))}"
    basic, alias, nft, foundry = (unspent("stardust", kind) for kind in ("basic", "alias", "nft", "foundry"))
    owner = basic[0]["address"]
    node = f"{address}/shimmer"
    calls = [
        ["getHealth", node],
        ["getNodeInfo", node],
        ["getInfo"],
        ["getNetworkInfo"],
        ["getNetworkId"],
        ["getBech32Hrp"],
        ["getProtocolParameters"],
        ["getTokenSupply"],
        ["getBlock", block_id],
        ["getBlockRaw", block_id],
        ["getBlockMetadata", block_id],
        ["findBlocks", [block_id]],
        ["getOutput", made[0]],
        ["getOutputs", made],
        ["getOutputsIgnoreErrors", [*made, f"0x{'00' * 34}"]],
        ["getMilestoneById", identity],
        ["getMilestoneByIndex", index],
        ["getUtxoChangesById", identity],
        ["getUtxoChangesByIndex", index],
        ["getReceipts"],
        ["getReceiptsMigratedAt", 5],
        # Its own getTreasury takes the answer for an output, of whatever node; unhealthyNodes it lacks.
        ["methodHandler.callMethod", {"name": "getTreasury"}],
        ["getIncludedBlock", transaction_id],
        ["getIncludedBlockMetadata", transaction_id],
        ["outputIds", []],
        ["basicOutputIds", [{"address": owner}, {"pageSize": 1}]],
        ["aliasOutputIds", []],
        ["nftOutputIds", []],
        ["foundryOutputIds", []],
        ["aliasOutputId", f"0x{alias[0]['alias_id']}"],
        ["foundryOutputId", f"0x{foundry[0]['foundry_id']}"],
        ["callPluginRoute", "api/explorer/v2/", "GET", f"milestones/by-index/{index}/blocks"],
    ]
    calls += [["nftOutputId", f"0x{nft[0]['nft_id']}"]] if nft else []
    *found, missing = answers("sdk", "node", node, [*calls, ["getBlock", f"0x{'00' * 32}"]])
    told = named(calls, found)
    assert told["getHealth"] is True
    assert told["getInfo"]["nodeInfo"] == told["getNodeInfo"]
    assert told["getInfo"]["nodeInfo"]["status"]["confirmedMilestone"]["index"] == LAST
    assert told["getProtocolParameters"]["networkName"] == "shimmer"
    assert (told["getBech32Hrp"], told["getNetworkId"]) == ("smr", "14364762045254553490")
    assert told["getBlockRaw"] in (block["message"], list(bytes.fromhex(block["message"])))
    assert told["getBlock"] == told["findBlocks"][0] == told["getIncludedBlock"]
    assert told["getBlockMetadata"] == told["getIncludedBlockMetadata"]
    assert told["getBlockMetadata"]["referencedByMilestoneIndex"] == row["milestone_index"]
    assert told["getBlockMetadata"]["whiteFlagIndex"] == block["white_flag_index"]
    assert told["getOutputs"] == told["getOutputsIgnoreErrors"]
    assert told["getOutput"] in told["getOutputs"]
    assert told["getOutput"]["metadata"]["blockId"] == block_id
    assert told["getMilestoneById"] == told["getMilestoneByIndex"]
    assert told["getMilestoneByIndex"]["timestamp"] == milestone["timestamp"]
    assert told["getUtxoChangesById"] == told["getUtxoChangesByIndex"]
    used = {f"0x{one['output_id']}" for one in consumed("stardust") if one["milestone_index"] == index}
    assert set(told["getUtxoChangesByIndex"]["consumedOutputs"]) == used
    assert told["getReceipts"] == told["getReceiptsMigratedAt"] == []
    treasury = json.loads(told["methodHandler.callMethod"])["payload"]
    assert treasury == {"milestoneId": f"0x{'0' * 64}", "amount": "0"}
    assert told["outputIds"]["items"] == ids([*basic, *alias, *nft, *foundry])
    assert told["basicOutputIds"]["items"] == ids([one for one in basic if one["address"] == owner])
    for name, rows in (("alias", alias), ("nft", nft), ("foundry", foundry)):
        assert told[f"{name}OutputIds"]["items"] == ids(rows), name
        if rows:
            assert told[f"{name}OutputId"] == f"0x{rows[0]['output_id']}"
    blocks = [one for one in expected("stardust", "messages") if one["milestone_index"] == index]
    assert len(told["callPluginRoute"]["blocks"]) == min(len(blocks), 100)
    assert is_error(missing)


@pytest.mark.parametrize("kind", ["node", "permanode"])
def test_every_call_of_client_wasm(address, kind) -> None:
    uses = {row["output_id"] for row in consumed("chrysalis")}
    message = expected("chrysalis", "messages")[10]
    tag = next(one for one in expected("chrysalis", "tags") if bytes.fromhex(one["tag"]).isalnum())
    text = bytes.fromhex(tag["tag"]).decode()
    spend = next(
        one
        for one in expected("chrysalis", "transactions")
        if one["inclusion_state"] == 1 and one["variant"] == "output"
    )
    rows = expected("chrysalis", "legacy_outputs")
    owner = next(one["address"] for one in rows if one["output_id"] not in uses)
    own = [one for one in rows if one["address"] == owner and one["output_id"] not in uses]
    milestone = expected("chrysalis", "milestones")[3]
    index = milestone["milestone_index"]
    receipts = [
        decode_milestone(bytes.fromhex(one["payload"]), "chrysalis").receipt
        for one in expected("chrysalis", "milestones")
    ]
    migrated = next(one.migrated_at for one in receipts if one)
    options = {"includeSpent": False}
    calls = [
        ["getInfo"],
        ["getNodeInfo", address],
        ["getHealth"],
        ["networkInfo"],
        ["getMessage.data", message["message_id"]],
        ["getMessage.raw", message["message_id"]],
        ["getMessage.metadata", message["message_id"]],
        ["getMessage.children", message["message_id"]],
        ["getMessage.index", {"utf8": text}],
        ["findMessages", [text], []],
        ["getAddress.balance", owner],
        ["getAddress.outputs", owner, options],
        ["getAddressBalances", [owner]],
        ["getOutput", own[0]["output_id"]],
        ["findOutputs", [own[0]["output_id"]], [owner]],
        ["getMilestone", index],
        ["getMilestoneUtxoChanges", index],
        ["getReceipts"],
        ["getReceiptsMigratedAt", migrated],
        ["getTreasury"],
        ["getIncludedMessage", spend["transaction_id"]],
    ]
    base = address if kind == "node" else f"{address}/{CHRYSALIS}/api/v1/"
    route = "/api/v1" if kind == "node" else "/{network}/api/v1"
    before = asked(address, f"{route}/messages/{{messageId}}/metadata")
    *found, missing = answers("client", kind, base, [*calls, ["getMessage.data", "00" * 32]])
    assert asked(address, f"{route}/messages/{{messageId}}/metadata") == before + 1
    told = named(calls, found)
    assert told["getInfo"]["nodeinfo"]["confirmedMilestoneIndex"] == LAST
    assert told["getHealth"] is True
    # The client makes text of the bytes.
    assert told["getMessage.raw"] == bytes.fromhex(message["message"]).decode(errors="replace")
    assert told["getMessage.metadata"]["referencedByMilestoneIndex"] == message["milestone_index"]
    approvers = {
        one["message_id"]
        for one in expected("chrysalis", "parents")
        if one["parent_id"] == message["message_id"]
    }
    assert set(told["getMessage.children"]) == approvers
    tagged = {one["message_id"] for one in expected("chrysalis", "tags") if one["tag"] == tag["tag"]}
    assert set(told["getMessage.index"]) == tagged
    assert len(told["findMessages"]) == len(tagged)
    balance = sum(one["amount"] for one in own)
    assert told["getAddress.balance"]["balance"] == told["getAddressBalances"][0]["balance"] == balance
    assert set(told["getAddress.outputs"]) == {one["output_id"] for one in own}
    assert (told["getOutput"]["amount"], told["getOutput"]["address"]) == (own[0]["amount"], owner)
    assert sum(one["amount"] for one in told["findOutputs"]) == balance
    assert told["getMilestone"]["messageId"] == milestone["message_id"]
    assert told["getMilestoneUtxoChanges"]["index"] == index
    assert len(told["getReceipts"]) == sum(1 for one in receipts if one)
    assert {one["receipt"]["migratedAt"] for one in told["getReceiptsMigratedAt"]} == {migrated}
    assert int(told["getTreasury"]["amount"]) > 0
    carriers = [one for one in expected("chrysalis", "parents") if one["message_id"] == spend["message_id"]]
    assert set(told["getIncludedMessage"]["parents"]) == {one["parent_id"] for one in carriers}
    assert is_error(missing)
