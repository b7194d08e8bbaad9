"""Wormhole's official SDK for JavaScript against the API over a socket."""

from __future__ import annotations

import json
import subprocess

import pytest

from permalake.api.app import create_app
from support import official_clients
from support.live_api import live_api


@pytest.fixture(scope="module")
def told(world):
    """What the SDK was asked for and what it gave."""
    official_clients.install()
    published = {row["row_key"]: row for row in world.rows["message_publication"]}
    details = next(
        row
        for row in world.rows["chain_details"]
        if row["sender_address"]
        and row["row_key"].startswith("2:")
        and (published[row["row_key"]]["initiating_tx_id"] or "").startswith("0x")
    )
    row = published[details["row_key"]]
    ask = {
        "id": {"chain": "Ethereum", "emitter": row["emitter_address"], "sequence": str(row["sequence"])},
        "transaction": row["initiating_tx_id"],
        "address": details["sender_address"],
    }
    with live_api(create_app(world.settings)) as address:
        done = subprocess.run(
            [official_clients.BIN / "node", official_clients.HERE / "wormhole_sdk.js", f"{address}/wormhole"],
            input=json.dumps(ask),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return row, json.loads(done.stdout), world


def test_the_sdk_reads_a_vaa_by_message_and_by_transaction(told) -> None:
    row, found, world = told
    state = next(r for r in world.rows["quorum_state"] if r["row_key"] == row["row_key"])
    assert found["getVaaBytes"] == state["signed_vaa"].hex()
    assert found["getVaa"] == {
        "chain": "Ethereum",
        "emitter": f"0x{row['emitter_address']}",
        "sequence": str(row["sequence"]),
    }
    assert found["getVaaByTransaction"] is not None
    assert found["missing"] is None


def test_the_sdk_s_hash_is_our_digest_of_a_document(told) -> None:
    row, found, world = told
    name = f"{row['emitter_chain']}/{row['emitter_address']}/{row['sequence']}"
    assert found["hash"] == world.get(f"/wormhole/api/v1/vaas/{name}")["data"]["digest"]


def test_the_sdk_reads_status_transactions_and_governor(told) -> None:
    row, found, _ = told
    assert found["getTransactionStatus"]["globalTx"]["originTx"]["txHash"] == row["initiating_tx_id"]
    name = f"{row['emitter_chain']}/{row['emitter_address']}/{row['sequence']}"
    assert name in {one["id"] for one in found["getTransactionsForAddress"]}
    assert found["getIsVaaEnqueued"] is False
