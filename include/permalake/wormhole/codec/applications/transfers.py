"""The transfer of an application's message: token, amount, sender, recipient, fee.

Null is what a message does not say: Mayan's MCTP leaves amount and token to Circle's message, the trader of
a Swift order stays on the source chain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast

from permalake.wormhole.codec.applications.circle_integration import CIRCLE_DOMAINS
from permalake.wormhole.codec.applications.decode import ApplicationMessage
from permalake.wormhole.codec.payload_fields import Fields
from permalake.wormhole.codec.payload_reader import PayloadReader

Transfer = Fields

PASSING_LAYOUTS = ("gateway",)
"""Layouts of contracts that pass a transfer on to a chain behind the one that the token bridge names."""


class DecodedMessage(NamedTuple):
    """The fields of a message, the chain of its emitter and the whole payload."""

    fields: Fields
    chain: int
    payload: bytes


def transfer_of(message: ApplicationMessage, chain: int, payload: bytes) -> Transfer | None:
    """Return the columns of ``application_transfers`` that a message of ``chain`` has; None if it moves none.

    The message that a delivery carries goes before the delivery. ``in_token_transfers``: the token bridge
    moves this amount, and its own tables count it.
    """
    carried = message.inner or message
    read = _TRANSFERS.get((carried.layout, carried.kind))
    return (
        None
        if read is None
        else {"in_token_transfers": 0, **read(DecodedMessage(carried.fields, chain, payload))}
    )


def _ntt(decoded: DecodedMessage) -> Transfer:
    fields = decoded.fields
    return {
        "token_chain": fields.get("token_chain", decoded.chain),
        "token_address": fields["source_token"],
        "amount": fields["amount"],
        "amount_decimals": fields["amount_decimals"],
        "sender_address": fields.get("token_sender", fields["sender"]),
        "recipient_address": fields["recipient"],
        "target_chain": fields["target_chain"],
    }


def _circle(decoded: DecodedMessage) -> Transfer:
    fields = decoded.fields
    return {
        "token_chain": decoded.chain,
        "token_address": fields["token_address"],
        "amount": fields["amount"],
        "sender_address": fields["caller"],
        "recipient_address": fields.get("recipient", fields["mint_recipient"]),
        "target_chain": CIRCLE_DOMAINS.get(cast(int, fields["target_domain"])),
        "fee": fields.get("relayer_fee"),
    }


def _bridged(decoded: DecodedMessage) -> Transfer:
    fields = decoded.fields
    reader = PayloadReader(decoded.payload)
    reader.expect(b"\x03")
    transfer: Transfer = {"amount": reader.uint256(), "token_address": reader.word()}
    transfer |= {"token_chain": reader.number(2)}
    reader.word()
    transfer |= {"target_chain": reader.number(2), "sender_address": reader.word(), "in_token_transfers": 1}
    return {**transfer, "recipient_address": fields["recipient"], "fee": fields.get("relayer_fee")}


def _gateway(decoded: DecodedMessage) -> Transfer:
    return {**_bridged(decoded), "target_chain": decoded.fields["target_chain"]}


def _swift(decoded: DecodedMessage) -> Transfer:
    fields = decoded.fields
    return {
        "token_chain": fields["target_chain"],
        "token_address": fields["token_out"],
        "amount": fields["promised_amount"],
        "recipient_address": fields["recipient"],
        "target_chain": fields["target_chain"],
    }


def _mctp(decoded: DecodedMessage) -> Transfer:
    fields = decoded.fields
    return {"recipient_address": fields["recipient"], "fee": fields["redeem_fee"]}


_TRANSFERS: dict[tuple[str | None, str], Callable[[DecodedMessage], Transfer]] = {
    ("ntt", "transfer"): _ntt,
    ("ntt", "multi_token_transfer"): _ntt,
    ("circle", "deposit_with_payload"): _circle,
    ("circle", "transfer_with_relay"): _circle,
    **dict.fromkeys(
        ((layout, "transfer_with_payload") for layout in ("connect", "recipient", "portico")), _bridged
    ),
    ("gateway", "transfer_with_payload"): _gateway,
    ("mayan_swift", "fulfill"): _swift,
    ("mayan_mctp", "bridge_with_fee"): _mctp,
}
