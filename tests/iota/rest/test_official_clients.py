"""The official clients of IOTA nodes against ``permalake serve``, on both synthetic worlds.

What a client makes of the answers is compared with the expected rows.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from contextlib import suppress

import httpx
import pytest
from iota_sdk import Client, OutputId

from permalake.iota.codec.bech32 import decode_address
from permalake.iota.codec.milestones import milestone_id
from permalake.local.services.daemon import free_port
from support import official_clients
from support.served_lakes import DATA, consumed, expected
from support.whole_server import serve_command

pytestmark = pytest.mark.scaled

CONFIG = """
[lake]
warehouse = "{warehouse}"
[networks.shimmer]
protocol = "stardust"
bech32_hrp = "smr"
path = "{path}"
v_byte_cost = 100
[networks.chrysalis-mainnet]
protocol = "chrysalis"
bech32_hrp = "iota"
path = "{path}"
v_byte_cost = 100
[serve]
default_network = "shimmer"
"""
LAST = 250007


@pytest.fixture(scope="module")
def served(served_settings, tmp_path_factory):
    """The address of a server in a process of its own."""
    folder = tmp_path_factory.mktemp("serve")
    config = folder / "permalake.toml"
    config.write_text(CONFIG.format(warehouse=served_settings.lake.warehouse, path=DATA))
    port = free_port()
    command = serve_command(port, config)
    environment = {**os.environ, "PERMALAKE_HOME": str(folder)}
    with (folder / "serve.log").open("w") as log:
        server = subprocess.Popen(command, env=environment, stderr=log, stdout=log)
    address = f"http://127.0.0.1:{port}"
    until = time.monotonic() + 180
    while True:
        assert server.poll() is None, (folder / "serve.log").read_text()
        assert time.monotonic() < until, (folder / "serve.log").read_text()
        with suppress(httpx.TransportError):
            if httpx.get(f"{address}/health", timeout=60).status_code == 200:
                break
        time.sleep(0.1)
    yield address
    server.terminate()
    assert server.wait(30) in (0, -15)


@pytest.fixture(scope="module")
def sdk(served):
    return Client(nodes=[f"{served}/shimmer"])


@pytest.fixture(scope="module")
def included():
    """An included transaction with its row and its outputs."""
    row = next(
        row
        for row in expected("stardust", "transactions")
        if row["inclusion_state"] == 1 and row["variant"] == "output"
    )
    outputs = [
        one["output_id"]
        for kind in ("basic", "alias", "foundry", "nft")
        for one in expected("stardust", f"{kind}_outputs")
        if one["output_id"].startswith(row["transaction_id"])
    ]
    return row, sorted(outputs)


def test_iota_sdk_knows_the_network(sdk, served) -> None:
    info = sdk.get_info().nodeInfo
    assert (info.name, info.status.confirmedMilestone.index) == ("PERMALAKE", LAST)
    assert sdk.get_health(f"{served}/shimmer") is True
    assert sdk.get_node_info(f"{served}/shimmer").protocol.networkName == "shimmer"
    assert sdk.get_network_info().protocolParameters.bech32Hrp == sdk.get_bech32_hrp() == "smr"
    # The id that the synthetic world's transactions carry.
    assert str(sdk.get_network_id()) == "14364762045254553490"
    assert sdk.unhealthy_nodes() == []


def test_iota_sdk_reads_blocks(sdk) -> None:
    rows = expected("stardust", "messages")
    for row in rows[::40]:
        block_id = f"0x{row['message_id']}"
        assert bytes(sdk.get_block_raw(block_id)).hex() == row["message"]
        assert len(sdk.get_block_data(block_id).parents) >= 1
        metadata = sdk.get_block_metadata(block_id)
        assert metadata.referencedByMilestoneIndex == row["milestone_index"]
        assert metadata.whiteFlagIndex == row["white_flag_index"]
    assert len(sdk.find_blocks([f"0x{row['message_id']}" for row in rows[:3]])) == 3


def test_iota_sdk_reads_milestones(sdk) -> None:
    row = expected("stardust", "milestones")[4]
    index, payload = row["milestone_index"], bytes.fromhex(row["payload"])
    identity = f"0x{milestone_id(payload)}"
    assert sdk.get_milestone_by_index(index).as_dict() == sdk.get_milestone_by_id(identity).as_dict()
    assert sdk.get_milestone_by_index(index).timestamp == row["timestamp"]
    assert bytes(sdk.get_milestone_by_index_raw(index)) == payload
    assert bytes(sdk.get_milestone_by_id_raw(identity)) == payload
    changes = sdk.get_utxo_changes_by_index(index)
    assert sdk.get_utxo_changes_by_id(identity).createdOutputs == changes.createdOutputs
    wanted = {f"0x{one['output_id']}" for one in consumed("stardust") if one["milestone_index"] == index}
    assert set(changes.consumedOutputs) == wanted
    assert sdk.get_receipts() == sdk.get_receipts_migrated_at(5) == []
    assert sdk.get_treasury() == {"milestoneId": f"0x{'0' * 64}", "amount": "0"}


def test_iota_sdk_reads_outputs_of_a_transaction(sdk, included) -> None:
    row, outputs = included
    ids = [OutputId.from_string(f"0x{one}") for one in outputs]
    found = sdk.get_outputs(ids)
    assert [one.metadata.transactionId for one in found] == [f"0x{row['transaction_id']}"] * len(ids)
    assert len(sdk.get_outputs_ignore_errors([*ids, OutputId.from_string(f"0x{'00' * 34}")])) == len(ids)
    metadata = sdk.get_output_metadata(f"0x{outputs[0]}")
    uses = {one["output_id"] for one in consumed("stardust")}
    assert metadata.isSpent == (outputs[0] in uses)
    assert sdk.get_output(f"0x{outputs[0]}").metadata.milestoneIndexBooked == row["milestone_index"]
    block = sdk.get_included_block_metadata(f"0x{row['transaction_id']}")
    assert block.blockId == f"0x{row['message_id']}"
    assert len(sdk.get_included_block(f"0x{row['transaction_id']}").parents) >= 1


def test_iota_sdk_takes_a_wrong_id_as_an_error(sdk) -> None:
    with pytest.raises(Exception, match=r"not found|published days"):
        sdk.get_block_data(f"0x{'00' * 32}")


def iota_js(address, protocol, calls):
    official_clients.install()
    command = [official_clients.BIN / "node", official_clients.HERE / "iota_nodes.js", address, protocol]
    done = subprocess.run(
        command, input=json.dumps(calls), capture_output=True, text=True, timeout=120, check=True
    )
    return json.loads(done.stdout)


def test_iota_js_of_stardust(served, included) -> None:
    row, outputs = included
    message = next(one for one in expected("stardust", "messages") if one["message_id"] == row["message_id"])
    milestone = expected("stardust", "milestones")[2]
    index, payload = milestone["milestone_index"], milestone["payload"]
    identity, block_id = f"0x{milestone_id(bytes.fromhex(payload))}", f"0x{row['message_id']}"
    transaction_id, output_id = f"0x{row['transaction_id']}", f"0x{outputs[0]}"
    calls = [
        ["health"],
        ["routes"],
        ["info"],
        ["protocolInfo"],
        ["block", block_id],
        ["blockMetadata", block_id],
        ["blockRaw", block_id],
        ["transactionIncludedBlock", transaction_id],
        ["transactionIncludedBlockRaw", transaction_id],
        ["output", output_id],
        ["outputMetadata", output_id],
        ["outputRaw", output_id],
        ["milestoneByIndex", index],
        ["milestoneById", identity],
        ["milestoneByIndexRaw", index],
        ["milestoneByIdRaw", identity],
        ["milestoneUtxoChangesByIndex", index],
        ["milestoneUtxoChangesById", identity],
        ["treasury"],
        ["receipts"],
        ["block", f"0x{'00' * 32}"],
    ]
    found = iota_js(f"{served}/shimmer", "stardust", calls)
    answers = {call[0]: answer for call, answer in zip(calls[:-1], found, strict=False)}
    assert not [name for name, answer in answers.items() if isinstance(answer, dict) and "error" in answer]
    assert answers["health"] is True
    assert "core/v2" in answers["routes"]["routes"]
    assert answers["info"]["status"]["latestMilestone"]["index"] == LAST
    assert answers["protocolInfo"]["networkName"] == "shimmer"
    assert answers["blockRaw"] == answers["transactionIncludedBlockRaw"] == message["message"]
    assert answers["block"] == answers["transactionIncludedBlock"]
    assert answers["blockMetadata"]["referencedByMilestoneIndex"] == row["milestone_index"]
    assert answers["output"]["metadata"] == answers["outputMetadata"]
    assert answers["outputMetadata"]["blockId"] == block_id
    assert answers["milestoneByIndexRaw"] == answers["milestoneByIdRaw"] == payload
    assert answers["milestoneByIndex"] == answers["milestoneById"]
    assert answers["milestoneUtxoChangesByIndex"] == answers["milestoneUtxoChangesById"]
    assert "not in the published days" in found[-1]["error"]


def test_iota_js_of_chrysalis(served) -> None:
    uses = {one["output_id"] for one in consumed("chrysalis")}
    row = expected("chrysalis", "messages")[10]
    # The client takes the index as text.
    tag = next(one for one in expected("chrysalis", "tags") if bytes.fromhex(one["tag"]).isalnum())
    spend = next(
        one
        for one in expected("chrysalis", "transactions")
        if one["inclusion_state"] == 1 and one["variant"] == "output"
    )
    rows = expected("chrysalis", "legacy_outputs")
    address = next(one["address"] for one in rows if one["output_id"] not in uses)
    unspent = [one for one in rows if one["address"] == address and one["output_id"] not in uses]
    value, milestone = decode_address(address)[2].hex(), expected("chrysalis", "milestones")[3]
    calls = [
        ["health"],
        ["info"],
        ["message", row["message_id"]],
        ["messageMetadata", row["message_id"]],
        ["messageRaw", row["message_id"]],
        ["messagesFind", bytes.fromhex(tag["tag"]).decode()],
        ["messageChildren", row["message_id"]],
        ["transactionIncludedMessage", spend["transaction_id"]],
        ["output", unspent[0]["output_id"]],
        ["address", address],
        ["addressOutputs", address],
        ["addressEd25519", value],
        ["addressEd25519Outputs", value],
        ["milestone", milestone["milestone_index"]],
        ["milestoneUtxoChanges", milestone["milestone_index"]],
        ["treasury"],
        ["receipts"],
        ["message", "00" * 32],
    ]
    found = iota_js(f"{served}/chrysalis-mainnet", "chrysalis", calls)
    answers = {call[0]: answer for call, answer in zip(calls[:-1], found, strict=False)}
    assert not [name for name, answer in answers.items() if isinstance(answer, dict) and "error" in answer]
    assert answers["health"] is True
    assert answers["info"]["latestMilestoneIndex"] == LAST
    assert answers["messageRaw"] == row["message"]
    assert answers["messageMetadata"]["referencedByMilestoneIndex"] == row["milestone_index"]
    tagged = {one["message_id"] for one in expected("chrysalis", "tags") if one["tag"] == tag["tag"]}
    assert set(answers["messagesFind"]["messageIds"]) == tagged
    approvers = {
        one["message_id"] for one in expected("chrysalis", "parents") if one["parent_id"] == row["message_id"]
    }
    assert set(answers["messageChildren"]["childrenMessageIds"]) == approvers
    assert answers["output"]["output"]["amount"] == unspent[0]["amount"]
    balance = sum(one["amount"] for one in unspent)
    assert answers["address"] == answers["addressEd25519"]
    assert answers["address"]["balance"] == balance
    assert set(answers["addressOutputs"]["outputIds"]) == {one["output_id"] for one in unspent}
    assert answers["addressOutputs"] == answers["addressEd25519Outputs"]
    assert answers["milestone"]["messageId"] == milestone["message_id"]
    assert answers["milestoneUtxoChanges"]["index"] == milestone["milestone_index"]
    assert answers["receipts"]
    assert "not in the published days" in found[-1]["error"]


def test_the_default_network_stands_at_the_root_too(served) -> None:
    for path in ("/health", "/api/routes", "/api/core/v2/info"):
        assert httpx.get(f"{served}{path}").content == httpx.get(f"{served}/shimmer{path}").content
    assert Client(nodes=[served]).get_info().nodeInfo.status.confirmedMilestone.index == LAST


@pytest.mark.parametrize("slashes", ["/", "//"])
def test_a_slash_behind_a_node_s_address_does_no_harm(served, slashes) -> None:
    client = Client(nodes=[f"{served}/shimmer{slashes}"])
    assert client.get_info().nodeInfo.status.confirmedMilestone.index == LAST
    assert client.get_milestone_by_index(LAST).index == LAST


def test_serve_without_a_lake_says_what_to_do(tmp_path) -> None:
    environment = {**os.environ, "PERMALAKE_LAKE__WAREHOUSE": str(tmp_path / "none")}
    done = subprocess.run(
        [official_clients.BIN / "permalake", "serve"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"permalake: no lake at {tmp_path / 'none'}; build one first (make demo or permalake run)"
    ]
    assert not (tmp_path / "none").exists()
