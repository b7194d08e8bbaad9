"""Kinds of outputs and addresses, and outputs of both protocols as columns (TIP-7, TIP-17 and TIP-18)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, Self

import numpy as np

from permalake.arrays.cursor import I16, I64, U8

Protocol = Literal["chrysalis", "stardust"]

# Wire values of the output types.
SINGLE, DUST_ALLOWANCE, TREASURY, BASIC, ALIAS, FOUNDRY, NFT = range(7)
# Wire values of the address types; NO_ADDRESS where there is none.
NO_ADDRESS, ED25519, ALIAS_ADDRESS, NFT_ADDRESS = -1, 0, 8, 16
MAX_AMOUNT = 2**63 - 1


@dataclass
class Addresses:
    """k addresses: ``kind`` i16[k] (-1 none, 0 Ed25519, 8 alias, 16 NFT), ``value`` u8[k, 32]."""

    kind: I16
    value: U8

    @classmethod
    def none(cls, rows: int) -> Self:
        """Return ``rows`` absent addresses."""
        return cls(np.full(rows, NO_ADDRESS, np.int16), np.zeros((rows, 32), np.uint8))

    def __len__(self) -> int:
        return len(self.kind)

    def put(self, rows: I64, kind: I64, value: U8) -> None:
        """Set some rows; ``kind`` i64, ``value`` u8[., 32]."""
        self.kind[rows] = kind
        self.value[rows] = value

    def take(self, rows: I64) -> Addresses:
        """Return some of the rows."""
        return Addresses(self.kind[rows], self.value[rows])


@dataclass
class Outputs:
    """k outputs. Positions point into ``data``; amounts are base tokens; times unix seconds (0 none).

    ``error`` holds a :class:`~permalake.iota.codec.faults.Fault` per row. ``chain_id`` is the alias or NFT id
    (first 32 bytes; zero for a new one, which stands for BLAKE2b-256 of its output id) or the foundry id
    (38 bytes). ``address`` is the address unlock condition, the Chrysalis owner, or a foundry's immutable
    alias. u256 values are little-endian bytes. ``native_token_offset`` delimits each row's tokens.
    """

    data: U8
    start: I64
    length: I64
    error: U8
    kind: U8
    amount: I64
    chain_id: U8
    address: Addresses
    sender: Addresses
    issuer: Addresses
    state_controller: Addresses
    governor: Addresses
    storage_return: Addresses
    expiration_return: Addresses
    storage_return_amount: I64
    expiration_time: I64
    timelock_time: I64
    tag_start: I64
    tag_length: I64
    metadata_start: I64
    metadata_length: I64
    immutable_metadata_start: I64
    immutable_metadata_length: I64
    state_index: I64
    foundry_counter: I64
    serial_number: I64
    state_metadata_start: I64
    state_metadata_length: I64
    minted: U8
    melted: U8
    maximum: U8
    native_token_offset: I64
    native_token_id: U8
    native_token_amount: U8

    def __len__(self) -> int:
        return len(self.kind)

    @classmethod
    def blank(cls, data: U8, start: I64, length: I64) -> Self:
        """Return empty columns for the given slices."""
        rows = len(start)
        values: dict[str, object] = {"data": data, "start": start, "length": length}
        for field in fields(cls):
            if field.name in values:
                continue
            if field.type == "Addresses":
                values[field.name] = Addresses.none(rows)
            elif field.type == "I64":
                values[field.name] = np.zeros(rows, np.int64)
            else:
                width = _WIDTHS.get(field.name)
                values[field.name] = np.zeros((rows, width) if width else rows, np.uint8)
        values |= {"native_token_offset": np.zeros(rows + 1, np.int64)}
        values |= {"native_token_id": np.zeros((0, 38), np.uint8)}
        values |= {"native_token_amount": np.zeros((0, 32), np.uint8)}
        return cls(**values)  # type: ignore[arg-type]

    def take(self, rows: I64) -> Outputs:
        """Return some of the rows, in the given order; positions stay valid."""
        values: dict[str, object] = {"data": self.data}
        for field in fields(self):
            column = getattr(self, field.name)
            if field.name == "data" or field.name.startswith("native_token"):
                continue
            values[field.name] = column.take(rows) if isinstance(column, Addresses) else column[rows]
        first = self.native_token_offset[rows]
        count = self.native_token_offset[rows + 1] - first
        offset = np.concatenate([np.zeros(1, np.int64), np.cumsum(count)])
        token = np.repeat(first - offset[:-1], count) + np.arange(offset[-1])
        values |= {"native_token_offset": offset, "native_token_id": self.native_token_id[token]}
        values |= {"native_token_amount": self.native_token_amount[token]}
        return Outputs(**values)  # type: ignore[arg-type]


_WIDTHS = {"chain_id": 38, "minted": 32, "melted": 32, "maximum": 32}
