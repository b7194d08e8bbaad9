"""Addresses as text: bech32 (BIP-173) of the address type byte and its 32 bytes (TIP-11, TIP-31)."""

from __future__ import annotations

from functools import cache

import bech32
import numpy as np
import pyarrow as pa

from permalake.arrays.cursor import I16, U8, U32

_CHARSET = np.frombuffer(b"qpzry9x8gf2tvdw0s3jn54khce6mua7l", np.uint8)
_GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_BYTES = 33
_SYMBOLS = -(-_BYTES * 8 // 5)
_CHECKSUM = 6
_KINDS = (0, 8, 16)
# What the top five bits of the checksum's state contribute, by their value.
_FEEDBACK = np.array(
    [
        np.bitwise_xor.reduce([g for bit, g in enumerate(_GENERATOR) if top >> bit & 1] or [0])
        for top in range(32)
    ],
    np.uint32,
)


def encode_addresses(hrp: str, kind: I16, value: U8) -> pa.StringArray:
    """Return the bech32 text of every address (kind i16[k], value u8[k, 32]); null where the kind is -1."""
    rows = np.flatnonzero(kind >= 0)
    raw = np.empty((len(rows), _BYTES), np.uint8)
    raw[:, 0] = kind[rows]
    raw[:, 1:] = value[rows]
    prefix = np.frombuffer(f"{hrp}1".encode(), np.uint8)
    text = np.empty((len(rows), len(prefix) + _SYMBOLS + _CHECKSUM), np.uint8)
    text[:, : len(prefix)] = prefix
    text[:, len(prefix) : -_CHECKSUM] = _CHARSET[_symbols(raw)]
    text[:, -_CHECKSUM:] = _CHARSET[_checksum(hrp, raw)]
    offsets = np.zeros(len(kind) + 1, np.int64)
    np.cumsum((kind >= 0) * text.shape[1], out=offsets[1:])
    validity = np.packbits(kind >= 0, bitorder="little")
    wide = offsets[-1] >= 2**31
    return pa.Array.from_buffers(
        pa.large_string() if wide else pa.string(),
        len(kind),
        [
            pa.py_buffer(validity),
            pa.py_buffer(offsets.astype(np.int64 if wide else np.int32)),
            pa.py_buffer(text),
        ],
    )


def _symbols(raw: U8) -> U8:
    """Return 33 bytes as 53 symbols of 5 bits: u8[k, 53]; the last one is padded with a zero bit."""
    padded = np.zeros((len(raw), 35), np.uint8)
    padded[:, :_BYTES] = raw
    # Five bytes at a time are one 40-bit number of eight symbols.
    groups = padded.reshape(len(raw), 7, 5).astype(np.uint64)
    number = np.zeros((len(raw), 7), np.uint64)
    for at in range(5):
        number = (number << np.uint64(8)) | groups[:, :, at]
    shifts = np.arange(35, -1, -5, dtype=np.uint64)
    symbols = (number[:, :, None] >> shifts) & np.uint64(31)
    return symbols.astype(np.uint8).reshape(len(raw), 56)[:, :_SYMBOLS]


def _checksum(hrp: str, raw: U8) -> U8:
    """Return the six symbols after the address: u8[k, 6] of u8[k, 33]."""
    # The checksum is linear: that of zeros under this prefix, plus what each byte contributes at its place.
    state = np.full(len(raw), _state_of_zeros(hrp), np.uint32)
    for table, column in zip(_contributions(), raw.T, strict=True):
        state ^= table[column]
    shifts = np.arange(25, -1, -5, dtype=np.uint32)
    return ((state[:, None] >> shifts) & np.uint32(31)).astype(np.uint8)


@cache
def _state_of_zeros(hrp: str) -> np.uint32:
    state: np.uint32 = _state(hrp, np.zeros((1, _BYTES), np.uint8))[0]
    return state


@cache
def _contributions() -> U32:
    """Return what each value of each of the 33 bytes adds to the checksum's state: u32[33, 256]."""
    raw = np.zeros((_BYTES, 256, _BYTES), np.uint8)
    for at in range(_BYTES):
        raw[at, :, at] = np.arange(256)
    states = _state("", raw.reshape(-1, _BYTES)).reshape(_BYTES, 256)
    return states ^ states[:, :1]


def _state(hrp: str, raw: U8) -> U32:
    state = np.full(len(raw), 1, np.uint32)
    for symbol in bech32.bech32_hrp_expand(hrp):
        state = _step(state, np.uint32(symbol))
    for column in _symbols(raw).T:
        state = _step(state, column)
    for _ in range(_CHECKSUM):
        state = _step(state, np.uint32(0))
    return state ^ np.uint32(1)


def _step(state: U32, symbol: U8 | np.uint32) -> U32:
    shifted: U32 = ((state & np.uint32(0x1FFFFFF)) << np.uint32(5)) ^ symbol
    stepped: U32 = shifted ^ _FEEDBACK[state >> np.uint32(25)]
    return stepped


def encode_address(hrp: str, kind: int, value: bytes) -> str:
    """Return the bech32 text of one address: its type and 32 bytes."""
    raw = np.frombuffer(value, np.uint8).reshape(1, 32)
    return str(encode_addresses(hrp, np.array([kind], np.int16), raw)[0].as_py())


def decode_address(text: str) -> tuple[str, int, bytes]:
    """Return prefix, address type and 32 bytes of a bech32 address.

    Raises:
        ValueError: If the text is not an address.
    """
    hrp, symbols = bech32.bech32_decode(text)
    raw = bech32.convertbits(symbols, 5, 8, False) if symbols is not None else None
    if hrp is None or raw is None or len(raw) != _BYTES or raw[0] not in _KINDS:
        raise ValueError(f"{text!r} is no address")
    return hrp, raw[0], bytes(raw[1:])
