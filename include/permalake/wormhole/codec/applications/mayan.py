"""Mayan Swift and MCTP: messages of an order's settlement.

Source: mayan-finance/swap-bridge, ``src/MayanSwift.sol`` and ``src/MayanCircle.sol`` (its version of October
2024, ``4277ba9``, for messages in plain form). Later versions of MCTP publish only the hash of a message: its
amount and recipient lie in the calldata and in Circle's message.
"""

from __future__ import annotations

from permalake.wormhole.codec.payload_fields import Fields
from permalake.wormhole.codec.payload_reader import WORD_SIZE, LayoutError, PayloadReader


def read_swift(payload: bytes) -> tuple[str, Fields]:
    """Return kind and fields of a Swift message; raise LayoutError if it is not one."""
    reader = PayloadReader(payload)
    match reader.number(1):
        case 1:
            action = "fulfill", _fulfill(reader)
        case 2:
            action = "unlock", _unlock(reader)
        case 3:
            action = "refund", _refund(reader)
        case 4:
            orders = reader.repeated(reader.number(2), lambda: _unlock(reader))
            action = "batch_unlock", {"orders": orders}
        case other:
            raise LayoutError(f"action {other}")
    reader.end()
    return action


def read_mctp(payload: bytes) -> tuple[str, Fields]:
    """Return kind and fields of an MCTP message; raise LayoutError if it is not one."""
    reader = PayloadReader(payload)
    if len(payload) == WORD_SIZE:
        return "message_hash", {"hash": reader.word()}
    action = reader.number(1)
    reader.expect(b"\x01")
    decoded: tuple[str, Fields]
    match action:
        case 1:
            decoded = "order", {"order_hash": reader.word()}
        case 3:
            decoded = "bridge_with_fee", {**_circle(reader), **_bridged(reader)}
        case 4:
            decoded = "unlock_fee", {**_circle(reader), **_unlocked(reader)}
        case 5:
            fields = {**_circle(reader), **_unlocked(reader)}
            decoded = "unlock_fee_refined", {**fields, "recipient": reader.word()}
        case other:
            raise LayoutError(f"action {other}")
    reader.end()
    return decoded


def _u64(reader: PayloadReader) -> str:
    return str(reader.number(8))


def _unlock(reader: PayloadReader) -> Fields:
    fields: Fields = {"order_hash": reader.word(), "source_chain": reader.number(2)}
    return {**fields, "token_in": reader.word(), "recipient": reader.word()}


def _refund(reader: PayloadReader) -> Fields:
    fields = _unlock(reader) | {"canceler": reader.word()}
    return {**fields, "cancel_fee": _u64(reader), "refund_fee": _u64(reader)}


def _fulfill(reader: PayloadReader) -> Fields:
    fields = _unlock(reader)  # its last word is the recipient here, too
    fields |= {"target_chain": reader.number(2), "token_out": reader.word()}
    fields |= {name: _u64(reader) for name in ("promised_amount", "gas_drop", "deadline")}
    fields |= {"referrer": reader.word(), "referrer_bps": reader.number(1)}
    return {**fields, "protocol_bps": reader.number(1), "driver": reader.word()}


def _circle(reader: PayloadReader) -> Fields:
    return {"circle_nonce": _u64(reader), "circle_domain": reader.number(4)}


def _bridged(reader: PayloadReader) -> Fields:
    return {"recipient": reader.word(), "gas_drop": _u64(reader), "redeem_fee": _u64(reader)}


def _unlocked(reader: PayloadReader) -> Fields:
    return {"unlocker": reader.word(), "gas_drop": _u64(reader)}
