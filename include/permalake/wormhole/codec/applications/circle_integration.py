"""Wormhole's integration of Circle's CCTP: deposits with a payload.

Source: wormhole-foundation/wormhole-sdk-ts,
``core/definitions/src/protocols/circleBridge/automaticCircleBridgeLayout.ts``.
"""

from __future__ import annotations

from permalake.wormhole.codec.applications.transfer_payloads import CONNECT_SIZE, read_connect
from permalake.wormhole.codec.payload_fields import Fields
from permalake.wormhole.codec.payload_reader import LayoutError, PayloadReader

CIRCLE_DOMAINS = {0: 2, 1: 6, 2: 24, 3: 23, 5: 1, 6: 30, 7: 5, 8: 21, 9: 22, 10: 44}
"""Wormhole chain ids by CCTP domain (wormhole-sdk-ts, ``core/base/src/constants/circle.ts``)."""


def read_circle(payload: bytes) -> tuple[str, Fields]:
    """Return kind and fields of a deposit; raise LayoutError if it is not one."""
    reader = PayloadReader(payload)
    reader.expect(b"\x01")
    fields: Fields = {"token_address": reader.word(), "amount": reader.uint256()}
    fields |= {"source_domain": reader.number(4), "target_domain": reader.number(4)}
    fields |= {
        "circle_nonce": str(reader.number(8)),
        "caller": reader.word(),
        "mint_recipient": reader.word(),
    }
    inner = reader.raw(reader.number(2))
    if len(inner) == CONNECT_SIZE:
        try:
            return "transfer_with_relay", {**fields, **read_connect(inner)}
        except LayoutError:
            pass
    return "deposit_with_payload", {**fields, "payload": inner.hex()}
