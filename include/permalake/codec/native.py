"""32-byte Wormhole addresses in the form that their own chain writes.

EVM: 0x and the last 20 bytes. Solana: base58. Cosmos: bech32 of 20 or 32 bytes under the chain's prefix.
Algorand: base32 with checksum, assets by number. Aptos and Sui: 0x and all 32 bytes. NEAR hashes its account
names (SHA-256), so only known names can be told. Where a chain has no such form the result is null.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from typing import Protocol

import bech32
import pyarrow as pa
import pyarrow.compute as pc

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_PADDING = bytes(12)
_ALGORAND_CHECKSUM = 4
_TERRA_DENOM = 1
"""First byte of a native coin's address on Terra Classic; its denomination follows, padded on the left."""


class Chain(Protocol):
    """What has to be known of a chain. ``names`` maps addresses (hex) that cannot be turned back to names."""

    @property
    def family(self) -> str | None: ...

    @property
    def hrp(self) -> str | None: ...

    @property
    def names(self) -> Mapping[str, str]: ...


def native_addresses(
    chain: pa.Array, address_hex: pa.StringArray, chains: Mapping[int, Chain]
) -> pa.StringArray:
    """Accounts (Wormhole chain id, 64 hex digits) in native form."""
    return _convert(chain, address_hex, chains, _account)


def native_tokens(
    chain: pa.Array, address_hex: pa.StringArray, chains: Mapping[int, Chain]
) -> pa.StringArray:
    """Tokens in native form: like accounts, but coins and assets by denomination or number."""
    return _convert(chain, address_hex, chains, _token)


def base58(value: bytes) -> str:
    """Base58 with a 1 for every leading zero byte."""
    number = int.from_bytes(value, "big")
    digits = []
    while number:
        number, digit = divmod(number, 58)
        digits.append(_BASE58[digit])
    zeros = len(value) - len(value.lstrip(b"\0"))
    return "1" * zeros + "".join(reversed(digits))


def _convert(
    chain: pa.Array,
    address_hex: pa.StringArray,
    chains: Mapping[int, Chain],
    form: Callable[[Chain, str], str | None],
) -> pa.StringArray:
    """EVM addresses column-wise, the others once per distinct address."""
    address_hex = address_hex.cast(pa.string())
    chain = chain.cast(pa.int32())
    evm = pa.array([number for number, known in chains.items() if known.family == "evm"], pa.int32())
    padded = pc.and_(pc.is_in(chain, evm), pc.starts_with(address_hex, _PADDING.hex()))
    short = pc.binary_join_element_wise("0x", pc.utf8_slice_codeunits(address_hex, len(_PADDING) * 2), "")
    key = pc.binary_join_element_wise(chain.cast(pa.string()), address_hex, ":")
    others = pc.if_else(padded, None, key).dictionary_encode()
    forms = []
    for text in others.dictionary.to_pylist():
        number, _, address = text.partition(":")
        known = chains.get(int(number))
        forms.append(form(known, address) if known else None)
    return pc.if_else(pc.fill_null(padded, False), short, pa.array(forms, pa.string()).take(others.indices))


def _account(chain: Chain, address_hex: str) -> str | None:
    address = bytes.fromhex(address_hex)
    if chain.family == "solana":
        return base58(address)
    if chain.family == "cosmos" and chain.hrp:
        return chain.names.get(address_hex) or _cosmos(chain.hrp, address)
    if chain.family == "algorand":
        return _algorand(address)
    if chain.family in {"aptos", "sui"}:
        return "0x" + address_hex
    if chain.family == "near":
        return chain.names.get(address_hex)
    return None


def _token(chain: Chain, address_hex: str) -> str | None:
    address = bytes.fromhex(address_hex)
    if chain.family == "algorand" and not any(address[:-8]):
        return str(int.from_bytes(address, "big"))
    if chain.family == "cosmos" and address[0] == _TERRA_DENOM and not address[1]:
        denomination = address[1:].lstrip(b"\0")
        if denomination.isascii() and denomination.decode("ascii").isprintable():
            return denomination.decode("ascii") or None
    return _account(chain, address_hex)


def _cosmos(hrp: str, address: bytes) -> str:
    value = address[len(_PADDING) :] if address.startswith(_PADDING) else address
    return bech32.bech32_encode(hrp, bech32.convertbits(value, 8, 5) or [])


def _algorand(address: bytes) -> str:
    checksum = hashlib.new("sha512_256", address).digest()[-_ALGORAND_CHECKSUM:]
    return base64.b32encode(address + checksum).decode("ascii").rstrip("=")
