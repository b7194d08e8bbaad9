"""The verification of an IOTA day's input, for the day's manifest."""

from __future__ import annotations

from typing import cast

import pyarrow.compute as pc

from permalake.config import Settings
from permalake.transparency.documents import Evidence, SignedKey
from permalake.transparency.manifest import Rows

_RULES = (
    "The id of every message is the BLAKE2b-256 hash of its bytes.",
    "The messages that a milestone references, in white-flag order, hash to the Merkle roots that it signs.",
    "The signatures of every milestone are valid.",
)


def evidence(settings: Settings, network: str, rows: Rows) -> Evidence:
    """Return the rules, the day's milestones, and the coordinator's keys that counted (null: unchecked)."""
    indices = rows("milestones").to_table(columns=["milestone_index"])["milestone_index"]
    configured = settings.networks.get(network)
    keys = configured.coordinator_public_keys if configured else ()
    return {
        "rules": list(_RULES),
        "protocol": configured.protocol if configured else None,
        "settings": {
            "bech32_hrp": configured.bech32_hrp,
            "chunk_size": configured.chunk_size,
            "look_back": configured.look_back,
            "transaction_signatures": configured.transaction_signatures,
        }
        if configured
        else None,
        "milestones": {
            "first": pc.min(indices).as_py(),
            "last": pc.max(indices).as_py(),
            "count": len(indices),
        },
        "coordinator": {
            "threshold": configured.coordinator_threshold,
            "keys": [cast(SignedKey, key.model_dump(mode="json")) for key in keys],
        }
        if configured and keys
        else None,
    }
