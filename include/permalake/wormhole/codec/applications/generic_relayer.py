"""Generic relayer: delivery and redelivery instructions.

Sources: wormhole-foundation/wormhole-sdk-ts, ``core/definitions/src/protocols/relayer/relayerLayout.ts``; for
message keys of other types the relayer contract's ``WormholeRelayerSerde.sol``.
"""

from __future__ import annotations

from permalake.wormhole.codec.payload_fields import Fields
from permalake.wormhole.codec.payload_reader import LayoutError, PayloadReader

_VAA_KEY, _CCTP_KEY = 1, 2
_EXECUTION_INFO = 96
_VERSION = 32


def read_relayer(payload: bytes) -> tuple[str, Fields]:
    """Return kind and fields of a relayer's message; raise LayoutError if it is not one."""
    reader = PayloadReader(payload)
    match reader.number(1):
        case 1:
            return "delivery", _delivery(reader)
        case 2:
            return "redelivery", _redelivery(reader)
        case other:
            raise LayoutError(f"payload id {other}")


def _delivery(reader: PayloadReader) -> Fields:
    fields: Fields = {"target_chain": reader.number(2), "target_address": reader.word()}
    fields["payload"] = reader.raw(reader.number(4)).hex()
    fields["requested_receiver_value"] = reader.uint256()
    fields["extra_receiver_value"] = reader.uint256()
    fields |= _execution_info(reader)
    fields |= {"refund_chain": reader.number(2), "refund_address": reader.word()}
    names = ("refund_delivery_provider", "source_delivery_provider", "sender_address")
    fields |= {name: reader.word() for name in names}
    fields["message_keys"] = reader.repeated(reader.number(1), lambda: _message_key(reader))
    return fields


def _redelivery(reader: PayloadReader) -> Fields:
    fields: Fields = {"delivery": _message_key(reader), "target_chain": reader.number(2)}
    fields["requested_receiver_value"] = reader.uint256()
    fields |= _execution_info(reader)
    return {**fields, "source_delivery_provider": reader.word(), "sender_address": reader.word()}


def _execution_info(reader: PayloadReader) -> Fields:
    """Read gas limit and refund per unused gas of EVM chains; other encodings stay hex."""
    info = reader.raw(reader.number(4))
    if len(info) != _EXECUTION_INFO or any(info[:_VERSION]):
        return {"execution_info": info.hex()}
    words = PayloadReader(info[_VERSION:])
    return {"gas_limit": words.uint256(), "refund_per_gas_unused": words.uint256()}


def _message_key(reader: PayloadReader) -> Fields:
    kind = reader.number(1)
    if kind == _VAA_KEY:
        return {"chain": reader.number(2), "emitter": reader.word(), "sequence": str(reader.number(8))}
    key = PayloadReader(reader.raw(reader.number(4)))
    if kind == _CCTP_KEY:
        return {"circle_domain": key.number(4), "circle_nonce": str(key.number(8))}
    return {"key_type": kind, "key": key.rest().hex()}
