"""Makes VAAs: bodies, guardian signatures and bridge payloads.

Layouts as in :mod:`permalake.wormhole.codec.vaa` and :mod:`permalake.wormhole.codec.bridge_payloads`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

from coincurve import PrivateKey
from sha3 import keccak_256

from permalake.wormhole.codec.vaa import VERSION


def guardian_address(secret: bytes) -> bytes:
    """Return the 20-byte address of a guardian's 32-byte secret key."""
    public = PrivateKey(secret).public_key.format(compressed=False)
    digest: bytes = keccak_256(public[1:]).digest()
    return digest[-20:]


def encode_body(
    *,
    timestamp: int,
    nonce: int,
    emitter_chain: int,
    emitter_address: bytes,
    sequence: int,
    consistency_level: int,
    payload: bytes,
) -> bytes:
    """Encode the body of a VAA, the part that guardians sign."""
    fixed = struct.pack(
        ">IIH32sQB", timestamp, nonce, emitter_chain, emitter_address, sequence, consistency_level
    )
    return fixed + payload


def body_digest(body: bytes) -> bytes:
    """Return keccak256(keccak256(body))."""
    digest: bytes = keccak_256(keccak_256(body).digest()).digest()
    return digest


def sign_body(body: bytes, secrets: Mapping[int, bytes]) -> list[tuple[int, bytes]]:
    """Signatures ``(guardian index, r || s || recovery id)`` of the given guardians, by rising index."""
    digest = body_digest(body)
    return [
        (index, PrivateKey(secret).sign_recoverable(digest, hasher=None))
        for index, secret in sorted(secrets.items())
    ]


def encode_vaa(
    guardian_set_index: int, signatures: Iterable[tuple[int, bytes]], body: bytes, version: int = VERSION
) -> bytes:
    """Encode a VAA; the signatures stay in the order given."""
    listed = [struct.pack(">B65s", index, signature) for index, signature in signatures]
    return struct.pack(">BIB", version, guardian_set_index, len(listed)) + b"".join(listed) + body


def encode_transfer(
    *,
    amount: int,
    origin_address: bytes,
    origin_chain: int,
    target_address: bytes,
    target_chain: int,
    fee: int,
) -> bytes:
    """Token bridge payload 1."""
    token = struct.pack(">B32s32sH", 1, _word(amount), origin_address, origin_chain)
    return token + struct.pack(">32sH32s", target_address, target_chain, _word(fee))


def encode_transfer_with_payload(
    *,
    amount: int,
    origin_address: bytes,
    origin_chain: int,
    target_address: bytes,
    target_chain: int,
    from_address: bytes,
    app_payload: bytes,
) -> bytes:
    """Token bridge payload 3."""
    token = struct.pack(">B32s32sH", 3, _word(amount), origin_address, origin_chain)
    return token + struct.pack(">32sH32s", target_address, target_chain, from_address) + app_payload


def encode_asset_meta(
    *, token_address: bytes, token_chain: int, decimals: int, symbol: bytes, name: bytes
) -> bytes:
    """Token bridge payload 2; texts are padded on the right with NUL, longer ones cut to 32 bytes."""
    return struct.pack(">B32sHB32s32s", 2, token_address, token_chain, decimals, symbol, name)


def encode_nft_transfer(
    *,
    origin_address: bytes,
    origin_chain: int,
    symbol: bytes,
    name: bytes,
    token_id: int,
    uri: bytes,
    target_address: bytes,
    target_chain: int,
) -> bytes:
    """NFT bridge payload 1; the URI has at most 255 bytes."""
    token = struct.pack(">B32sH32s32s32s", 1, origin_address, origin_chain, symbol, name, _word(token_id))
    return token + struct.pack(">B", len(uri)) + uri + struct.pack(">32sH", target_address, target_chain)


def _word(value: int) -> bytes:
    return value.to_bytes(32, "big")
