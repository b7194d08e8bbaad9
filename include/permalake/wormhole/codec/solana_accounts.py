"""The part of Solana's addresses and accounts that chain details need.

Base58, addresses that programs derive, SPL token accounts and mints, Metaplex metadata.

Sources: the Solana documentation on program derived addresses; the bridges' programs for the seeds of wrapped
mints (wormhole-foundation/wormhole, ``solana/modules``); the layouts of the SPL token program (account: mint,
owner, amount, …; mint: authority, supply, decimals, …) and of Metaplex token metadata (key, update authority,
mint, then name, symbol and URI as Borsh strings).
"""

from __future__ import annotations

import hashlib

from permalake.wormhole.codec.native_addresses import BASE58, base58

_VALUES = {letter: value for value, letter in enumerate(BASE58)}
_KEY = 32
_TOKEN_ACCOUNT = 165
_MINT_DECIMALS = 44
_MINT = 82
_METADATA_TEXTS = 1 + _KEY + _KEY

# The field and the constant d of Edwards25519 (RFC 8032, 5.1).
_P = 2**255 - 19
_D = -121665 * pow(121666, -1, _P) % _P

TOKEN_PROGRAMS = (
    "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA",
    "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb",
)
"""SPL Token and Token-2022."""
METADATA_PROGRAM = "metaqbxxUerdq28cj1RbAWkYQm3ybzjb6a8bt518x1s"
"""Metaplex token metadata."""


def from_base58(text: str) -> bytes | None:
    """Decode base58 text; return None if it is not base58."""
    number = 0
    for letter in text:
        value = _VALUES.get(letter)
        if value is None:
            return None
        number = number * 58 + value
    zeros = len(text) - len(text.lstrip("1"))
    return bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8, "big")


def derived_address(program: str, *seeds: bytes) -> str:
    """Derive a program's address from seeds: the first hash, by falling bump, that is not on the curve.

    Raises :class:`ValueError` when the program is not an address.
    """
    owner = from_base58(program)
    if owner is None or len(owner) != _KEY:
        raise ValueError(f"{program} is no address of Solana")
    for bump in range(255, -1, -1):
        joined = b"".join((*seeds, bytes([bump]), owner, b"ProgramDerivedAddress"))
        candidate = hashlib.sha256(joined).digest()
        if not on_curve(candidate):
            return base58(candidate)
    raise ValueError("no bump gives an address")  # one in 2^256


def on_curve(key: bytes) -> bool:
    """Whether 32 bytes are the compressed form of a point of Edwards25519."""
    y = int.from_bytes(key, "little") % 2**255 % _P
    above, below = (y * y - 1) % _P, (_D * y * y + 1) % _P
    # x² = above / below has a root; below is never 0, as -1/d is no square.
    return above == 0 or pow(above * below, (_P - 1) // 2, _P) == 1


def wrapped_mint(token_bridge: str, chain: int, address: bytes) -> str:
    """Return the mint by which the token bridge wraps a token of another chain."""
    return derived_address(token_bridge, b"wrapped", chain.to_bytes(2, "big"), address)


def wrapped_nft(nft_bridge: str, chain: int, address: bytes, token_id: int) -> str:
    """Return the mint by which the NFT bridge wraps one NFT of another chain."""
    seeds = b"wrapped", chain.to_bytes(2, "big"), address, token_id.to_bytes(_KEY, "big")
    return derived_address(nft_bridge, *seeds)


def metadata_account(mint: str) -> str:
    """Return the account of a mint's Metaplex metadata; raise ValueError when the mint is not an address."""
    key = from_base58(mint)
    program = from_base58(METADATA_PROGRAM)
    if key is None or program is None:
        raise ValueError(f"{mint} is no address of Solana")
    return derived_address(METADATA_PROGRAM, b"metadata", program, key)


def token_account_owner(data: bytes) -> str | None:
    """Return the owner in the bytes of a token account; None if they are not one."""
    return base58(data[_KEY : 2 * _KEY]) if len(data) >= _TOKEN_ACCOUNT else None


def mint_decimals(data: bytes) -> int | None:
    """Return the decimals in the bytes of a mint; None if they are not one."""
    return data[_MINT_DECIMALS] if len(data) >= _MINT and len(data) != _TOKEN_ACCOUNT else None


def metadata_texts(data: bytes) -> tuple[str, str] | None:
    """(symbol, name) in the bytes of a metadata account, padding removed; None when they are none."""
    texts = []
    at = _METADATA_TEXTS
    for _ in range(2):
        length = int.from_bytes(data[at : at + 4], "little")
        value = data[at + 4 : at + 4 + length]
        if len(data) < at + 4 or len(value) != length:
            return None
        texts.append(value.decode("utf-8", "replace").strip("\0"))
        at += 4 + length
    name, symbol = texts
    return symbol, name
