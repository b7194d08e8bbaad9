"""Operations of applications: what Wormholescan shows of a real NTT transfer, and recipients in payloads."""

from __future__ import annotations

import base64
import hashlib
import json
from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from permalake.wormhole.codec.applications.batches import decode_applications
from permalake.wormhole.codec.bridge_payloads import bridge_kinds, decode_payloads
from permalake.wormhole.codec.native_addresses import native_addresses, native_tokens
from permalake.wormhole.codec.vaa import decode_vaas
from permalake.wormhole.reference import load_reference
from permalake.wormhole.rest.message_page import described
from permalake.wormhole.rest.operations import operation, transaction
from permalake.wormhole.rest.scorecards import top_assets
from permalake_simulate.wormhole.encode_vaa import encode_body, encode_vaa
from support.application_payloads import CONNECT, GATEWAY, GATEWAY_ACCOUNT, transfer, word
from support.vaa_data import DATA

REFERENCE = load_reference()
CONTRACTS = REFERENCE.contracts()


def tables_of(raw, **values):
    """The rows of one VAA, with the given values of ``application_transfer_details``."""
    vaas = decode_vaas(pa.array([raw], pa.binary()))
    payloads = decode_payloads(vaas, bridge_kinds(vaas, REFERENCE.bridges))
    found = decode_applications(vaas, payloads, CONTRACTS, np.ones(1, bool))
    moved = found["moved"].to_pylist()[0]
    told = {
        "message_publication": vaas.publication().to_pylist()[0],
        "quorum_state": {"signed_vaa": raw},
        "application_messages": found["application"].to_pylist()[0],
        "application_transfers": moved,
        "application_transfer_details": {
            **dict.fromkeys(("amount", "notional_usd", "token_price_usd", "price_timestamp", "price_source")),
            **dict.fromkeys(("token_symbol", "token_name")),
            "token_native_address": _native(native_tokens, moved["token_chain"], moved["token_address"]),
            "recipient_native_address": _native(
                native_addresses, moved["target_chain"], moved["recipient_address"]
            ),
            **values,
        },
    }
    told["message_publication"] |= {
        "initiating_tx_id": None,
        "date": vaas.publication()["timestamp"][0].as_py().date(),
    }
    if payloads.transfers.num_rows:
        told["token_transfer_payload"] = payloads.transfers.to_pylist()[0]
    return {name: [row] for name, row in told.items()}


def _native(read, chain, address):
    return read(pa.array([chain]), pa.array([address]), REFERENCE.chains).to_pylist()[0]


@pytest.fixture(scope="module")
def shown():
    file = DATA / "wormhole" / "operations" / "ntt-ethereum-hydration_dai.json"
    return json.loads(file.read_text())


@pytest.fixture(scope="module")
def dai(shown):
    raw = base64.b64decode(shown["vaa"]["raw"])
    return tables_of(raw, amount="1", token_symbol="DAI", notional_usd=Decimal("0.99961300"))


def test_an_ntt_operation_is_what_wormholescan_shows(shown, dai) -> None:
    found = operation(dai, REFERENCE)
    assert found["data"] == shown["data"]
    ours, theirs = (one["content"]["standarizedProperties"] for one in (found, shown))
    # Hydration's addresses have no form here; the fee's address is theirs alone, as there is no fee.
    for name in theirs.keys() - {"toAddress", "feeAddress", "feeChain"}:
        same = str(ours[name]).lower() == str(theirs[name]).lower()
        assert same, (name, ours[name], theirs[name])
    assert transaction(dai, REFERENCE)["tokenAmount"] == "1"


def test_a_message_page_tells_what_an_application_moves(dai) -> None:
    page = described(dai, REFERENCE)
    assert page["kind"] == "Transfer of an application"
    facts = {name: value for section in page["sections"] for name, value in section["facts"]}
    assert facts["Amount"] == "1 DAI"
    words = "native token transfers, NATIVE_TOKEN_TRANSFER"
    assert facts["Applications"] == facts["application"] == words
    assert facts["Token's address"].lower() == "0x6b175474e89094c44da98b954eedeac495271d0f"
    assert facts["amount"] == "100000000"


def test_a_message_page_tells_each_field_of_a_payload_once(dai) -> None:
    page = described(dai, REFERENCE)
    [payload] = [section["facts"] for section in page["sections"] if section["title"] == "Payload"]
    names = [name for name, _ in payload]
    assert len(names) == len(set(names))
    long = [value for _, value in payload if isinstance(value, str) and len(value) == 64]
    [fields] = [json.loads(row["fields"]) for row in dai["application_messages"]]
    assert set(long) == {value for value in fields.values() if isinstance(value, str) and len(value) == 64}
    assert {"sender address", "recipient address", "token address", "amount"} <= set(names)
    assert not {"sender", "recipient", "source token", "fields"} & set(names), "told by the columns"
    # What the columns lack comes out of the layout's own fields.
    assert dict(payload)["recipient manager"] == fields["recipient_manager"]


def test_a_transfer_with_payload_goes_to_the_recipient_in_its_payload() -> None:
    _, chain, address = next(key for key, one in CONTRACTS.items() if one.app_id == "CONNECT" and key[1] != 1)
    properties = properties_of(transfer(chain, address, CONNECT, amount=77))
    assert properties["appIds"] == ["PORTAL_TOKEN_BRIDGE", "CONNECT"]
    assert (properties["toChain"], int(properties["toAddress"], 16)) == (chain, int(word(7).hex(), 16))
    assert (properties["amount"], properties["fee"]) == ("77", "5")


def test_a_transfer_through_gateway_goes_to_the_account_on_the_chain_behind_it() -> None:
    _, chain, address = next(key for key, one in CONTRACTS.items() if one.layout == "gateway")
    properties = properties_of(transfer(chain, address, GATEWAY, amount=77))
    assert properties["appIds"] == ["PORTAL_TOKEN_BRIDGE", "WORMCHAIN_GATEWAY_TRANSFER"]
    assert (properties["toChain"], properties["toAddress"]) == (20, GATEWAY_ACCOUNT)
    assert properties["amount"] == "77"


def properties_of(payload):
    """The standardized properties of a message of the token bridge."""
    bridge = next(key for key, one in CONTRACTS.items() if one.layout == "token_bridge")
    body = encode_body(
        timestamp=1_700_000_000,
        nonce=0,
        emitter_chain=bridge[1],
        emitter_address=bridge[2],
        sequence=1,
        consistency_level=1,
        payload=payload,
    )
    return operation(tables_of(encode_vaa(0, [], body)), REFERENCE)["content"]["standarizedProperties"]


TOKENS = (
    (8, f"{31566704:064x}", "31566704"),
    (22, hashlib.sha3_256(b"0x1::aptos_coin::AptosCoin").hexdigest(), "0x1::aptos_coin::AptosCoin"),
    (22, "ab" * 32, None),
)
"""Tokens whose form is not that of an account; the last one is a hash of an unlisted name."""


@pytest.mark.parametrize(("chain", "address", "native"), TOKENS)
def test_a_token_of_an_operation_has_its_chain_s_form(dai, chain, address, native) -> None:
    sent = {"origin_chain": chain, "origin_address": address, "target_chain": 4, "amount": "1", "fee": "2"}
    sent |= {"payload_id": 1, "target_address": "00" * 32}
    tables = {name: dai[name] for name in ("message_publication", "quorum_state")}
    told = operation({**tables, "token_transfer_payload": [sent]}, REFERENCE)["content"]
    properties = told["standarizedProperties"]
    assert (properties["tokenAddress"], properties["feeAddress"]) == (native or "", native or "")


@pytest.mark.parametrize(("chain", "address", "native"), TOKENS)
def test_a_token_of_the_top_assets_has_its_chain_s_form(chain, address, native) -> None:
    day = {"date": date(2024, 3, 10)}
    moved = {"emitter_chain": 2, "origin_chain": chain, "origin_address": address, "symbol": "T"}
    moved |= {"whole": 1, "fraction": 0}
    answers = {"messages_daily": [day], "notional_transferred_daily": [moved]}

    def rows(_, __=None, **scans):
        return answers[next(iter(scans))]

    [asset] = top_assets(rows, "7d", REFERENCE)
    assert asset["tokenAddress"] == (native or address)
