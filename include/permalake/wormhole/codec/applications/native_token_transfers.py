"""Native Token Transfers (NTT): messages of transceivers, and the manager messages inside.

Source: wormhole-foundation/native-token-transfers, ``sdk/definitions/src/layouts``. A prefix of four bytes
tells each message, whoever emits it.
"""

from __future__ import annotations

from permalake.wormhole.codec.payload_fields import Fields
from permalake.wormhole.codec.payload_reader import LayoutError, PayloadReader

_TRANSCEIVER = bytes.fromhex("9945ff10")
_INFO = bytes.fromhex("9c23bd3b")
_REGISTRATION = bytes.fromhex("18fc67c2")
_TRANSFER = bytes.fromhex("994e5454")
_GENERIC = bytes.fromhex("99474d50")
_MULTI_TOKEN = bytes.fromhex("994d5454")
_MODES = {0: "locking", 1: "burning"}

NTT_PREFIXES = (_TRANSCEIVER, _INFO, _REGISTRATION)
"""First four bytes of the messages that Wormhole transceivers emit."""


def read_ntt(payload: bytes) -> tuple[str, Fields]:
    """Return kind and fields of a transceiver's message; raise LayoutError if it is not one."""
    reader = PayloadReader(payload)
    prefix = reader.raw(4)
    if prefix == _INFO:
        fields: Fields = {"manager": reader.word()}
        mode = reader.number(1)
        fields["mode"] = _MODES.get(mode, str(mode))
        return "transceiver_info", {**fields, "token": reader.word(), "decimals": reader.number(1)}
    if prefix == _REGISTRATION:
        return "transceiver_registration", {"chain": reader.number(2), "transceiver": reader.word()}
    if prefix != _TRANSCEIVER:
        raise LayoutError(f"prefix {prefix.hex()}")
    managers = {"source_manager": reader.word(), "recipient_manager": reader.word()}
    kind, message = _manager_message(reader.raw(reader.number(2)))
    transceiver_payload = reader.raw(reader.number(2)).hex()
    return kind, {**managers, **message, "transceiver_payload": transceiver_payload}


def _manager_message(payload: bytes) -> tuple[str, Fields]:
    reader = PayloadReader(payload)
    header = {"id": reader.word(), "sender": reader.word()}
    kind, fields = _body(reader.raw(reader.number(2)))
    return kind, {**header, **fields}


def _body(payload: bytes) -> tuple[str, Fields]:
    prefix = payload[:4]
    if prefix == _TRANSFER:
        return "transfer", _transfer(PayloadReader(payload))
    if prefix == _GENERIC:
        reader = PayloadReader(payload)
        reader.expect(_GENERIC)
        fields: Fields = {
            "target_chain": reader.number(2),
            "callee": reader.word(),
            "caller": reader.word(),
        }
        data = reader.raw(reader.number(2))
        if data[:4] == _MULTI_TOKEN:
            return "multi_token_transfer", {**fields, **_multi_token(PayloadReader(data))}
        return "generic_message", {**fields, "data": data.hex()}
    return "manager_message", {"payload": payload.hex()}


def _transfer(reader: PayloadReader) -> Fields:
    reader.expect(_TRANSFER)
    fields = _amount(reader) | {
        "source_token": reader.word(),
        "recipient": reader.word(),
        "target_chain": reader.number(2),
    }
    # Transfers without an additional payload may lack its length, too.
    extra = reader.raw(reader.number(2)).hex() if reader.remaining else ""
    return {**fields, "additional_payload": extra}


def _multi_token(reader: PayloadReader) -> Fields:
    reader.expect(_MULTI_TOKEN)
    fields = _amount(reader)
    fields |= {"name": reader.text(32), "symbol": reader.text(32), "decimals": reader.number(1)}
    fields |= {"token_chain": reader.number(2), "source_token": reader.word()}
    fields |= {"token_sender": reader.word(), "recipient": reader.word()}
    return {**fields, "additional_payload": reader.raw(reader.number(2)).hex()}


def _amount(reader: PayloadReader) -> Fields:
    """Read a trimmed amount: its own decimals, at most 8, and a u64."""
    return {"amount_decimals": reader.number(1), "amount": str(reader.number(8))}
