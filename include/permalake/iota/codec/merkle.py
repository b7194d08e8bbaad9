"""The Merkle tree of milestones (TIP-4): the tree of RFC 6962 with BLAKE2b-256 as its hash."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Literal

Side = Literal["left", "right"]
Path = list[tuple[Side, bytes]]

_LEAF, _NODE = b"\x00", b"\x01"


def _hash(data: bytes) -> bytes:
    return blake2b(data, digest_size=32).digest()


def merkle_root(leaves: Sequence[bytes]) -> bytes:
    """Return the root over the leaves (ids) in order; without leaves the hash of no bytes."""
    if not leaves:
        return _hash(b"")
    return _levels(leaves)[-1][0]


def _levels(leaves: Sequence[bytes]) -> list[list[bytes]]:
    # Pairing from the left and passing an odd last node up gives RFC 6962's split at the largest power of 2.
    level = [_hash(_LEAF + leaf) for leaf in leaves]
    levels = [level]
    while len(level) > 1:
        above = [_hash(_NODE + a + b) for a, b in zip(level[::2], level[1::2], strict=False)]
        if len(level) % 2:
            above.append(level[-1])
        level = above
        levels.append(level)
    return levels


def audit_path(leaves: Sequence[bytes], index: int) -> Path:
    """Return the siblings of the ``index``-th leaf from the bottom up, each with its side."""
    path: Path = []
    for level in _levels(leaves)[:-1]:
        sibling = index ^ 1
        if sibling < len(level):
            path.append(("left" if sibling < index else "right", level[sibling]))
        index //= 2
    return path


def root_from_path(leaf: bytes, path: Iterable[tuple[Side, bytes]]) -> bytes:
    """Return the root that a leaf and its audit path lead to."""
    node = _hash(_LEAF + leaf)
    for side, sibling in path:
        node = _hash(_NODE + (sibling + node if side == "left" else node + sibling))
    return node
