"""The Merkle tree of milestones (TIP-4): the tree of RFC 6962 with BLAKE2b-256 as its hash."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Literal

from permalake.arrays.cursor import U8

Side = Literal["left", "right"]
Path = list[tuple[Side, bytes]]

_LEAF, _NODE = b"\x00", b"\x01"


def _hash(data: bytes) -> bytes:
    return blake2b(data, digest_size=32).digest()


def merkle_root(leaves: Sequence[bytes]) -> bytes:
    """Return the root over the leaves (ids) in order; without leaves the hash of no bytes."""
    return root_of_hashes(_hashes(leaves))


def hashed_leaves(leaves: U8) -> list[bytes]:
    """Return the hashes of leaves (ids), u8[k, 32], over which :func:`root_of_hashes` is the root."""
    joined = leaves.tobytes()
    return _hashes([joined[at : at + 32] for at in range(0, len(joined), 32)])


def root_of_hashes(hashes: list[bytes]) -> bytes:
    """Return the root over leaves that are hashed already."""
    return _levels(hashes)[-1][0] if hashes else _hash(b"")


def _hashes(leaves: Iterable[bytes]) -> list[bytes]:
    return [blake2b(_LEAF + leaf, digest_size=32).digest() for leaf in leaves]


def _levels(hashes: list[bytes]) -> list[list[bytes]]:
    # Pairing from the left and passing an odd last node up gives RFC 6962's split at the largest power of 2.
    level, levels = hashes, [hashes]
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        above = [blake2b(_NODE + a + b, digest_size=32).digest() for a, b in pairs]
        if len(level) % 2:
            above.append(level[-1])
        level = above
        levels.append(level)
    return levels


def audit_path(leaves: Sequence[bytes], index: int) -> Path:
    """Return the siblings of the ``index``-th leaf from the bottom up, each with its side."""
    path: Path = []
    for level in _levels(_hashes(leaves))[:-1]:
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
