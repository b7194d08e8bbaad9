"""Ed25519 as the protocol checks it: the criteria of ZIP-215 (TIP-14), which are laxer than most libraries'.

Libraries differ on signatures with points of small order or with several encodings. Nodes accept these, and
so does Zebra's library, which was written for these criteria.
"""

from __future__ import annotations

from ed25519_zebra import ed_verify


def is_valid(public_key: bytes, signature: bytes, message: bytes) -> bool:
    """Return whether ``signature`` (64 bytes) of ``message`` is by ``public_key`` (32 bytes)."""
    return bool(ed_verify(signature, message, public_key))
