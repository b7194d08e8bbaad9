"""32-byte Wormhole addresses in the form that their own chain writes.

EVM: 0x and the last 20 bytes; HyperCore's accounts, too. Solana: base58. Cosmos accounts: bech32 of 20 or 32
bytes under the chain's prefix. Algorand: base32 with checksum, assets by number. Aptos (accounts), Sui and
Aztec: 0x and all 32 bytes. Tron and the XRP Ledger: base58 of 20 bytes with checksum, each with digits and
version of its own; the ledger's tokens by kind, their first byte, as Wormhole's watcher writes them.
Stellar's tokens: base32 with checksum (SEP-23).

Null where the 32 bytes do not determine one form, unless the reference data has the name
(``enrich.registries`` asks chains for it):

- NEAR and Stacks hash names (SHA-256, Keccak-256).
- Cosmos tokens, except Terra Classic's, are a Keccak-256 whose first byte is 1 for a denomination and 0 for a
  contract (wormhole-foundation/wormhole, ``cosmwasm/contracts/token-bridge/src/token_address.rs``).
- Aptos tokens are the SHA3-256 of a coin's type (``aptos/token_bridge/sources/token_hash.move``).
- A Stellar account may be a key (G…) or a contract (C…); its tokens are contracts.
- TON's bytes lack the workchain, those of Bitcoin and Dogecoin the kind of script.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Mapping
from typing import Protocol

import bech32
import pyarrow as pa
import pyarrow.compute as pc

BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
"""Digits of base58 by value, in Bitcoin's order."""

_RIPPLE58 = "rpshnaf39wBUDNEGHJKLM4PQRST7VWXYZ2bcdeCg65jkm8oFqi1tuvAxyz"
_TRON_VERSION, _XRPL_VERSION = b"\x41", b"\0"
_CHECKSUM = 4
_STELLAR_CONTRACT = bytes([2 << 3])
_XRPL_MPT = 2
_MPT_PADDING = 7
_PADDING = bytes(12)
_COSMOS_CONTRACT, _COSMOS_DENOMINATION = 0, 1


class AddressChain(Protocol):
    """The facts about a chain that its addresses depend on."""

    @property
    def family(self) -> str | None:
        """Form of its addresses, such as ``evm``; None: unknown."""
        ...

    @property
    def hrp(self) -> str | None:
        """Prefix of its bech32 addresses."""
        ...

    @property
    def names(self) -> Mapping[str, str]:
        """Names by the hash (hex) that stands for them."""
        ...


def native_addresses(
    chain: pa.Array, address_hex: pa.StringArray, chains: Mapping[int, AddressChain]
) -> pa.StringArray:
    """Return accounts (Wormhole chain id, 64 hex digits) in native form, null where it is unknown."""
    return _convert(chain, address_hex, chains, _account)


def native_tokens(
    chain: pa.Array, address_hex: pa.StringArray, chains: Mapping[int, AddressChain]
) -> pa.StringArray:
    """Return tokens in native form: like accounts, but coins and assets by denomination or number."""
    return _convert(chain, address_hex, chains, _token)


def base58(value: bytes, digits: str = BASE58) -> str:
    """Encode in base58, with the digit zero for every leading zero byte."""
    number = int.from_bytes(value, "big")
    written = []
    while number:
        number, digit = divmod(number, 58)
        written.append(digits[digit])
    zeros = len(value) - len(value.lstrip(b"\0"))
    return digits[0] * zeros + "".join(reversed(written))


def _convert(
    chain: pa.Array,
    address_hex: pa.StringArray,
    chains: Mapping[int, AddressChain],
    form: Callable[[AddressChain, str], str | None],
) -> pa.StringArray:
    """Convert EVM addresses column-wise, the others once per distinct address."""
    address_hex = address_hex.cast(pa.string())
    chain = chain.cast(pa.int32())
    evm = pa.array(
        [number for number, listed_chain in chains.items() if listed_chain.family == "evm"], pa.int32()
    )
    padded = pc.and_(pc.is_in(chain, evm), pc.starts_with(address_hex, _PADDING.hex()))
    short = pc.binary_join_element_wise("0x", pc.utf8_slice_codeunits(address_hex, len(_PADDING) * 2), "")
    key = pc.binary_join_element_wise(chain.cast(pa.string()), address_hex, ":")
    others = pc.if_else(padded, None, key).dictionary_encode()
    forms = []
    for text in others.dictionary.to_pylist():
        number, _, address = text.partition(":")
        listed_chain = chains.get(int(number))
        forms.append(form(listed_chain, address) if listed_chain else None)
    return pc.if_else(pc.fill_null(padded, False), short, pa.array(forms, pa.string()).take(others.indices))


def _account(chain: AddressChain, address_hex: str) -> str | None:
    form = _ACCOUNTS.get(chain.family or "")
    return form(chain, bytes.fromhex(address_hex)) if form else None


def _token(chain: AddressChain, address_hex: str) -> str | None:
    form = _TOKENS.get(chain.family or "")
    return form(chain, bytes.fromhex(address_hex)) if form else None


def _known(chain: AddressChain, address: bytes) -> str | None:
    return chain.names.get(address.hex())


def _cosmos(chain: AddressChain, address: bytes) -> str | None:
    if not chain.hrp:
        return None
    value = address.removeprefix(_PADDING)
    return _known(chain, address) or bech32.bech32_encode(chain.hrp, bech32.convertbits(value, 8, 5) or [])


def _cosmos_token(chain: AddressChain, address: bytes) -> str | None:
    """Terra Classic pads denominations and 20-byte contracts; the other chains' bridges hash both."""
    if address.startswith(_PADDING):
        return _cosmos(chain, address)
    if address[0] == _COSMOS_DENOMINATION and not address[1]:
        text = address[1:].lstrip(b"\0").decode("ascii", "replace")
        if text and text.isascii() and text.isprintable():
            return text
    if address[0] in (_COSMOS_CONTRACT, _COSMOS_DENOMINATION):
        return _known(chain, address)
    return _cosmos(chain, address)


def _algorand(_: AddressChain, address: bytes) -> str:
    checksum = hashlib.new("sha512_256", address).digest()[-_CHECKSUM:]
    return base64.b32encode(address + checksum).decode("ascii").rstrip("=")


def _algorand_token(chain: AddressChain, address: bytes) -> str:
    return _algorand(chain, address) if any(address[:-8]) else str(int.from_bytes(address, "big"))


def _stellar_token(_: AddressChain, address: bytes) -> str:
    value = _STELLAR_CONTRACT + address
    checksum = binascii.crc_hqx(value, 0).to_bytes(2, "little")
    return base64.b32encode(value + checksum).decode("ascii").rstrip("=")


def _xrpl_token(_: AddressChain, address: bytes) -> str | None:
    """Return XRP or the id of a multi-purpose token; a currency and its issuer are a hash."""
    if not any(address):
        return "XRP"
    kind, padding, number = address[0], address[1 : 1 + _MPT_PADDING], address[1 + _MPT_PADDING :]
    return number.hex().upper() if kind == _XRPL_MPT and not any(padding) else None


def _of_20_bytes(form: Callable[[bytes], str]) -> Callable[[AddressChain, bytes], str | None]:
    def work(_: AddressChain, address: bytes) -> str | None:
        return form(address.removeprefix(_PADDING)) if address.startswith(_PADDING) else None

    return work


def _base58_checked(value: bytes, digits: str = BASE58) -> str:
    checksum = hashlib.sha256(hashlib.sha256(value).digest()).digest()[:_CHECKSUM]
    return base58(value + checksum, digits)


def _hex(value: bytes) -> str:
    return f"0x{value.hex()}"


_ACCOUNTS: dict[str, Callable[[AddressChain, bytes], str | None]] = {
    "solana": lambda _, address: base58(address),
    "cosmos": _cosmos,
    "algorand": _algorand,
    "near": _known,
    **dict.fromkeys(("aptos", "sui", "aztec"), lambda _, address: _hex(address)),
    "hypercore": _of_20_bytes(_hex),
    "tron": _of_20_bytes(lambda value: _base58_checked(_TRON_VERSION + value)),
    "xrpl": _of_20_bytes(lambda value: _base58_checked(_XRPL_VERSION + value, _RIPPLE58)),
}
_TOKENS = _ACCOUNTS | {
    "aptos": _known,
    "cosmos": _cosmos_token,
    "algorand": _algorand_token,
    "stellar": _stellar_token,
    "xrpl": _xrpl_token,
    "hypercore": lambda *_: None,
}
