"""Identifiers of messages, transactions and tokens, as clients write them.

Every function raises :class:`ValueError`, on one line, for text that is none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from permalake.wormhole.codec.native_addresses import BASE58, base58
from permalake.wormhole.codec.vaa import SEQUENCE_WIDTH
from permalake.wormhole.reference import load_reference

_WORD = 32
_ACCOUNT = 20
_SIGNATURE = 64
_LONGEST_TRANSACTION_ID = 128
_HEX = re.compile(r"(?:0[xX])?([0-9a-fA-F]+)")
_NUMBER = re.compile(r"[0-9]{1,20}")
_TRANSACTION_ID = re.compile(r"[0-9A-Za-z_+/=:@.-]+")


@dataclass(frozen=True)
class MessageId:
    """The identity of a message: emitter chain (u16), emitter address (64 hex digits), sequence (u64)."""

    chain: int
    emitter: str
    sequence: int

    @property
    def row_key(self) -> str:
        """Row key of the lake and of the event table v2."""
        return f"{self.chain}:{self.emitter}:{self.sequence:0{SEQUENCE_WIDTH}d}"

    @property
    def text(self) -> str:
        """``chain/emitter/sequence``, as Wormholescan writes it."""
        return f"{self.chain}/{self.emitter}/{self.sequence}"


def message_id(chain: str, emitter: str, sequence: str) -> MessageId:
    """Read the three parts of a message id."""
    if not _NUMBER.fullmatch(sequence) or int(sequence) >= 2**64:
        raise ValueError(f"sequence {_shown(sequence)}: not a number from 0 to 2^64 - 1")
    return MessageId(chain_id(chain), emitter_address(emitter), int(sequence))


def of_row_key(row_key: str) -> MessageId:
    """Read a row key of the lake."""
    chain, emitter, sequence = row_key.split(":")
    return MessageId(int(chain), emitter, int(sequence))


def chain_id(text: str) -> int:
    """Read a Wormhole chain id, any u16, or the name of a bundled chain."""
    if (number := _numbers().get(text.lower())) is not None:
        return number
    if not _NUMBER.fullmatch(text) or int(text) > 65535:
        raise ValueError(f"chain {_shown(text)}: neither a number from 0 to 65535 nor the name of a chain")
    return int(text)


def emitter_address(text: str) -> str:
    """Return the 64 hex digits of an address: hex of 20 or 32 bytes with or without 0x, or base58."""
    if (match := _HEX.fullmatch(text)) and len(match[1]) in (2 * _ACCOUNT, 2 * _WORD):
        return match[1].lower().zfill(2 * _WORD)
    raw = _from_base58(text)
    if raw is None or len(raw) != _WORD:
        raise ValueError(f"address {_shown(text)}: neither 20 or 32 bytes of hex nor base58 of 32 bytes")
    return raw.hex()


def token_id(text: str) -> tuple[int, str]:
    """Read ``CHAIN:ADDRESS``, the token's own chain and its address there."""
    chain, colon, address = text.partition(":")
    if not colon:
        raise ValueError(f"token {_shown(text)}: write it as CHAIN:HEX64, such as 2:0000…")
    return chain_id(chain), emitter_address(address)


def transaction_spellings(text: str) -> tuple[str, ...]:
    """Return every spelling under which the lake may hold a transaction id.

    Hex comes with or without 0x and in any case: EVM ids are stored with 0x and lower-case, other chains'
    as reported. What a chain reports in base58, a Solana signature (64 bytes) or a Sui digest (32 bytes), may
    be given in hex too.
    """
    if len(text) > _LONGEST_TRANSACTION_ID + 2 or not _TRANSACTION_ID.fullmatch(text):
        raise ValueError(f"transaction id {_shown(text)}: not a transaction id of any chain")
    spellings = [text]
    if match := _HEX.fullmatch(text):
        digits = match[1]
        for form in (digits.lower(), digits.upper()):
            spellings += [f"0x{form}", form]
        if len(digits) in (2 * _WORD, 2 * _SIGNATURE):
            spellings.append(base58(bytes.fromhex(digits)))
    elif (raw := _from_base58(text)) is not None and len(raw) in (_WORD, _SIGNATURE):
        spellings += [f"0x{raw.hex()}", raw.hex()]
    return tuple(dict.fromkeys(spellings))


def address_spellings(text: str) -> tuple[str, ...]:
    """Return the spellings of a native account; hex addresses are stored in lower case."""
    if not _TRANSACTION_ID.fullmatch(text) or len(text) > _LONGEST_TRANSACTION_ID:
        raise ValueError(f"address {_shown(text)}: not an address of any chain")
    if match := _HEX.fullmatch(text):
        return tuple(dict.fromkeys((text, text.lower(), f"0x{match[1].lower()}")))
    return (text,)


@cache
def _numbers() -> dict[str, int]:
    return {chain.name: number for number, chain in load_reference().chains.items() if chain.name}


def _from_base58(text: str) -> bytes | None:
    if not text or len(text) > _LONGEST_TRANSACTION_ID or any(digit not in BASE58 for digit in text):
        return None
    number = 0
    for digit in text:
        number = number * 58 + BASE58.index(digit)
    zeros = len(text) - len(text.lstrip(BASE58[0]))
    return bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8, "big")


def _shown(text: str) -> str:
    return text if len(text) <= 80 and text.isprintable() else f"{text[:80]!a}…"
