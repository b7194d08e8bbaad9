from __future__ import annotations

import json

import pytest

from permalake.wormhole.codec.governance import decode_governance, is_governance
from permalake.wormhole.codec.vaa import decode_vaas
from support.vaa_data import DATA, NETWORKS, expectations, raw_vaas

FIELDS = {
    "newContract": "new_contract",
    "emitterAddress": "emitter_address",
    "emitterChain": "emitter_chain",
    "guardians": "guardians",
    "newGuardianSetIndex": "new_guardian_set_index",
}


def header(module: bytes, action: int, chain: int = 0) -> bytes:
    return module.rjust(32, b"\0") + bytes([action]) + chain.to_bytes(2, "big")


@pytest.mark.parametrize("network", NETWORKS)
def test_real_governance_messages(network) -> None:
    vaas = decode_vaas(raw_vaas(network))
    governing, payloads = is_governance(vaas), vaas.payload()
    seen = 0
    for i, row in enumerate(expectations(network)):
        assert governing[i] == (row["kind"] == "governance")
        if not governing[i]:
            continue
        found, told = decode_governance(payloads[i].as_py()), row["decoded"]
        if told is None:
            assert found is None
            continue
        seen += 1
        assert (found.module, found.action, found.target_chain) == (
            told["module"],
            told["action"],
            told["chain"],
        )
        complete = len(row["payload"]) >= 2 * 69 or "emitterAddress" not in told
        if found.module in ("Core", "TokenBridge", "NFTBridge") and found.action in (1, 2) and complete:
            assert found.fields == {FIELDS[name]: told[name] for name in told if name in FIELDS}
    assert seen == {"mainnet": 80, "testnet": 60, "devnet": 170}[network]


def test_fees_and_chain_recovery() -> None:
    fee = decode_governance(header(b"Core", 3, 21) + (2**200).to_bytes(32, "big"))
    assert (fee.action_name, fee.target_chain, fee.fields) == (
        "SetMessageFee",
        21,
        {"message_fee": str(2**200)},
    )
    fees = decode_governance(header(b"Core", 4) + (5).to_bytes(32, "big") + b"\xaa" * 32)
    assert fees.fields == {"amount": "5", "recipient": "aa" * 32}
    fork = header(b"TokenBridge", 3)[:33] + (10001).to_bytes(32, "big") + (2).to_bytes(2, "big")
    assert decode_governance(fork).fields == {"evm_chain_id": "10001"}
    assert decode_governance(fork).target_chain == 2


def layout_vectors():
    rows = json.loads((DATA / "wormhole" / "governance_vectors.json").read_text())
    return [pytest.param(row, id=row["name"]) for row in rows]


@pytest.mark.parametrize("row", layout_vectors())
def test_official_vectors(row) -> None:
    """Payloads and fields as the tests of Wormhole's own Go, Rust and Solidity libraries state them."""
    found = decode_governance(bytes.fromhex(row["payload"]))
    assert (found.module, found.action, found.action_name, found.target_chain, found.fields) == (
        row["module"],
        row["action"],
        row["action_name"],
        row["target_chain"],
        row["fields"],
    )


@pytest.mark.parametrize(("network", "unknown"), [("mainnet", 0), ("testnet", 0), ("devnet", 5)])
def test_every_real_action_has_a_layout(network, unknown) -> None:
    """What remains on developers' networks are negative test cases."""
    payloads = [bytes.fromhex(row["payload"]) for row in expectations(network) if row["kind"] == "governance"]
    found = [one for one in map(decode_governance, payloads) if one]
    assert (
        sorted((one.module, one.action) for one in found if one.action_name is None)
        == [
            ("Cord", 2),
            ("Core", 69),
            ("CoreRelayer", 4),
            ("IbcTranslator", 42),
            ("TokenBridge", 1),
        ][:unknown]
    )


@pytest.mark.parametrize("row", layout_vectors())
def test_a_message_cut_short_keeps_its_header(row) -> None:
    payload = bytes.fromhex(row["payload"])
    for size in range(35, len(payload)):
        found = decode_governance(payload[:size])
        if found is not None and found.action_name is not None:
            # Two layouts have a last field of open length.
            assert row["action_name"] in ("SuiCall", "ScheduleUpgrade")


def test_unknown_layouts_keep_module_action_and_chain() -> None:
    found = decode_governance(header(b"SomethingNew", 200, 65535) + b"whatever")
    assert (found.module, found.action, found.action_name, found.target_chain) == (
        "SomethingNew",
        200,
        None,
        65535,
    )
    cut = decode_governance(header(b"TokenBridge", 1, 4) + b"\0\2")
    assert (cut.action_name, cut.fields) == (None, {})
    keys = decode_governance(header(b"Core", 2) + (1).to_bytes(4, "big") + b"\xff" + bytes(40))
    assert keys.fields == {}


@pytest.mark.parametrize(
    "payload", [b"", bytes(32), bytes(40), header(b"Core", 1)[:34], header(b"Core", 1)[:33], b"\xff" * 40]
)
def test_what_is_no_governance_message(payload) -> None:
    assert decode_governance(payload) is None
