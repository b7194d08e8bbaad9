"""Payloads of the bridges in Wormholescan's JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from permalake.contracts.rows import Row
from permalake.wormhole.rest.wormholescan_answers import (
    AttestationPayload,
    BridgePayload,
    NftPayload,
    TransferPayload,
)

_TRANSFER_WITH_PAYLOAD = 3


def bridge_payload(tables: Mapping[str, list[Row]]) -> BridgePayload | None:
    """Return the decoded payload of a bridge's message; None for any other message."""
    for name, shape in _SHAPES.items():
        if rows := tables.get(name):
            return shape(rows[0])
    return None


def _transfer(row: Row) -> TransferPayload:
    payload: TransferPayload = {
        "payloadType": row["payload_id"],
        "amount": row["amount"],
        "tokenAddress": _word(row["origin_address"]),
        "tokenChain": row["origin_chain"],
        "toAddress": _word(row["target_address"]),
        "toChain": row["target_chain"],
        "fee": row["fee"] or "",
    }
    if row["payload_id"] == _TRANSFER_WITH_PAYLOAD:
        payload["fromAddress"] = _word(row["from_address"])
        payload["payload"] = (row["app_payload"] or b"").hex()
    return payload


def _attestation(row: Row) -> AttestationPayload:
    return {
        "payloadType": row["payload_id"],
        "tokenAddress": _word(row["token_address"]),
        "tokenChain": row["token_chain"],
        "decimals": row["decimals"],
        "symbol": row["symbol"],
        "name": row["name"],
    }


def _nft(row: Row) -> NftPayload:
    return {
        "payloadType": row["payload_id"],
        "tokenAddress": _word(row["origin_address"]),
        "tokenChain": row["origin_chain"],
        "symbol": row["symbol"],
        "name": row["name"],
        "tokenId": row["token_id"],
        "uri": row["uri"],
        "toAddress": _word(row["target_address"]),
        "toChain": row["target_chain"],
    }


def _word(address: str) -> str:
    return f"0x{address}"


_SHAPES: dict[str, Callable[[Row], BridgePayload]] = {
    "token_transfer_payload": _transfer,
    "asset_meta_payload": _attestation,
    "nft_transfer_payload": _nft,
}
