"""A message for people: its facts in sections of names and values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from permalake.contracts.rows import Row
from permalake.web.synthetic import is_synthetic
from permalake.web.table_pages import json_value
from permalake.wormhole.contracts.redemption_tables import COMPLETED
from permalake.wormhole.contracts.value_reasons import MEANING
from permalake.wormhole.reference import Reference
from permalake.wormhole.rest import links
from permalake.wormhole.rest.flows import chain_with_id
from permalake.wormhole.rest.identifiers import of_row_key
from permalake.wormhole.rest.links import Links, application_in_words
from permalake.wormhole.rest.operations import application_ids, best_redemption
from permalake.wormhole.rest.redemption_help import redemption_help
from permalake.wormhole.rest.rows import plain_decimal
from permalake.wormhole.rest.vaa_documents import Tables, first_row, native_address, signatures, single_digest

Facts = list[tuple[str, Any]]
_PAYLOADS = {1: "transfer", 2: "attestation", 3: "transfer with payload"}
_KINDS = {
    "token_transfer_payload": "Token transfer",
    "nft_transfer_payload": "NFT transfer",
    "asset_meta_payload": "Token attestation",
    "governance_actions": "Governance",
    "application_transfers": "Transfer of an application",
    "relayer_deliveries": "Delivery",
}
_OTHER_NAMES = {"token_chain": "origin_chain", "token_address": "origin_address"}
"""Names of an application's transfer that the bridges have other words for."""
_LENGTH_OF_IDENTITIES = 40
"""A text that long is an address or a hash, and says the same under any name."""


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
        "Payload": _payload(tables, reference),
    }
    return {
        "id": message.text,
        "row_key": published["row_key"],
        "day": published["date"].isoformat(),
        "kind": kind,
        "is_synthetic": is_synthetic(published["date"]),
        "timeline": _timeline(tables, reference),
        "help": redemption_help(tables, reference),
        "sections": [{"title": title, "facts": facts} for title, facts in sections.items() if facts],
        "links": _links(tables, reference),
        "guardian_set": published["guardian_set_index"],
        "guardians_of_set": len(reference.guardian_sets.get(published["guardian_set_index"], ())),
        "guardians": [
            {
                "name": reference.guardian_name(published["guardian_set_index"], signature.guardian),
                "address": f"0x{signature.guardian.hex()}",
                "observed_at": json_value(signature.observed_at),
                "is_signer": signature.is_signer,
                "signature": signature.signature.hex(),
            }
            for signature in signatures(tables, reference)
        ],
        "digest": published["digest"],
        "hash": single_digest(raw),
        "payload": published["payload"].hex(),
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
        ("Applications", "; ".join(map(application_in_words, application_ids(published, reference)))),
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
    payload = first_row(tables, "token_transfer_payload") or first_row(tables, "nft_transfer_payload")
    if not payload:
        return _moved(tables, reference)
    details, chain = first_row(tables, "token_transfer_details"), first_row(tables, "chain_details")
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
        ("Recipient", first_row(tables, "application_transfer_details").get("recipient_native_address")),
        ("Resulting token", chain.get("resulting_token_address")),
        ("Its symbol", chain.get("resulting_token_symbol")),
    ]


def _reason(details: Row) -> str | None:
    reason = details.get("reason")
    return MEANING.get(reason, reason) if reason else None


def _redemption(tables: Tables) -> Facts:
    redemption = best_redemption(tables.get("redemptions") or ())
    if redemption is None:
        return []
    return [
        ("Status", redemption["status"].replace("_", " ")),
        ("Paid out by", redemption["target_tx_id"]),
        ("Time", json_value(redemption["redeemed_at"])),
        ("Redeemer", redemption["redeemer"]),
        ("Fee, in the chain's coin", redemption["fee"]),
        ("Told by", redemption["source"]),
        ("Told on", json_value(redemption["asked_at"])),
    ]


def _moved(tables: Tables, reference: Reference) -> Facts:
    """Return what an application moves beside the bridges."""
    moved = first_row(tables, "application_transfers")
    if not moved:
        return []
    details = first_row(tables, "application_transfer_details")
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


def _payload(tables: Tables, reference: Reference) -> Facts:
    """Return what the payload says, each field once although several tables have it."""
    facts: dict[str, Any] = {}
    for name in (*_KINDS, "application_messages"):
        row = first_row(tables, name)
        for part in (row, json.loads(row.get("fields") or "{}")):
            shown_facts = dict(facts)
            for column, given in part.items():
                value = given if isinstance(given, dict | list) else json_value(given)
                if column in ("row_key", "date", "fields") or _is_shown(shown_facts, column, value):
                    continue
                # Two layers of a payload may use one word for two things.
                facts[column if column not in facts else f"{_KINDS.get(name, 'inner')}: {column}"] = value
    return [_in_words(column, value, reference) for column, value in facts.items()]


def _is_shown(facts: Mapping[str, Any], column: str, value: Any) -> bool:
    """Return whether another part of the payload has shown a field, under this name or one like it."""
    same = [name for name, before in facts.items() if before is not None and str(before) == str(value)]
    if isinstance(value, str) and len(value) >= _LENGTH_OF_IDENTITIES and value.strip("0"):
        return bool(same)
    names = {_OTHER_NAMES.get(column, column), f"{column}_address", column.rpartition("_")[2]}
    return any(name in names for name in same)


def _in_words(column: str, value: Any, reference: Reference) -> tuple[str, Any]:
    if column.endswith("chain") and isinstance(value, int):
        return column.replace("_", " "), chain_with_id(reference, value)
    if column == "payload_id":
        return "payload", f"{_PAYLOADS.get(value, 'kind')} ({value})"
    if column == "app_id" and value:
        return "application", application_in_words(value)
    if isinstance(value, dict | list):
        return column.replace("_", " "), json.dumps(value, indent=1) if value else None
    return column.replace("_", " "), value


def _timeline(tables: Tables, reference: Reference) -> list[dict[str, Any]]:
    """Return the steps of a message: ``{step, time, text, is_done}``; ``time``: None if not known."""
    published = tables["message_publication"][0]
    chain, guardians = published["emitter_chain"], signatures(tables, reference)
    of_set = len(reference.guardian_sets.get(published["guardian_set_index"], ()))
    quorum = of_set * 2 // 3 + 1
    seen = [signature.observed_at for signature in guardians if signature.observed_at]
    signers = sum(signature.is_signer for signature in guardians)
    steps = [
        ("Emitted", time_of(published["timestamp"]), f"on {chain_with_id(reference, chain)}", True),
        (
            "Observed",
            json_value(seen[0]) if seen else None,
            f"by {len(seen)} of {of_set} guardians" if seen else "nobody recorded when",
            bool(seen),
        ),
        (
            "Quorum",
            json_value(seen[quorum - 1]) if len(seen) >= quorum else None,
            f"{signers} of {of_set} guardians signed the VAA; {quorum} have to",
            True,
        ),
    ]
    if transfer := first_row(tables, "token_transfer_payload") or first_row(tables, "nft_transfer_payload"):
        steps.append(_paid_out(tables, chain_with_id(reference, transfer["target_chain"])))
    return [
        {"step": step, "time": time, "text": text, "is_done": is_done} for step, time, text, is_done in steps
    ]


def _paid_out(tables: Tables, target: str) -> tuple[str, str | None, str, bool]:
    answer = best_redemption(tables.get("redemptions") or ())
    if answer is None:
        return "Redeemed?", None, f"nobody told whether it was redeemed on {target}", False
    if answer["status"] == COMPLETED:
        return "Redeemed", json_value(answer["redeemed_at"]), f"on {target}", True
    asked = json_value(answer["asked_at"])
    return "In flight", None, f"not redeemed on {target} when it was asked, {asked}", False


def _links(tables: Tables, reference: Reference) -> dict[str, Links]:
    """Return the links of facts, by their names."""
    published, chain = tables["message_publication"][0], first_row(tables, "chain_details")
    source = published["emitter_chain"]
    emitter = native_address(reference, source, published["emitter_address"])
    by_field: dict[str, Links] = {
        "Chain": links.of_chain(source),
        "Transaction": links.of_transaction(reference, source, published["initiating_tx_id"]),
        "Emitter": links.of_account(reference, source, emitter)[1:],
        "Sender": links.of_account(reference, source, chain.get("sender_address")),
    }
    if app_id := first_row(tables, "application_messages").get("app_id"):
        by_field["application"] = [("", f"/wormhole/application/{app_id}")]
    payload = first_row(tables, "token_transfer_payload") or first_row(tables, "nft_transfer_payload")
    if payload:
        target, origin = payload["target_chain"], payload["origin_chain"]
        native = first_row(tables, "token_transfer_details").get("origin_token_address")
        by_field |= {
            "To chain": links.of_chain(target),
            "Token's chain": links.of_chain(origin),
            "Token's address": links.of_token(reference, origin, payload["origin_address"], native),
            "Receiver": links.of_account(reference, target, chain.get("receiver_address")),
            "Resulting token": links.of_account(reference, target, chain.get("resulting_token_address"))[1:],
        }
        if answer := best_redemption(tables.get("redemptions") or ()):
            paid = links.of_transaction(reference, target, answer["target_tx_id"])
            by_field["Paid out by"] = paid[1:]
    return {name: some for name, some in by_field.items() if some}


def _plain(value: Decimal | None) -> str | None:
    return None if value is None else plain_decimal(value)
