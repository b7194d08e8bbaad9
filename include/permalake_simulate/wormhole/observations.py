"""The guardians of a synthetic world at work: when each was observed to sign a message.

All follows from the seed and the number of the message, so that the VAAs of a world are the same with or
without it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from permalake_simulate.seeds import digest
from permalake_simulate.wormhole.bridge_world import WormholeWorld, guardian_key
from permalake_simulate.wormhole.encode_vaa import body_digest
from permalake_simulate.wormhole.message_facts import MessageFacts

_LATEST_MILLISECONDS = 40_000
_OTHERS_SEEN = 205  # of 256 guardians that did not sign the VAA


def is_observed(world: WormholeWorld, number: int) -> bool:
    """Return whether the explorer of a world recorded the observations of a message."""
    chance = digest(world.seed, "observed", number)
    return int.from_bytes(chance[:8], "big") < world.observed_share * 2**64


def observations(
    world: WormholeWorld, number: int, facts: MessageFacts, body: bytes, signatures: Mapping[int, bytes]
) -> Iterator[str]:
    """Yield the observations of a message as JSON lines: all signers of its VAA and most other guardians.

    ``signatures`` are those of the VAA by guardian.
    """
    hashed, address = body_digest(body), facts.emitter.address.hex()
    message = f"{facts.emitter.chain}/{address}/{facts.sequence}"
    guardians = world.guardian_sets[facts.guardian_set]
    begin = datetime.fromtimestamp(facts.time, UTC)
    for index, guardian in enumerate(guardians):
        chance = digest(world.seed, "observation", number, index)
        if index not in signatures and chance[0] >= _OTHERS_SEEN:
            continue
        key = guardian_key(world.seed, facts.guardian_set, index)
        signature = signatures.get(index) or key.sign_recoverable(hashed, hasher=None)
        delay = 1 + int.from_bytes(chance[1:5], "big") % _LATEST_MILLISECONDS
        at = (begin + timedelta(milliseconds=delay)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        document = {
            "sequence": facts.sequence,
            "id": f"{message}/{guardian.hex()}/{hashed.hex()}",
            "emitterChain": facts.emitter.chain,
            "emitterAddr": address,
            "hash": base64.b64encode(hashed).decode(),
            "guardianAddr": f"0x{guardian.hex()}",
            "signature": base64.b64encode(signature).decode(),
            "updatedAt": at,
            "indexedAt": at,
        }
        yield json.dumps(document, separators=(",", ":")) + "\n"
