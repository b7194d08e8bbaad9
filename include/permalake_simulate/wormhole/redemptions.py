"""The destination side of a synthetic world: operations that tell what became of transfers.

All follows from the seed and the number of the message, so that the VAAs of a world are the same with or
without it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from permalake.wormhole.codec.native_addresses import base58
from permalake_simulate.seeds import digest
from permalake_simulate.wormhole.bridge_world import SOLANA, Emitter

_STATES = (("completed", 0.86), ("in_flight", 0.06), ("failed", 0.02), ("unknown", 0.02), ("untold", 0.04))
_QUICK, _SLOW = 900, 3 * 86_400
"""Most redemptions take so many seconds at most; one in twenty takes up to the second number."""


@dataclass(frozen=True)
class Sent:
    """A transfer of a token or an NFT; ``token`` is None where it is wrapped on the target chain."""

    target_chain: int
    receiver: bytes
    token: bytes | None
    is_plain: bool


def state_of(seed: int, number: int) -> str:
    """Return what the explorer knows of a transfer by its message; ``untold``: it has no operation."""
    chance = _share(digest(seed, "redemption", number))
    for state, share in _STATES:
        chance -= share
        if chance < 0:
            return state
    return _STATES[-1][0]


def operation(
    seed: int, number: int, sent: Sent, *, emitter: Emitter, sequence: int, time: int
) -> str | None:
    """Return the operation of a transfer as a JSON line; None where the explorer has none."""
    state = state_of(seed, number)
    if state == "untold":
        return None
    told: dict[str, Any] = {
        "id": f"{emitter.chain}/{emitter.address.hex()}/{sequence}",
        "emitterChain": emitter.chain,
        "sequence": str(sequence),
        "sourceChain": {"chainId": emitter.chain, "timestamp": _spelled(time), "status": "confirmed"},
    }
    if state != "in_flight":
        told["targetChain"] = _target(seed, number, time, sent, state)
    return json.dumps(told, separators=(",", ":")) + "\n"


def _target(seed: int, number: int, time: int, sent: Sent, state: str) -> dict[str, Any]:
    chance = digest(seed, "redeemed", number)
    longest = _SLOW if chance[0] < 13 else _QUICK
    seconds = 20 + int(_share(chance[1:9]) * longest)
    made = digest(seed, "target tx", number)
    target: dict[str, Any] = {
        "chainId": sent.target_chain,
        "timestamp": _spelled(time + seconds),
        "transaction": {"txHash": _native(sent.target_chain, made, whole=True)},
        "status": state,
        "from": _native(sent.target_chain, digest(seed, "relayer", chance[9] % 5)),
        "fee": f"0.{1 + int.from_bytes(chance[10:14], 'big'):018d}",
    }
    if state == "completed" and sent.is_plain and sent.token is not None:
        paid = {"recipient": sent.receiver, "tokenAddress": sent.token}
        target["balanceChanges"] = [{name: _native(sent.target_chain, value) for name, value in paid.items()}]
    return target


def _native(chain: int, value: bytes, *, whole: bool = False) -> str:
    if chain == SOLANA:
        return base58(value + value if whole else value)
    return f"0x{value.hex() if whole else value[12:].hex()}"


def _share(chance: bytes) -> float:
    return int.from_bytes(chance[:8], "big") / 2**64


def _spelled(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
