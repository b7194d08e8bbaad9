"""Messages as Wormholescan's operations and transactions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from permalake.wormhole.codec.applications.decode import TOKEN_BRIDGE_APP, UNKNOWN, decode_application
from permalake.wormhole.reference import Reference
from permalake.wormhole.rest.identifiers import of_row_key
from permalake.wormhole.rest.payloads import bridge_payload
from permalake.wormhole.rest.rows import Row, base64_text, plain_decimal, utc_text
from permalake.wormhole.rest.vaa_documents import Tables, native_address

OPERATION_TABLES = (
    *("message_publication", "quorum_state", "token_transfer_payload", "asset_meta_payload"),
    *("nft_transfer_payload", "token_transfer_details", "chain_details"),
)
_CONFIRMED = "confirmed"


def operation(tables: Tables, reference: Reference) -> dict[str, Any]:
    """Return a message as an operation of ``/api/v1/operations``.

    Without ``targetChain``: the lake knows no redemptions. ``standarizedProperties`` is spelled as there.
    """
    published = tables["message_publication"][0]
    message = of_row_key(published["row_key"])
    content: dict[str, Any] = {"standarizedProperties": _properties(tables, reference)}
    if payload := bridge_payload(tables):
        content = {"payload": payload, **content}
    found: dict[str, Any] = {
        "id": message.text,
        "emitterChain": message.chain,
        "emitterAddress": {
            "hex": message.emitter,
            "native": native_address(reference, message.chain, message.emitter) or "",
        },
        "sequence": str(message.sequence),
        "vaa": {
            "raw": base64_text(tables["quorum_state"][0]["signed_vaa"]),
            "guardianSetIndex": published["guardian_set_index"],
            "isDuplicated": False,
        },
        "content": content,
        "sourceChain": {
            "chainId": message.chain,
            "timestamp": utc_text(published["timestamp"]),
            "transaction": {"txHash": published["initiating_tx_id"] or ""},
            "from": _one(tables, "chain_details").get("sender_address") or "",
            "status": _CONFIRMED,
        },
    }
    if value := _value(tables):
        found["data"] = value
    return found


def transaction(tables: Tables, reference: Reference) -> dict[str, Any]:
    """Return a message as a transaction of ``/api/v1/transactions``."""
    published = tables["message_publication"][0]
    message = of_row_key(published["row_key"])
    found: dict[str, Any] = {
        "id": message.text,
        "timestamp": utc_text(published["timestamp"]),
        "txHash": published["initiating_tx_id"] or "",
        "emitterChain": message.chain,
        "emitterAddress": message.emitter,
        "emitterNativeAddress": native_address(reference, message.chain, message.emitter) or "",
        **_value(tables),
        "standardizedProperties": _properties(tables, reference),
        "globalTx": {
            "id": message.text,
            "originTx": {
                "txHash": published["initiating_tx_id"] or "",
                "from": _one(tables, "chain_details").get("sender_address") or "",
                "status": _CONFIRMED,
            },
        },
    }
    if payload := bridge_payload(tables):
        found["payload"] = payload
    return found


def _one(tables: Tables, name: str) -> Row:
    return (tables.get(name) or [{}])[0]


def _value(tables: Tables) -> dict[str, str]:
    """Return symbol, amount and USD as text, as far as they are known."""
    details = _one(tables, "token_transfer_details")
    notional = details.get("notional_usd")
    found = {
        "symbol": details.get("origin_symbol"),
        "tokenAmount": details.get("amount"),
        "usdAmount": None if notional is None else plain_decimal(notional),
    }
    return {name: value for name, value in found.items() if value is not None}


def _properties(tables: Tables, reference: Reference) -> dict[str, Any]:
    published = tables["message_publication"][0]
    transfer = _one(tables, "token_transfer_payload") or _one(tables, "nft_transfer_payload")
    details = _one(tables, "token_transfer_details")
    chain_details = _one(tables, "chain_details")
    token_chain = transfer.get("origin_chain")
    token = details.get("origin_token_address") or ""
    if token_chain is not None and not token:
        token = native_address(reference, token_chain, transfer["origin_address"]) or ""
    fee = transfer.get("fee") or ""
    return {
        "appIds": application_ids(published, reference),
        "fromChain": published["emitter_chain"],
        "fromAddress": chain_details.get("sender_address") or "",
        "toChain": transfer.get("target_chain", 0),
        "toAddress": chain_details.get("receiver_address") or "",
        "tokenChain": token_chain or 0,
        "tokenAddress": token,
        "amount": transfer.get("amount") or "",
        "feeAddress": token if fee else "",
        "feeChain": token_chain if fee else 0,
        "fee": fee,
    }


def application_ids(published: Mapping[str, Any], reference: Reference) -> list[str]:
    """Return the applications of a message, the token bridge first where it carries another's transfer."""
    emitter = bytes.fromhex(published["emitter_address"])
    contracts = reference.contracts()
    found = decode_application(published["emitter_chain"], emitter, published["payload"], contracts)
    names = [] if found.app_id == UNKNOWN else [found.app_id]
    if found.kind == "transfer_with_payload" and found.app_id != TOKEN_BRIDGE_APP:
        names.insert(0, TOKEN_BRIDGE_APP)
    if found.inner:
        names.append(found.inner.app_id)
    return names
