"""What documents of a synthetic message have in common."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from datetime import UTC, datetime

from permalake_simulate.wormhole.bridge_world import Emitter


@dataclass(frozen=True)
class MessageFacts:
    """The fields of a document beside the VAA; ``time`` in unix seconds."""

    emitter: Emitter
    sequence: int
    time: int
    guardian_set: int
    transaction: bytes

    def document(self, vaa: bytes) -> str:
        """Return the document of the VAA as a JSON line."""
        at = datetime.fromtimestamp(self.time, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        address = self.emitter.address.hex()
        document = {
            "sequence": self.sequence,
            "id": f"{self.emitter.chain}/{address}/{self.sequence}",
            "version": 1,
            "emitterChain": self.emitter.chain,
            "emitterAddr": address,
            "guardianSetIndex": self.guardian_set,
            "vaa": base64.b64encode(vaa).decode(),
            "timestamp": f"{at}Z",
            "updatedAt": f"{at}.500Z",
            "indexedAt": f"{at}.250Z",
            "txHash": self.transaction.hex(),
        }
        return json.dumps(document, separators=(",", ":")) + "\n"
