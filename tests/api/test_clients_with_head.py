"""The six official clients read history and the live head through one address."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from permalake.api.app import create_app
from permalake.domains import domain_of
from permalake.iota.steps.live import LIVE_TABLES as IOTA_TABLES
from permalake.lake.head_position import Reached
from permalake.lake.serving import LakeReader
from permalake.wormhole.steps.live import LIVE_TABLES as WORMHOLE_TABLES
from support import official_clients, served_wormhole, synthetic_lake
from support.heads import follow_day
from support.live_api import live_api


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """The settings of a lake whose last days only the heads have, and by network its rows and last day."""
    folder = tmp_path_factory.mktemp("heads")
    settings = synthetic_lake.settings_of(folder / "lake", default_network="iota")
    settings = settings.model_copy(update={"wormhole": served_wormhole.wormhole_settings(folder).wormhole})
    last_days = {}
    for network in ("shimmer", "iota"):
        rows = synthetic_lake.tables(synthetic_lake.NETWORKS[network])
        *before, last = synthetic_lake.days(rows)
        synthetic_lake.publish(settings, network, rows, before)
        newest = max(rows["milestones"], key=lambda row: row["milestone_index"])
        reached = Reached(newest["milestone_index"], newest["timestamp"])
        follow_day(settings, network, rows, IOTA_TABLES, last, reached)
        last_days[network] = rows, last
    rows, last = served_wormhole.world_rows(), served_wormhole.LAST_DAY
    days = {row["date"] for row in rows["message_publication"]}
    served_wormhole.publish_days(settings, rows, sorted(days - {last}))
    newest = max(row["timestamp"] for row in rows["message_publication"] if row["date"] == last)
    follow_day(settings, "wormhole", rows, WORMHOLE_TABLES, last, Reached(None, int(newest.timestamp()), {}))
    last_days["wormhole"] = rows, last
    return settings, last_days


@pytest.fixture(scope="module")
def address(lake, tmp_path_factory):
    settings, _ = lake
    reader = LakeReader(settings, domain_of, cache=tmp_path_factory.mktemp("index"))
    with live_api(create_app(settings, reader)) as url:
        yield url


def blocks(lake, network):
    """One referenced block of the published days and one of the head."""
    rows, last = lake[1][network]
    whole = [row for row in rows["messages"] if row["inclusion_state"] == 1]
    return next(row for row in whole if row["date"] != last), next(
        row for row in whole if row["date"] == last
    )


def called(interpreter, script, arguments, given):
    """What a client in a process of its own printed, as JSON."""
    command = [interpreter, official_clients.HERE / script, *arguments]
    done = subprocess.run(
        command, input=json.dumps(given), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def node(script, arguments, given):
    official_clients.install()
    return called(official_clients.BIN / "node", script, arguments, given)


def assert_told(rows, answers, raw_of) -> None:
    """Of each row came what it is, as ``raw_of`` has it, and the milestone that references it."""
    for row, raw, metadata in zip(rows, answers[::2], answers[1::2], strict=True):
        assert raw in raw_of(row["message"])
        assert metadata["referencedByMilestoneIndex"] == row["milestone_index"]


def test_iota_sdk(lake, address) -> None:
    rows = blocks(lake, "shimmer")
    methods = ("get_block_raw", "get_block_metadata")
    calls = [[method, [f"0x{row['message_id']}"]] for row in rows for method in methods]
    answers = called(sys.executable, "iota_sdk_calls.py", [f"{address}/shimmer"], calls)
    assert_told(rows, answers, lambda message: [list(message)])


@pytest.mark.parametrize(("network", "protocol"), [("shimmer", "stardust"), ("iota", "chrysalis")])
def test_iota_js(lake, address, network, protocol) -> None:
    rows = blocks(lake, network)
    name, prefix = {"stardust": ("block", "0x"), "chrysalis": ("message", "")}[protocol]
    methods = (f"{name}Raw", f"{name}Metadata")
    calls = [[method, f"{prefix}{row['message_id']}"] for row in rows for method in methods]
    answers = node("iota_nodes.js", [f"{address}/{network}", protocol], calls)
    assert_told(rows, answers, lambda message: [message.hex()])


def test_sdk_wasm(lake, address) -> None:
    rows = blocks(lake, "shimmer")
    methods = ("getBlockRaw", "getBlockMetadata")
    calls = [[method, f"0x{row['message_id']}"] for row in rows for method in methods]
    answers = node("iota_wasm.js", ["sdk", "node", f"{address}/shimmer"], calls)
    assert_told(rows, answers, lambda message: [message.hex(), list(message)])


def test_client_wasm(lake, address) -> None:
    rows = blocks(lake, "iota")
    methods = ("getMessage.raw", "getMessage.metadata")
    calls = [[method, row["message_id"]] for row in rows for method in methods]
    answers = node("iota_wasm.js", ["client", "node", address], calls)
    assert_told(rows, answers, lambda message: [message.decode(errors="replace")])


def test_wormhole_sdk(lake, address) -> None:
    rows, last = lake[1]["wormhole"]
    signed = {row["row_key"]: row["signed_vaa"] for row in rows["quorum_state"]}
    ethereum = [
        row
        for row in rows["message_publication"]
        if row["emitter_chain"] == 2 and row["row_key"] in signed and row["initiating_tx_id"]
    ]
    for row in (
        next(row for row in ethereum if row["date"] != last),
        next(row for row in ethereum if row["date"] == last),
    ):
        ask = {
            "id": {"chain": "Ethereum", "emitter": row["emitter_address"], "sequence": str(row["sequence"])},
            "transaction": row["initiating_tx_id"],
            "address": row["emitter_address"],
        }
        answers = node("wormhole_sdk.js", [f"{address}/wormhole"], ask)
        assert answers["getVaaBytes"] == signed[row["row_key"]].hex()
        assert answers["getVaaByTransaction"]["sequence"] == str(row["sequence"])
