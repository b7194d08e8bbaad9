"""JSON bodies of the test data as node software writes them."""

from __future__ import annotations

# Bytes and lists that iota.go v3 leaves out when they are empty.
OPTIONAL = {"tag", "data", "metadata", "stateMetadata", "options"}


def as_nodes_write(body):
    """The body without the empty fields that only some decoders write."""
    if isinstance(body, list):
        return [as_nodes_write(one) for one in body]
    if not isinstance(body, dict):
        return body
    return {
        name: as_nodes_write(value)
        for name, value in body.items()
        if not (name in OPTIONAL and value in ("0x", []))
    }
