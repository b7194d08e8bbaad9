"""A message for people: its facts in sections of names and values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from permalake.web.synthetic import is_synthetic
from permalake.web.table_pages import json_value
from permalake.wormhole.contracts.value_reasons import MEANING
from permalake.wormhole.reference import Reference
from permalake.wormhole.rest.flows import chain_with_id
from permalake.wormhole.rest.identifiers import of_row_key
from permalake.wormhole.rest.operations import application_ids, best_redemption
from permalake.wormhole.rest.rows import Row, plain_decimal
from permalake.wormhole.rest.vaa_documents import Tables, native_address, signatures, single_digest

Facts = list[tuple[str, Any]]
_KINDS = {
    "token_transfer_payload": "Token transfer",
    "nft_transfer_payload": "NFT transfer",
    "asset_meta_payload": "Token attestation",
    "governance_actions": "Governance",
    "application_transfers": "Transfer of an application",
    "relayer_deliveries": "Delivery",
}


def described(tables: Tables, reference: Reference) -> dict[str, Any]:
    """Return ``{id, kind, sections, guardians, vaa}``; a section is a title and its facts."""
    published = tables["message_publication"][0]
    raw: bytes = tables["quorum_state"][0]["signed_vaa"]
    message = of_row_key(published["row_key"])
    kind = next((word for name, word in _KINDS.items() if name in tables), "Message")
    sections = {
        "Transfer": _transfer(tables, reference),
        "Redemption": _redemption(tables),
        "Message": _message(published, reference),
        "Payload": _payload(tables, published),
    }
    return {
        "id": message.text,
        "kind": kind,
        "is_synthetic": is_synthetic(published["date"]),
        "sections": [{"title": title, "facts": facts} for title, facts in sections.items() if facts],
        "guardian_set": published["guardian_set_index"],
        "guardians_of_set": len(reference.guardian_sets.get(published["guardian_set_index"], ())),
        "guardians": [
            {
                "address": f"0x{one.guardian.hex()}",
                "observed_at": json_value(one.observed_at),
                "is_signer": one.is_signer,
                "signature": one.signature.hex(),
            }
            for one in signatures(tables, reference)
        ],
        "digest": published["digest"],
        "hash": single_digest(raw),
        "vaa": raw.hex(),
    }


def _message(published: Row, reference: Reference) -> Facts:
    chain = published["emitter_chain"]
    return [
        ("Time", time_of(published["timestamp"])),
        ("Chain", chain_with_id(reference, chain)),
        ("Emitter", native_address(reference, chain, published["emitter_address"])),
        ("Emitter, 32 bytes", published["emitter_address"]),
        ("Sequence", str(published["sequence"])),
        ("Transaction", published["initiating_tx_id"]),
        ("Applications", ", ".join(application_ids(published, reference))),
        ("Nonce", published["nonce"]),
        ("Published on", _day(published)),
    ]


def time_of(moment: datetime) -> str:
    """Return the time in a message's body as pages show it."""
    return moment.strftime("%Y-%m-%d %H:%M:%S") if moment.timestamp() else "no time"


def _day(published: Row) -> str:
    day: str = published["date"].isoformat()
    if published["timestamp"].timestamp():
        return day
    return f"no time: the body has none, so that the message is kept under {day}"


def _transfer(tables: Tables, reference: Reference) -> Facts:
    payload = _row(tables, "token_transfer_payload") or _row(tables, "nft_transfer_payload")
    if not payload:
        return _moved(tables, reference)
    details, chain = _row(tables, "token_transfer_details"), _row(tables, "chain_details")
    symbol = details.get("origin_symbol") or payload.get("symbol") or ""
    return [
        ("Amount", f"{details['amount']} {symbol}".strip() if details.get("amount") else None),
        ("Value, USD", _plain(details.get("notional_usd"))),
        ("No value because", _reason(details)),
        ("Price, USD", _plain(details.get("token_price_usd"))),
        ("Quote that does not count, USD", _plain(details.get("unused_price_usd"))),
        ("Price from", details.get("price_source")),
        ("Price of", json_value(details.get("price_timestamp"))),
        ("Provider's confidence, 0 to 1", details.get("price_confidence")),
        ("Contradicting price, USD", _plain(details.get("contradicting_price_usd"))),
        ("Seconds to that price", details.get("price_distance_seconds")),
        ("Cross-check, USD", _plain(details.get("check_price_usd"))),
        ("Cross-check from", details.get("check_price_source")),
        ("Stand-in for the price", details.get("stand_in")),
        ("Value by stand-in, USD", _plain(details.get("stand_in_notional_usd"))),
        ("Token", details.get("origin_name") or payload.get("name")),
        ("Token's chain", chain_with_id(reference, payload["origin_chain"])),
        ("Token's address", details.get("origin_token_address") or payload["origin_address"]),
        ("Token id", payload.get("token_id")),
        ("To chain", chain_with_id(reference, payload["target_chain"])),
        ("Sender", chain.get("sender_address")),
        ("Receiver", chain.get("receiver_address") or payload["target_address"]),
        ("Recipient", _row(tables, "application_transfer_details").get("recipient_native_address")),
        ("Resulting token", chain.get("resulting_token_address")),
        ("Its symbol", chain.get("resulting_token_symbol")),
    ]


def _reason(details: Row) -> str | None:
    reason = details.get("reason")
    return MEANING.get(reason, reason) if reason else None


def _redemption(tables: Tables) -> Facts:
    known = best_redemption(tables.get("redemptions") or ())
    if known is None:
        return []
    return [
        ("Status", known["status"].replace("_", " ")),
        ("Transaction", known["target_tx_id"]),
        ("Time", json_value(known["redeemed_at"])),
        ("Redeemer", known["redeemer"]),
        ("Fee, in the chain's coin", known["fee"]),
        ("Told by", known["source"]),
        ("Told on", json_value(known["asked_at"])),
    ]


def _moved(tables: Tables, reference: Reference) -> Facts:
    """Return what an application moves beside the bridges."""
    moved, details = _row(tables, "application_transfers"), _row(tables, "application_transfer_details")
    if not moved:
        return []
    amount, token_chain, target_chain = details.get("amount"), moved["token_chain"], moved["target_chain"]
    return [
        ("Amount", f"{amount} {details['token_symbol'] or ''}".strip() if amount else None),
        ("Value, USD", _plain(details.get("notional_usd"))),
        ("No value because", _reason(details)),
        ("Price, USD", _plain(details.get("token_price_usd"))),
        ("Price from", details.get("price_source")),
        ("Price of", json_value(details.get("price_timestamp"))),
        ("Token", details.get("token_name")),
        ("Token's chain", None if token_chain is None else chain_with_id(reference, token_chain)),
        ("Token's address", details.get("token_native_address") or moved["token_address"]),
        ("To chain", None if target_chain is None else chain_with_id(reference, target_chain)),
        ("Sender", moved["sender_address"]),
        ("Recipient", details.get("recipient_native_address") or moved["recipient_address"]),
    ]


def _payload(tables: Tables, published: Row) -> Facts:
    facts: Facts = []
    for name in (*_KINDS, "application_messages"):
        for column, value in _row(tables, name).items():
            if column not in ("row_key", "date"):
                facts.append((column.replace("_", " "), _readable(json_value(value))))
    return [*facts, ("raw bytes", published["payload"].hex())]


def _plain(value: Decimal | None) -> str | None:
    return None if value is None else plain_decimal(value)


def _readable(value: Any) -> Any:
    if isinstance(value, str) and value.startswith("{"):
        return json.dumps(json.loads(value), indent=1)
    return value


def _row(tables: Mapping[str, list[Row]], name: str) -> Row:
    return (tables.get(name) or [{}])[0]
