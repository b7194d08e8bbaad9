"""The little of Ethereum's contract ABI that chain details need (docs.soliditylang.org, "Contract ABI
Specification"): calls with words as arguments; addresses, numbers and texts as results."""

from __future__ import annotations

import sha3

_WORD = 32
_ADDRESS = 20
_LONGEST_TEXT = 1024
"""What a contract calls itself is not worth more; some are made to be a nuisance."""


def selector(signature: str) -> bytes:
    """First four bytes of the Keccak-256 of ``name(types)``."""
    return topic(signature)[:4]


def topic(signature: str) -> bytes:
    """Keccak-256 of ``name(types)``: the first topic of an event's logs."""
    digest: bytes = sha3.keccak_256(signature.encode("ascii")).digest()
    return digest


def call(signature: str, *words: int | bytes) -> str:
    """Data of a call whose arguments are of fixed size, as 0x-hex: numbers and byte words (bytes32)."""
    arguments = b"".join(
        word.to_bytes(_WORD, "big") if isinstance(word, int) else word.ljust(_WORD, b"\0") for word in words
    )
    return "0x" + (selector(signature) + arguments).hex()


def address(data: bytes) -> str | None:
    """The address (0x and lower-case hex) in a result; None for none, and for the zero address."""
    value = data[_WORD - _ADDRESS : _WORD]
    return f"0x{value.hex()}" if len(data) >= _WORD and any(value) else None


def number(data: bytes) -> int | None:
    """The unsigned number in a result; None for none."""
    return int.from_bytes(data[:_WORD], "big") if len(data) >= _WORD else None


def text(data: bytes) -> str | None:
    """A ``string``, or the ``bytes32`` that early tokens return in its place; None when it is neither.

    NUL padding is removed and invalid UTF-8 replaced, as in attestations; a character that the 32nd byte cut
    is left out.
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
