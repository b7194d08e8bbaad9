"""Messages as Wormholescan's operations and transactions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from permalake.contracts.rows import Row
from permalake.wormhole.codec.applications.decode import decode_application
from permalake.wormhole.contracts.redemption_tables import COMPLETED, IN_FLIGHT
from permalake.wormhole.reference import Reference
from permalake.wormhole.rest.identifiers import of_row_key
from permalake.wormhole.rest.payloads import bridge_payload
from permalake.wormhole.rest.rows import base64_text, plain_decimal, utc_text
from permalake.wormhole.rest.vaa_documents import Tables, first_row, native_address, native_token
from permalake.wormhole.rest.wormholescan_answers import (
    DestinationTransaction,
    Operation,
    OperationContent,
    OperationProperties,
    OperationValue,
    TargetChain,
    WormholeTransaction,
)

OPERATION_TABLES = (
    *("message_publication", "quorum_state", "token_transfer_payload", "asset_meta_payload"),
    *("nft_transfer_payload", "token_transfer_details", "chain_details", "redemptions"),
    *("application_transfers", "application_transfer_details"),
)
_CONFIRMED = "confirmed"


def operation(tables: Tables, reference: Reference) -> Operation:
    """Return a message as an operation of ``/api/v1/operations``.

    With ``targetChain`` unless the transfer is in flight, or nobody reported it. ``standarizedProperties`` is
    spelled as there.
    """
    published = tables["message_publication"][0]
    message = of_row_key(published["row_key"])
    properties = _properties(tables, reference)
    content: OperationContent = {"standarizedProperties": properties}
    if payload := bridge_payload(tables):
        content = {"payload": payload, "standarizedProperties": properties}
    document: Operation = {
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
            "from": first_row(tables, "chain_details").get("sender_address") or "",
            "status": _CONFIRMED,
        },
    }
    if target := _target(tables):
        document["targetChain"] = target
    if value := _value(tables):
        document["data"] = value
    return document


def transaction(tables: Tables, reference: Reference) -> WormholeTransaction:
    """Return a message as a transaction of ``/api/v1/transactions``."""
    published = tables["message_publication"][0]
    message = of_row_key(published["row_key"])
    document: WormholeTransaction = {
        "id": message.text,
        "timestamp": utc_text(published["timestamp"]),
        "txHash": published["initiating_tx_id"] or "",
        "emitterChain": message.chain,
        "emitterAddress": message.emitter,
        "emitterNativeAddress": native_address(reference, message.chain, message.emitter) or "",
        "standardizedProperties": _properties(tables, reference),
        "globalTx": {
            "id": message.text,
            "originTx": {
                "txHash": published["initiating_tx_id"] or "",
                "from": first_row(tables, "chain_details").get("sender_address") or "",
                "status": _CONFIRMED,
            },
        },
    }
    value = _value(tables)
    if "symbol" in value:
        document["symbol"] = value["symbol"]
    if "tokenAmount" in value:
        document["tokenAmount"] = value["tokenAmount"]
    if "usdAmount" in value:
        document["usdAmount"] = value["usdAmount"]
    if target := _target(tables):
        document["globalTx"]["destinationTx"] = _destination(target)
    if payload := bridge_payload(tables):
        document["payload"] = payload
    return document


def best_redemption(rows: Sequence[Row]) -> Row | None:
    """Return the answer that counts: a completed one, then the one with more in it, then the newest."""

    def rank(row: Row) -> tuple[bool, bool, datetime]:
        return row["status"] == COMPLETED, row["redeemed_at"] is not None, row["asked_at"]

    return max(rows, key=rank, default=None)


def _target(tables: Tables) -> TargetChain | None:
    """Return the transaction on the target chain; None while the transfer is in flight."""
    redemption = best_redemption(tables.get("redemptions") or ())
    if redemption is None or redemption["status"] == IN_FLIGHT:
        return None
    target: TargetChain = {
        "chainId": redemption["target_chain"],
        "transaction": {"txHash": redemption["target_tx_id"] or ""},
        "status": redemption["status"],
        "from": redemption["redeemer"] or "",
    }
    if redemption["fee"] is not None:
        target["fee"] = redemption["fee"]
    if redemption["redeemed_at"] is not None:
        target["timestamp"] = utc_text(redemption["redeemed_at"])
    return target


def _destination(target: TargetChain) -> DestinationTransaction:
    destination: DestinationTransaction = {
        "chainId": target["chainId"],
        "status": target["status"],
        "from": target["from"],
        "txHash": target["transaction"]["txHash"],
    }
    if "fee" in target:
        destination["fee"] = target["fee"]
    if "timestamp" in target:
        destination["timestamp"] = target["timestamp"]
    return destination


def _value(tables: Tables) -> OperationValue:
    """Return symbol, amount and USD as text, as far as they are known."""
    of_application = first_row(tables, "application_transfer_details")
    details = first_row(tables, "token_transfer_details") or {
        **of_application,
        "origin_symbol": of_application.get("token_symbol"),
    }
    notional = details.get("notional_usd")
    document: OperationValue = {}
    if (symbol := details.get("origin_symbol")) is not None:
        document["symbol"] = symbol
    if (amount := details.get("amount")) is not None:
        document["tokenAmount"] = amount
    if notional is not None:
        document["usdAmount"] = plain_decimal(notional)
    return document


def _properties(tables: Tables, reference: Reference) -> OperationProperties:
    """Return who sent what to whom; what is behind an application's contract goes before the contract."""
    published = tables["message_publication"][0]
    chain = published["emitter_chain"]
    moved = first_row(tables, "application_transfers")
    transfer = (
        first_row(tables, "token_transfer_payload")
        or first_row(tables, "nft_transfer_payload")
        or _as_bridged(moved)
    )
    chain_details = first_row(tables, "chain_details")
    token_chain = transfer.get("origin_chain")
    token = first_row(tables, "token_transfer_details").get("origin_token_address") or ""
    if token_chain is not None and not token:
        token = native_token(reference, token_chain, transfer["origin_address"]) or ""
    sender = chain_details.get("sender_address")
    if not sender and (address := moved.get("sender_address")):
        sender = native_address(reference, chain, address)
    recipient = first_row(tables, "application_transfer_details").get("recipient_native_address")
    fee = transfer.get("fee") or moved.get("fee") or ""
    decimals = moved.get("amount_decimals")
    properties: OperationProperties = {
        "appIds": application_ids(published, reference),
        "fromChain": chain,
        "fromAddress": sender or "",
        "toChain": moved.get("target_chain") or transfer.get("target_chain") or 0,
        "toAddress": recipient or chain_details.get("receiver_address") or "",
        "tokenChain": token_chain or 0,
        "tokenAddress": token,
        "amount": transfer.get("amount") or "",
        "feeAddress": token if fee else "",
        "feeChain": (token_chain or 0) if fee else 0,
        "fee": fee,
    }
    if decimals is not None:
        properties["normalizedDecimals"] = decimals
    return properties


def _as_bridged(moved: Row) -> Row:
    """Return what an application moves under the names of the bridge's transfers."""
    names = {"token_chain": "origin_chain", "token_address": "origin_address"}
    return {names.get(name, name): value for name, value in moved.items()}


def application_ids(published: Mapping[str, Any], reference: Reference) -> list[str]:
    """Return the applications of a message, the token bridge first where it carries another's transfer."""
    emitter = bytes.fromhex(published["emitter_address"])
    message = decode_application(
        published["emitter_chain"], emitter, published["payload"], reference.contracts()
    )
    return message.app_ids
