"""Applications' messages: official vectors, real VAAs, and bytes that are not theirs."""

from __future__ import annotations

import json
from collections import Counter
from random import Random

import pytest

from permalake.wormhole.codec.applications.circle_integration import read_circle
from permalake.wormhole.codec.applications.decode import ApplicationContract, decode_application
from permalake.wormhole.codec.applications.generic_relayer import read_relayer
from permalake.wormhole.codec.applications.mayan import read_mctp, read_swift
from permalake.wormhole.codec.applications.native_token_transfers import read_ntt
from permalake.wormhole.codec.applications.query_response import read_query_response
from permalake.wormhole.codec.applications.transfer_payloads import (
    read_connect,
    read_gateway,
    read_portico,
    read_recipient,
)
from permalake.wormhole.codec.applications.transfers import transfer_of
from permalake.wormhole.codec.payload_reader import LayoutError
from permalake.wormhole.reference import load_reference
from support.application_payloads import CONNECT, GATEWAY, MCTP, SWIFT, transfer
from support.application_payloads import VECTORS as MADE
from support.vaa_data import DATA, expectations

CONTRACTS = load_reference().contracts()
VECTORS = json.loads((DATA / "wormhole" / "application_vectors.json").read_text())
READERS = {
    "ntt": read_ntt,
    "relayer": read_relayer,
    "circle": read_circle,
    "query_response": lambda payload: ("query_response", read_query_response(payload)),
}


def word(number):
    return number.to_bytes(32, "big")


@pytest.mark.parametrize("row", [pytest.param(row, id=row["name"]) for row in VECTORS])
def test_official_vectors(row) -> None:
    kind, fields = READERS[row["layout"]](bytes.fromhex(row["payload"]))
    assert kind == row["kind"]
    assert {name: fields[name] for name in row["fields"]} == row["fields"]


@pytest.mark.parametrize("row", [pytest.param(row, id=row["name"]) for row in VECTORS])
def test_a_message_cut_short_is_none(row) -> None:
    payload = bytes.fromhex(row["payload"])
    for size in range(len(payload) - 2):
        with pytest.raises(LayoutError):
            READERS[row["layout"]](payload[:size])


def decoded(row):
    emitter = bytes.fromhex(row["emitter_address"])
    return decode_application(row["emitter_chain"], emitter, bytes.fromhex(row["payload"]), CONTRACTS)


def test_every_mainnet_vaa_has_an_application_or_is_unknown() -> None:
    counts = Counter((message.app_id, message.kind) for message in map(decoded, expectations("mainnet")))
    assert counts == {
        ("UNKNOWN", "governance"): 80,
        ("PORTAL_TOKEN_BRIDGE", "transfer"): 17,
        ("PORTAL_TOKEN_BRIDGE", "transfer_with_payload"): 3,
        ("PORTAL_TOKEN_BRIDGE", "attestation"): 2,
        ("PORTAL_NFT_BRIDGE", "transfer"): 1,
        ("NATIVE_TOKEN_TRANSFER", "transfer"): 3,
        ("GENERIC_RELAYER", "delivery"): 2,
        ("MAYAN_SWIFT", "batch_unlock"): 1,
        ("MAYAN_MCTP", "bridge_with_fee"): 1,
        ("MAYAN_MCTP", "message_hash"): 1,
        ("UNKNOWN", "unknown"): 8,
    }


def test_a_real_transfer_is_what_wormholescan_shows() -> None:
    operation = json.loads((DATA / "wormhole" / "operations" / "ntt-ethereum-hydration_dai.json").read_text())
    row = next(row for row in expectations("mainnet") if row["vaa"] == operation["vaa"]["raw"])
    message, shown = decoded(row), operation["content"]["standarizedProperties"]
    assert message.app_id in shown["appIds"]
    assert message.fields["target_chain"] == shown["toChain"]
    assert message.fields["recipient"][24:] == shown["toAddress"].lower()[-40:]
    assert message.fields["source_token"][24:] == shown["tokenAddress"].lower()[-40:]
    assert int(message.fields["amount"]) == 10 ** message.fields["amount_decimals"]
    assert operation["data"]["tokenAmount"] == "1"


def test_portico_s_flags_are_little_endian() -> None:
    """The flags are those of two real VAAs of an early deployment, whose other words differ."""
    flags = bytes.fromhex("1800fbee2cc5b80b00b80b00c800c8").ljust(31, b"\0") + b"\x01"
    assert read_portico(flags + b"".join(map(word, range(1, 6)))) == {
        "target_chain": 24,
        "bridge_nonce": 0xC52CEEFB,
        "fee_tier_start": 3000,
        "fee_tier_finish": 3000,
        "wrap_native": True,
        "unwrap_native": False,
        "final_token": word(1).hex(),
        "recipient": word(2).hex(),
        "canonical_amount": "3",
        "minimum_amount": "4",
        "relayer_fee": "5",
    }
    early = next(row for row in expectations("mainnet") if row["row_key"].endswith("0000000000130973"))
    assert (decoded(early).app_id, decoded(early).fields) == ("PORTAL_TOKEN_BRIDGE", {})


@pytest.mark.parametrize(
    ("app_id", "layout", "payload", "fields"),
    [
        (
            "CONNECT",
            "connect",
            b"\x01" + word(5) + word(6) + word(7),
            {"relayer_fee": "5", "to_native_amount": "6", "recipient": word(7).hex()},
        ),
        ("TBTC", "recipient", word(9), {"recipient": word(9).hex()}),
        ("ETH_BRIDGE", "portico", bytes(31) + b"\x02" + b"".join(map(word, range(5))), None),
    ],
)
def test_transfers_with_payload_belong_to_the_contract_that_receives_them(
    app_id, layout, payload, fields
) -> None:
    (_, chain, address), contract = next(
        (key, one) for key, one in CONTRACTS.items() if key[0] == "recipient" and one.app_id == app_id
    )
    assert contract.layout == layout
    bridge = next(key for key, one in CONTRACTS.items() if one.layout == "token_bridge")
    head = b"\x03" + word(1) + word(2) + b"\0\2" + address + chain.to_bytes(2, "big") + word(3)
    found = decode_application(bridge[1], bridge[2], head + payload, CONTRACTS)
    assert (found.app_id, found.kind) == (app_id, "transfer_with_payload")
    if fields is not None:
        assert found.fields == fields
    else:
        assert found.fields["unwrap_native"]
        assert not found.fields["wrap_native"]
    cut = decode_application(bridge[1], bridge[2], head + payload[:-1], CONTRACTS)
    assert (cut.app_id, cut.fields) == ("PORTAL_TOKEN_BRIDGE", {})


KEY_HASH = "751e76e8199196d454941c45d1b3a323f1433bd6"


def test_gateway_s_transfers_name_a_chain_and_an_account_of_its_own() -> None:
    (_, chain, address), contract = next(
        (key, one) for key, one in CONTRACTS.items() if one.layout == "gateway"
    )
    assert (chain, contract.app_id) == (3104, "WORMCHAIN_GATEWAY_TRANSFER")
    bridge = next(key for key, one in CONTRACTS.items() if one.layout == "token_bridge")
    payload = transfer(chain, address, GATEWAY)
    found = decode_application(bridge[1], bridge[2], payload, CONTRACTS)
    assert (found.app_id, found.carrier) == ("WORMCHAIN_GATEWAY_TRANSFER", "PORTAL_TOKEN_BRIDGE")
    assert found.fields == {"target_chain": 20, "recipient": KEY_HASH.rjust(64, "0")}
    moved = transfer_of(found, bridge[1], payload)
    assert (moved["target_chain"], moved["in_token_transfers"]) == (20, 1)
    contract_form = GATEWAY.replace(b"transfer", b"transfer_with_payload").replace(b"recipient", b"contract")
    assert read_gateway(contract_form) == found.fields


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b"[" * 100_000,
        GATEWAY.replace(b"20", b"70000"),
        GATEWAY.replace(b"20", b"true"),
        GATEWAY.replace(b"recipient", b"receiver"),
        GATEWAY.replace(b"gateway_", b""),
        GATEWAY.replace(b'":"', b'":"!'),
        GATEWAY.replace(b"b3Ntb", b"b3Nsb"),
        b'{"gateway_transfer":{"chain":20,"recipient":"YTFsdW4wODBy"}}',
        b'{"gateway_transfer":7}',
    ],
)
def test_what_is_no_transfer_through_gateway_is_refused(payload) -> None:
    with pytest.raises(LayoutError):
        read_gateway(payload)


def test_contracts_whose_layout_is_not_read_still_name_their_application() -> None:
    """Emitters, receivers of transfers with payload, and who asks for a delivery."""
    ours = ApplicationContract("OURS", "unread")
    listed = {**CONTRACTS, ("emitter", 2, word(70)): ours, ("recipient", 4, word(71)): ours}
    found = decode_application(2, word(70), b"anything", listed)
    assert (found.app_id, found.kind, found.is_listed) == ("OURS", "message", True)
    assert transfer_of(found, 2, b"anything") is None
    bridge = next(key for key, one in CONTRACTS.items() if one.layout == "token_bridge")
    payload = transfer(4, word(71), b"anything")
    found = decode_application(bridge[1], bridge[2], payload, listed)
    assert (found.app_id, found.carrier, found.fields) == ("OURS", "PORTAL_TOKEN_BRIDGE", {})
    delivery = next(row for row in VECTORS if row["name"] == "delivery")
    sender = bytes.fromhex(delivery["fields"]["sender_address"])
    relayer = next(key for key, one in CONTRACTS.items() if one.layout == "relayer")
    listed["emitter", relayer[1], sender] = ours
    found = decode_application(relayer[1], relayer[2], bytes.fromhex(delivery["payload"]), listed)
    assert (found.app_ids, found.inner.kind) == (["GENERIC_RELAYER", "OURS"], "message")


def test_a_delivery_carries_the_message_inside() -> None:
    transfer = next(row for row in VECTORS if row["layout"] == "ntt" and row["kind"] == "transfer")
    delivery = bytes.fromhex(next(row for row in VECTORS if row["name"] == "delivery")["payload"])
    inner = bytes.fromhex(transfer["payload"])
    size = int.from_bytes(delivery[35:39], "big")
    whole = delivery[:35] + len(inner).to_bytes(4, "big") + inner + delivery[39 + size :]
    relayer = next(key for key, one in CONTRACTS.items() if one.layout == "relayer")
    found = decode_application(relayer[1], relayer[2], whole, CONTRACTS)
    assert (found.app_id, found.inner.app_id) == ("GENERIC_RELAYER", "NATIVE_TOKEN_TRANSFER")
    assert found.inner.fields["recipient"] == transfer["fields"]["recipient"]


def test_a_redelivery_and_keys_of_other_types() -> None:
    """No official vector has either; the layout is the SDK's."""
    key = b"\x01" + b"\0\x06" + word(8) + (9).to_bytes(8, "big")
    info = (96).to_bytes(4, "big") + word(0) + word(200_000) + word(3)
    payload = b"\x02" + key + b"\0\x05" + word(7) + info + word(11) + word(12)
    kind, fields = read_relayer(payload)
    assert kind == "redelivery"
    assert fields == {
        "delivery": {"chain": 6, "emitter": word(8).hex(), "sequence": "9"},
        "target_chain": 5,
        "requested_receiver_value": "7",
        "gas_limit": "200000",
        "refund_per_gas_unused": "3",
        "source_delivery_provider": word(11).hex(),
        "sender_address": word(12).hex(),
    }
    delivery = bytes.fromhex(next(row for row in VECTORS if row["name"] == "delivery")["payload"])
    other = delivery[:-1] + b"\x01\x07" + (3).to_bytes(4, "big") + b"abc"
    assert read_relayer(other)[1]["message_keys"] == [{"key_type": 7, "key": b"abc".hex()}]


def test_a_transfer_of_a_multi_token_manager() -> None:
    """No official vector; the layout is that of NTT's SDK."""
    data = bytes.fromhex("994d5454") + b"\x08" + (5).to_bytes(8, "big") + b"Name".ljust(32, b"\0")
    data += b"SYM".ljust(32, b"\0") + b"\x12" + b"\0\x02" + word(1) + word(2) + word(3) + b"\0\0"
    generic = bytes.fromhex("99474d50") + b"\0\x04" + word(4) + word(5) + len(data).to_bytes(2, "big") + data
    manager = word(6) + word(7) + len(generic).to_bytes(2, "big") + generic
    whole = (
        bytes.fromhex("9945ff10") + word(8) + word(9) + len(manager).to_bytes(2, "big") + manager + b"\0\0"
    )
    kind, fields = read_ntt(whole)
    assert kind == "multi_token_transfer"
    wanted = {
        "amount": "5",
        "name": "Name",
        "symbol": "SYM",
        "decimals": 18,
        "token_chain": 2,
        "target_chain": 4,
    }
    assert {name: fields[name] for name in wanted} == wanted
    assert (fields["source_token"], fields["recipient"]) == (word(1).hex(), word(3).hex())


@pytest.mark.parametrize("kind", SWIFT)
def test_messages_of_swift(kind) -> None:
    """No official vector; the layout is the contract's. A real batch of eight orders is among the VAAs."""
    found, fields = read_swift(SWIFT[kind])
    assert found == kind
    order = fields["orders"][1] if kind == "batch_unlock" else fields
    assert (order["source_chain"], order["token_in"], order["recipient"]) == (
        30,
        word(2).hex(),
        word(3).hex(),
    )
    if kind == "fulfill":
        assert (fields["target_chain"], fields["token_out"]) == (4, word(4).hex())
        assert (fields["promised_amount"], fields["driver"]) == ("250000000", word(10).hex())
    if kind == "refund":
        assert (fields["canceler"], fields["refund_fee"]) == (word(11).hex(), "13")
    for wrong in (SWIFT[kind][:-1], SWIFT[kind] + b"\0", b"\x05" + SWIFT[kind][1:]):
        with pytest.raises(LayoutError):
            read_swift(wrong)


@pytest.mark.parametrize("kind", MCTP)
def test_messages_of_mctp(kind) -> None:
    """As above; a real hash and a real message of the version before are among the VAAs."""
    found, fields = read_mctp(MCTP[kind])
    assert found == kind
    assert len(fields) == {"message_hash": 1, "order": 1, "unlock_fee": 4}.get(kind, 5)
    if kind == "bridge_with_fee":
        assert (fields["circle_nonce"], fields["recipient"]) == ("14", word(17).hex())
        assert (fields["gas_drop"], fields["redeem_fee"]) == ("18", "19")
    for wrong in (MCTP[kind][:-1], MCTP[kind] + b"\0"):
        with pytest.raises(LayoutError):
            read_mctp(wrong)


def moved(app_id, payload):
    contract = next(key for key, one in CONTRACTS.items() if key[0] == "emitter" and one.app_id == app_id)
    message = decode_application(*contract[1:], payload, CONTRACTS)
    return contract[1], transfer_of(message, contract[1], payload)


def test_what_messages_move() -> None:
    chain, found = moved("CCTP_WORMHOLE_INTEGRATION", MADE["transfer with relay"])
    assert (found["token_chain"], found["amount"], found["fee"]) == (chain, "8000000", "100000")
    assert (found["target_chain"], found["in_token_transfers"]) == (23, 0)
    assert found["recipient_address"][24:] == "089d4e139ff6801eba327e301ab47ea15e0e12ae"
    _, found = moved("MAYAN_SWIFT", SWIFT["fulfill"])
    assert (found["token_chain"], found["token_address"], found["amount"]) == (4, word(4).hex(), "250000000")
    assert moved("MAYAN_SWIFT", SWIFT["unlock"])[1] is None
    _, found = moved("MAYAN_MCTP", MCTP["bridge_with_fee"])
    assert found == {"in_token_transfers": 0, "recipient_address": word(17).hex(), "fee": "19"}
    _, (_, chain, address) = min(
        (one.app_id, key) for key, one in CONTRACTS.items() if one.app_id == "CONNECT"
    )
    _, found = moved("PORTAL_TOKEN_BRIDGE", transfer(chain, address, CONNECT, amount=77))
    assert (found["amount"], found["fee"], found["in_token_transfers"]) == ("77", "5", 1)
    assert (found["recipient_address"], found["sender_address"]) == (word(7).hex(), word(8).hex())
    assert (found["token_chain"], found["token_address"], found["target_chain"]) == (2, word(1).hex(), chain)
    assert moved("PORTAL_TOKEN_BRIDGE", transfer(chain, address, b"else"))[1] is None


def test_ntt_counts_as_listed_only_where_its_contract_is() -> None:
    payload = MADE["transceiver_message_1"]
    assert not decode_application(2, word(7), payload, CONTRACTS).is_listed
    listed = {**CONTRACTS, ("emitter", 2, word(7)): ApplicationContract("M_PORTAL", "ntt")}
    found = decode_application(2, word(7), payload, listed)
    assert (found.app_id, found.is_listed) == ("M_PORTAL", True)
    assert decode_application(2, word(7), payload[:-2] + b"\0", listed).app_id == "UNKNOWN"


def test_mutated_payloads_raise_nothing() -> None:
    rng = Random(5)
    rows = [row for row in expectations("mainnet") if row["kind"] != "governance"]
    emitters = [key for key in CONTRACTS if key[0] == "emitter"]
    for _ in range(10_000):
        payload = bytearray.fromhex(rng.choice(rows)["payload"])[: rng.randrange(1, 500)]
        for _ in range(rng.randrange(4)):
            payload[rng.randrange(len(payload))] = rng.randrange(256)
        _, chain, address = rng.choice(emitters)
        found = decode_application(chain, address, bytes(payload), CONTRACTS)
        transfer_of(found, chain, bytes(payload))


def test_short_payloads_of_applications_are_refused() -> None:
    for read in (read_connect, read_portico, read_recipient):
        with pytest.raises(LayoutError):
            read(b"\x01" * 20)
