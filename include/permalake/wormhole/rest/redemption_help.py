"""What the page of a transfer that was not redeemed says: since when, who can redeem it, where to look.

The rules are those of the token bridge and of the NFT bridge: anybody may present the signed VAA, but for a
transfer with a payload, which its receiver alone may redeem.
"""

from __future__ import annotations

from typing import Any

from permalake.contracts.rows import Row
from permalake.web.table_pages import json_value
from permalake.wormhole.contracts.redemption_tables import COMPLETED, FAILED, IN_FLIGHT
from permalake.wormhole.reference import Reference
from permalake.wormhole.rest import links
from permalake.wormhole.rest.flows import chain_with_id
from permalake.wormhole.rest.operations import best_redemption
from permalake.wormhole.rest.vaa_documents import Tables, first_row

_WITH_PAYLOAD = 3


def redemption_help(tables: Tables, reference: Reference) -> dict[str, Any] | None:
    """Return what helps with a transfer: ``{status, since, known, steps, links}``.

    None where it was redeemed, or is no transfer of a bridge. ``status`` is None where nobody asked;
    ``since``: time of the message.
    """
    payload = first_row(tables, "token_transfer_payload") or first_row(tables, "nft_transfer_payload")
    answer = best_redemption(tables.get("redemptions") or ())
    if not payload or (answer and answer["status"] == COMPLETED):
        return None
    published, chain = tables["message_publication"][0], first_row(tables, "chain_details")
    source, target = published["emitter_chain"], payload["target_chain"]
    there = chain_with_id(reference, target)
    receiver = chain.get("receiver_address")
    sent = links.of_transaction(reference, source, published["initiating_tx_id"])[1:]
    paid = links.of_transaction(reference, target, answer["target_tx_id"])[1:] if answer else []
    received = links.of_account(reference, target, receiver)[1:]
    return {
        "status": answer["status"] if answer else None,
        "since": json_value(published["timestamp"]) if published["timestamp"].timestamp() else None,
        "known": _known(answer, there),
        "steps": [
            _who(payload, receiver, there),
            f"What it takes is the signed VAA below, and the fee of a transaction on {there}.",
            *(
                []
                if sent
                else ["The transaction that sent it, or an explorer of its chain, is unknown here."]
            ),
        ],
        "links": [
            {"text": f"{text}, {label}", "href": href}
            for text, some in (
                ("the transaction that sent it", sent),
                ("the transaction that did not redeem it", paid),
                ("its receiver", received),
            )
            for label, href in some
        ],
    }


def _known(answer: Row | None, there: str) -> str:
    if answer is None:
        return (
            f"Whether it was redeemed is unknown: nobody has asked {there}. Who runs this lake can ask, with "
            "an RPC of the chain in the settings."
        )
    asked = f"{answer['source']} was asked, {json_value(answer['asked_at'])}"
    if answer["status"] == IN_FLIGHT:
        return f"It was not redeemed on {there} when {asked}. What happened since is unknown."
    if answer["status"] == FAILED:
        return f"A transaction on {there} tried to redeem it and failed, as it was told when {asked}."
    return f"A transaction on {there} may have redeemed it: its outcome was unknown when {asked}."


def _who(payload: Row, receiver: str | None, there: str) -> str:
    if payload.get("payload_id") == _WITH_PAYLOAD:
        whom = receiver or payload["target_address"]
        return (
            f"Only its receiver on {there}, {whom}, may redeem it, as it carries a payload: usually a "
            "contract, which its application calls."
        )
    return f"Anybody may redeem it on {there}, by its bridge. The tokens go to the receiver, whoever does it."
