"""The part of Ethereum's contract ABI that chain details need.

Calls with words as arguments; addresses, numbers and texts as results (docs.soliditylang.org, "Contract ABI
Specification").
"""

from __future__ import annotations

from typing import Any

import sha3

_WORD = 32
_ADDRESS = 20
_PADDING = "0" * 24
HIGHEST_DECIMALS = 255
"""``decimals()`` of a token is a ``uint8``."""
_LONGEST_TEXT = 1024
"""Longer names are ignored: some contracts return huge ones on purpose."""


def selector(signature: str) -> bytes:
    """Return the first four bytes of the Keccak-256 of ``name(types)``."""
    return topic(signature)[:4]


def topic(signature: str) -> bytes:
    """Return the Keccak-256 of ``name(types)``, the first topic of an event's logs."""
    digest: bytes = sha3.keccak_256(signature.encode("ascii")).digest()
    return digest


def call(signature: str, *words: int | bytes) -> str:
    """Encode a call with arguments of fixed size, numbers and byte words (bytes32), as 0x-hex."""
    arguments = b"".join(
        word.to_bytes(_WORD, "big") if isinstance(word, int) else word.ljust(_WORD, b"\0") for word in words
    )
    return "0x" + (selector(signature) + arguments).hex()


def address(data: bytes) -> str | None:
    """Return the address in a result as lower-case 0x-hex; None for no and for the zero address."""
    value = data[_WORD - _ADDRESS : _WORD]
    return f"0x{value.hex()}" if len(data) >= _WORD and any(value) else None


def number(data: bytes) -> int | None:
    """Return the unsigned number in a result; None if there is none."""
    return int.from_bytes(data[:_WORD], "big") if len(data) >= _WORD else None


def contract(word: str | None) -> str | None:
    """Return the address that 32 bytes (hex) hold, as 0x-hex; None where they hold none of an EVM chain."""
    return f"0x{word[len(_PADDING) :]}" if word and word.startswith(_PADDING) else None


def returned(result: Any) -> bytes:
    """Return the bytes that ``eth_call`` returns.

    Raises:
        ValueError: This is no result of ``eth_call``.
    """
    if not isinstance(result, str) or not result.startswith("0x"):
        raise ValueError("no data")
    return bytes.fromhex(result[2:])


def returned_number(result: Any) -> int | None:
    """Return the number that ``eth_call`` returns; None if there is none.

    Raises:
        ValueError: This is no result of ``eth_call``.
    """
    return number(returned(result))


def text(data: bytes) -> str | None:
    """Return a ``string``, or the ``bytes32`` that early tokens return instead; None for anything else.

    NUL padding is removed and invalid UTF-8 replaced, as in attestations; a character that the 32nd byte
    cuts is left out.
    """
    if len(data) == _WORD:
        return _cut(data.strip(b"\0"))
    start = number(data)
    if start is None or start + _WORD > len(data):
        return None
    length = int.from_bytes(data[start : start + _WORD], "big")
    value = data[start + _WORD : start + _WORD + length]
    return value.decode("utf-8", "replace").strip("\0") if len(value) == length <= _LONGEST_TEXT else None


def _cut(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError as error:
        whole = value[: error.start] if error.reason == "unexpected end of data" else value
        return whole.decode("utf-8", "replace")
