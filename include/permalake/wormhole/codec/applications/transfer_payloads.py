"""Payloads of applications inside the token bridge's transfers with payload (payload 3).

Sources: wormhole-foundation/wormhole-sdk-ts, ``core/definitions/src/protocols``:
``tokenBridge/automaticTokenBridgeLayout.ts`` (Connect), ``tokenBridge/executorTokenBridgeLayout.ts``,
``tbtc/tbtcLayout.ts``, ``portico/porticoLayout.ts``.
"""

from __future__ import annotations

from typing import Any

from permalake.wormhole.codec.payload_reader import PayloadReader

CONNECT_SIZE = 97
"""Bytes of a relayed transfer's payload."""


def read_connect(payload: bytes) -> dict[str, Any]:
    """Read a relayed transfer of Connect, or of CCTP; raise LayoutError if it is not one."""
    reader = PayloadReader(payload)
    reader.expect(b"\x01")
    return {
        "relayer_fee": reader.uint256(),
        "to_native_amount": reader.uint256(),
        "recipient": reader.word(),
    }


def read_recipient(payload: bytes) -> dict[str, Any]:
    """Read the recipient behind a tBTC gateway or the executor's relay contract."""
    return {"recipient": PayloadReader(payload).word()}


def read_portico(payload: bytes) -> dict[str, Any]:
    """Read a Portico swap; its flags are little-endian."""
    reader = PayloadReader(payload)
    flags = reader.raw(32)
    return {
        "target_chain": int.from_bytes(flags[:2], "little"),
        "bridge_nonce": int.from_bytes(flags[2:6], "little"),
        "fee_tier_start": int.from_bytes(flags[6:9], "little"),
        "fee_tier_finish": int.from_bytes(flags[9:12], "little"),
        "wrap_native": bool(flags[31] & 1),
        "unwrap_native": bool(flags[31] & 2),
        "final_token": reader.word(),
        "recipient": reader.word(),
        "canonical_amount": reader.uint256(),
        "minimum_amount": reader.uint256(),
        "relayer_fee": reader.uint256(),
    }
