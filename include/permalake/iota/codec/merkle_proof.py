"""Merkle proofs in the JSON of inx-poi: the audit path of a leaf as nested nodes (TIP-4).

A node is ``{"l": X, "r": X}``, where one side is the hash of a subtree, ``{"h": hex}``, and the other side
leads to the leaf, ``{"value": hex}``. A tree of one leaf is ``{"l": {"value": hex}}``, as in Chronicle.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from permalake.iota.codec.faults import json_shape
from permalake.iota.codec.merkle import Path, audit_path, root_from_path

Json = dict[str, Any]
# No tree is deeper: a milestone would have to reference 2**64 blocks.
MAX_DEPTH = 64
_HASH = re.compile("[0-9a-f]{64}")


def merkle_proof_json(ids: Sequence[bytes], index: int, prefix: str) -> Json:
    """Return the proof of ``ids[index]``; ``prefix`` precedes the hex (``0x`` or nothing)."""
    node: Json = {"value": prefix + ids[index].hex()}
    path = audit_path(ids, index)
    if not path:
        return {"l": node}
    for side, sibling in path:
        other = {"h": prefix + sibling.hex()}
        node = {"l": other, "r": node} if side == "left" else {"l": node, "r": other}
    return node


def proven_leaf(proof: Mapping[str, Any], prefix: str) -> tuple[bytes, bytes]:
    """Return the leaf of a proof, and the root that follows from it.

    Raises:
        MalformedJsonError: If the proof has another shape, or is deeper than 64 nodes.
    """
    with json_shape("Merkle proof"):
        if set(proof) == {"l"}:
            leaf = _only_hash(proof["l"], "value", prefix)
            return leaf, root_from_path(leaf, [])
        path: Path = []
        node = proof
        while set(node) == {"l", "r"}:
            if len(path) == MAX_DEPTH:
                raise ValueError(f"it is deeper than {MAX_DEPTH} nodes")
            if set(node["l"]) == {"h"}:
                path.append(("left", _only_hash(node["l"], "h", prefix)))
                node = node["r"]
            else:
                path.append(("right", _only_hash(node["r"], "h", prefix)))
                node = node["l"]
        leaf = _only_hash(node, "value", prefix)
    return leaf, root_from_path(leaf, reversed(path))


def _only_hash(node: Mapping[str, str], name: str, prefix: str) -> bytes:
    """Return the 32 bytes of a node that holds nothing else."""
    (digest,) = node
    text = node[name]
    if digest != name or not text.startswith(prefix) or not _HASH.fullmatch(text, len(prefix)):
        raise ValueError(f"{name!r} must be 32 bytes in lower-case hex")
    return bytes.fromhex(text[len(prefix) :])
