"""Merkle trees as RFC 6962 has them, over SHA-256: roots and proofs of inclusion."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

EMPTY = sha256().digest()
"""Root of a tree without leaves."""


def leaf_hash(content: bytes) -> bytes:
    """Return the hash of a leaf."""
    return sha256(b"\0" + content).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of an inner node."""
    return sha256(b"\1" + left + right).digest()


def root(leaves: Sequence[bytes]) -> bytes:
    """Return the root over the hashes of leaves, in order."""
    level = list(leaves)
    if not level:
        return EMPTY
    while len(level) > 1:
        level = next_level(level) + level[len(level) & ~1 :]
    return level[0]


def next_level(hashes: Sequence[bytes]) -> list[bytes]:
    """Return the hash of each whole pair; a last hash without partner is left out."""
    return [node_hash(hashes[at], hashes[at + 1]) for at in range(0, len(hashes) - 1, 2)]


def inclusion_proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """Return the path of leaf ``index`` (RFC 6962, section 2.1.1), the nearest sibling first."""
    if not 0 <= index < len(leaves):
        raise IndexError(index)
    if len(leaves) == 1:
        return []
    split = _split(len(leaves))
    if index < split:
        return [*inclusion_proof(leaves[:split], index), root(leaves[split:])]
    return [*inclusion_proof(leaves[split:], index - split), root(leaves[:split])]


def root_of_inclusion(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """Return the root that a path leads to; None where the path does not fit the tree's size."""
    if not 0 <= index < size:
        return None
    node, last, current = index, size - 1, leaf
    for sibling in path:
        if last == 0:
            return None
        if node % 2 or node == last:
            current = node_hash(sibling, current)
            while node and not node % 2:
                node, last = node // 2, last // 2
        else:
            current = node_hash(current, sibling)
        node, last = node // 2, last // 2
    return current if last == 0 else None


def _split(size: int) -> int:
    """Return the largest power of two below ``size``."""
    return int(1 << (size - 1).bit_length() - 1)
