"""Recorded operations of Wormholescan, served as they are, through the source ``wormholescan`` and the real
jobs: the sender, symbol, amount and USD that the service itself showed.

Once published, one transfer's redemption comes to light: a run of ``--only enrich`` finds it.

One of the documents holds no VAA: the list of VAAs has it, signed anew by a guardian of this test, with the
document's own payload and without its transaction.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
from decimal import Decimal

import pytest

from permalake.config import CONFIG_VARIABLE, load_settings
from permalake.wormhole.codec.native_addresses import base58
from permalake.wormhole.reference import load_reference
from permalake_simulate.wormhole.encode_vaa import (
    encode_body,
    encode_transfer_with_payload,
    encode_vaa,
    guardian_address,
    sign_body,
)
from support import places
from support.explorer_server import ExplorerServer
from support.jobs import job
from support.lakes import OpenLake, pass_audit
from support.price_server import PriceServer
from support.rpc_server import EvmChain, RpcServer

RECORDED = places.DATA / "wormhole" / "operations"
SUSDS, SOL, NTT = "moonbeam-ethereum_susds.json", "moonbeam-sol_sol.json", "ntt-ethereum-hydration_dai.json"
GUARDIAN = (900).to_bytes(32, "big")
MOONBEAM = 16
LATE = {"chainId": 1, "status": "completed", "transaction": {"txHash": "5Late"}}
"""What the explorer says of a redemption on Solana after the day was published."""


def recorded(name):
    return json.loads((RECORDED / name).read_text())


def labels():
    return {row["file"]: row for row in map(json.loads, (RECORDED / "labels.jsonl").read_text().splitlines())}


def signed_anew(operation):
    told = operation["content"]["payload"]
    payload = encode_transfer_with_payload(
        amount=int(told["amount"]),
        origin_address=bytes.fromhex(told["tokenAddress"][2:]),
        origin_chain=told["tokenChain"],
        target_address=bytes.fromhex(told["toAddress"][2:]),
        target_chain=told["toChain"],
        from_address=bytes.fromhex(told["fromAddress"][2:]),
        app_payload=bytes.fromhex(told["payload"]),
    )
    body = encode_body(
        timestamp=seconds(operation),
        nonce=0,
        emitter_chain=operation["emitterChain"],
        emitter_address=bytes.fromhex(operation["emitterAddress"]["hex"]),
        sequence=int(operation["sequence"]),
        consistency_level=1,
        payload=payload,
    )
    vaa = encode_vaa(900, sign_body(body, {0: GUARDIAN}), body)
    when = operation["sourceChain"]["timestamp"]
    return {"id": operation["id"], "vaa": base64.b64encode(vaa).decode(), "timestamp": when}


def seconds(operation):
    return int(dt.datetime.fromisoformat(operation["sourceChain"]["timestamp"]).timestamp())


def node(operation):
    """Moonbeam as it knows this transaction."""
    chain = EvmChain(load_reference().chains[MOONBEAM].core)
    message = (operation["emitterAddress"]["hex"], int(operation["sequence"]))
    source = operation["sourceChain"]
    chain.transactions[source["transaction"]["txHash"]] = (source["from"], [message], 5)
    return chain


@pytest.fixture(scope="module")
def rows(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("labels")
    (folder / "reference").mkdir()
    own = [{"index": 900, "guardians": [{"pubkey": "0x" + guardian_address(GUARDIAN).hex()}]}]
    (folder / "reference" / "guardian_sets.json").write_text(json.dumps(own))
    operations = [recorded(SUSDS), recorded(SOL), recorded(NTT)]
    prices = {
        "susds": [(seconds(operations[0]) - 60, "1.069")],
        "wrapped-solana": [(seconds(operations[1]), "210.25")],
    }
    with (
        ExplorerServer([signed_anew(operations[1])], operations) as explorer,
        PriceServer(prices) as market,
        RpcServer({MOONBEAM: node(operations[0])}) as rpc,
        pytest.MonkeyPatch.context() as patch,
    ):
        (folder / "permalake.toml").write_text(
            f"""
            [lake]
            warehouse = "{folder}/warehouse"
            [wormhole]
            source = "wormholescan"
            url = "{explorer.url}"
            reference = "{folder}/reference"
            [prices]
            provider = "coingecko"
            url = "{market.url}"
            rate_per_second = 50
            [chains.{MOONBEAM}]
            rpc_url = "{rpc.url}/{MOONBEAM}"
            rate_per_second = 50
            """
        )
        patch.setenv(CONFIG_VARIABLE, str(folder / "permalake.toml"))
        session = spark.newSession()
        days = ["--network", "wormhole", "--start", "2025-10-01", "--end", "2026-07-30", "--run-id", "labels"]
        for name in ("wormhole_ingest", "wormhole_enrich"):
            job(name)(days, session)
        lake = OpenLake(load_settings())
        attempt = lake.resume("wormhole", "labels")
        found = {
            table: {row["row_key"]: row for row in attempt.days(session, table).toArrow().to_pylist()}
            for table in ("message_publication", "token_transfer_details", "chain_details")
        }
        lake.builds.publish(pass_audit(attempt))
        first = lake.query("SELECT * FROM wormhole.redemptions ORDER BY row_key").to_pylist()
        asked = len(explorer.calls)
        explorer.operations[1]["targetChain"] = LATE
        job("wormhole_enrich")([*days[:-1], "later"], session)
        second = lake.query("SELECT * FROM wormhole.redemptions ORDER BY row_key, asked_at").to_pylist()
        return found | {"redemptions": first, "later": second, "asked": explorer.calls[asked:]}


@pytest.mark.parametrize("name", [SUSDS, SOL])
def test_a_transfer_is_what_the_service_shows(rows, name) -> None:
    label = labels()[name]
    details = rows["token_transfer_details"][label["rowkey"]]
    told = label["TokenTransferDetails"]
    assert details["amount"] == told["Amount"]
    assert details["origin_symbol"] == told["OriginSymbol"]
    assert details["origin_token_address"].lower() == told["OriginTokenAddress"].lower()
    # The service cuts what it shows to eight places.
    assert Decimal(0) <= details["notional_usd"] - Decimal(told["NotionalUSD"]) <= Decimal("0.00000001")
    on_chain = rows["chain_details"][label["rowkey"]]
    assert on_chain["sender_address"] == label["ChainDetails"]["SenderAddress"]
    # Of a transfer with payload the service shows the app's recipient; the bridge's is the app's own account.
    receiver = bytes.fromhex(recorded(name)["content"]["payload"]["toAddress"][2:])
    assert on_chain["receiver_address"] in {base58(receiver), f"0x{receiver[12:].hex()}"}
    assert rows["message_publication"][label["rowkey"]]["initiating_tx_id"] == label["InitiatingTxID"]


def test_a_native_token_transfer_is_none_of_the_token_bridge(rows) -> None:
    key = labels()[NTT]["rowkey"]
    assert key in rows["message_publication"]
    assert key not in rows["token_transfer_details"]
    assert key not in rows["chain_details"]


def test_redemptions_are_what_the_service_shows(rows) -> None:
    told = recorded(SUSDS)["targetChain"]
    late, done = rows["redemptions"]
    assert [late["row_key"], done["row_key"]] == [labels()[name]["rowkey"] for name in (SOL, SUSDS)]
    assert (late["status"], late["target_chain"], late["target_tx_id"]) == ("in_flight", 1, None)
    assert (done["status"], done["target_chain"]) == (told["status"], told["chainId"])
    assert done["target_tx_id"] == labels()[SUSDS]["targetTx"]
    assert done["redeemed_at"] == dt.datetime.fromisoformat(told["timestamp"])
    assert (done["redeemer"], done["fee"]) == (told["from"], told["fee"])


def test_a_redemption_pays_the_receiver_the_resulting_token(rows) -> None:
    _, done = rows["redemptions"]
    on_chain = rows["chain_details"][done["row_key"]]
    assert done["receiver_address"] == on_chain["receiver_address"].lower()
    assert done["token_address"] == on_chain["resulting_token_address"].lower()


def test_a_later_run_asks_again_for_the_day_in_flight_alone(rows) -> None:
    assert {path for _, path, _, _ in rows["asked"]} == {"/api/v1/operations"}
    asked = {dt.datetime.fromisoformat(query["from"][0]).date() for _, _, query, _ in rows["asked"]}
    assert asked == {dt.date(2025, 9, 30)}, "ten minutes before the day of the transfer"
    states = [(row["status"], row["target_tx_id"]) for row in rows["later"]]
    assert states[:2] == [("in_flight", None), ("completed", "5Late")]
    assert rows["later"][2:] == rows["redemptions"][1:]
