"""Payloads of applications inside the token bridge's transfers with payload (payload 3).

Sources: wormhole-foundation/wormhole-sdk-ts, ``core/definitions/src/protocols``:
``tokenBridge/automaticTokenBridgeLayout.ts`` (Connect), ``tokenBridge/executorTokenBridgeLayout.ts``,
``tbtc/tbtcLayout.ts``, ``portico/porticoLayout.ts``. Gateway: wormhole-foundation/wormhole,
``cosmwasm/contracts/ibc-translator/src/msg.rs``.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import bech32

from permalake.wormhole.codec.payload_fields import Fields
from permalake.wormhole.codec.payload_reader import WORD_SIZE, LayoutError, PayloadReader

CONNECT_SIZE = 97
"""Bytes of a relayed transfer's payload."""
_GATEWAY = {"gateway_transfer": "recipient", "gateway_transfer_with_payload": "contract"}
"""Forms of a transfer through Gateway, and the field that names who receives it."""
_HIGHEST_CHAIN = 65_535


def read_connect(payload: bytes) -> Fields:
    """Read a relayed transfer of Connect, or of CCTP; raise LayoutError if it is not one."""
    reader = PayloadReader(payload)
    reader.expect(b"\x01")
    return {
        "relayer_fee": reader.uint256(),
        "to_native_amount": reader.uint256(),
        "recipient": reader.word(),
    }


def read_recipient(payload: bytes) -> Fields:
    """Read the recipient behind a tBTC gateway or the executor's relay contract."""
    return {"recipient": PayloadReader(payload).word()}


def read_gateway(payload: bytes) -> Fields:
    """Read a transfer through Wormhole Gateway to a Cosmos chain: JSON of one form.

    The receiver is the base64 of its bech32 text; here its 20 or 32 bytes, padded to 32.
    """
    try:
        ((form, fields),) = json.loads(payload).items()
        chain, text = fields["chain"], base64.b64decode(fields[_GATEWAY[form]], validate=True).decode("ascii")
        _, words = bech32.bech32_decode(text)
        account = bytes(bech32.convertbits(words or [], 5, 8, False) or [])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise LayoutError("not a transfer through Gateway") from error
    if len(account) not in {20, WORD_SIZE} or not _is_chain(chain):
        raise LayoutError(f"no account of a chain: {text}")
    return {"target_chain": chain, "recipient": account.rjust(WORD_SIZE, b"\0").hex()}


def _is_chain(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _HIGHEST_CHAIN


def read_portico(payload: bytes) -> Fields:
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
