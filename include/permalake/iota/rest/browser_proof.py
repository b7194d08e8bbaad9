"""Proofs as a browser checks them: raw bytes instead of JSON, so that hashing needs no codec."""

from __future__ import annotations

from typing import Any

from permalake.iota.codec.inclusion_proof import Root
from permalake.iota.codec.merkle_proof import merkle_proof_json
from permalake.iota.codec.milestones import decode_milestone
from permalake.iota.rest import ledger
from permalake.iota.rest.cones import INCLUDED, ProvenCone, cone_of
from permalake.iota.rest.messages import protocol_of
from permalake.iota.rest.page_facts import noun_of
from permalake.iota.rest.proofs import proven_path, threshold_at
from permalake.web.problems import not_found
from permalake.web.state import RequestLake

Json = dict[str, Any]


def browser_proof(lake: RequestLake, message: ledger.Row) -> Json:
    """Return the proof that a milestone references a message, for ``site/proof.js``.

    ``tree``: a Merkle proof of all blocks (Stardust) or of included transactions (Chrysalis); for any other
    Chrysalis message ``path``, the messages from its child up to the milestone. ``trusted``: the configured
    keys that may sign the milestone, and how many have to.
    """
    protocol = protocol_of(lake)
    proof: Json = {
        "protocol": protocol,
        "noun": noun_of(lake),
        "id": message["message_id"],
        "message": message["message"].hex(),
    }
    if protocol == "chrysalis" and message["inclusion_state"] != INCLUDED:
        cone, path = proven_path(lake, message)
        proof["path"] = [step.hex() for step in cone.messages(*path)]
    else:
        cone = cone_of(lake, message["milestone_index"])
        ids = cone.ids(_root(protocol))
        own_id = bytes.fromhex(message["message_id"])
        if own_id not in ids:
            raise not_found(f"a proof of {message['message_id']}")
        proof["tree"] = merkle_proof_json(ids, ids.index(own_id), "")
    return proof | _signed(lake, cone)


def _root(protocol: str) -> Root:
    return "inclusion" if protocol == "stardust" else "applied"


def _signed(lake: RequestLake, cone: ProvenCone) -> Json:
    """Return the milestone's signed bytes and signatures, and the keys that may sign it."""
    network = lake.settings.network(lake.network)
    milestone = decode_milestone(cone.payload, protocol_of(lake))
    return {
        "milestone": {
            "index": milestone.index,
            "essence": milestone.essence.hex(),
            "signatures": [
                {"key": key.hex(), "signature": signature.hex()} for key, signature in milestone.signatures
            ],
        },
        "trusted": {
            "keys": [
                key.key
                for key in network.coordinator_public_keys
                if key.start <= cone.index and (not key.end or cone.index <= key.end)
            ],
            "threshold": threshold_at(network, cone.index),
        },
    }
