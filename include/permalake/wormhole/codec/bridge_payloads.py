"""Payloads of the token bridge and the NFT bridge, decoded as whole batches.

Layouts (wormhole-foundation/wormhole, ``whitepapers/0003_token_bridge.md`` and ``0006_nft_bridge.md``), all
big-endian; bytes after a complete payload are ignored. Only the emitter
tells a bridge: payloads of many other contracts begin with 01 or 03, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from permalake.arrays.cursor import I64, U8
from permalake.arrays.decimal_text import to_decimal_text
from permalake.arrays.hexa import to_hex
from permalake.contracts.schema import Table
from permalake.wormhole.codec.vaa import Bool, Vaas, gather
from permalake.wormhole.contracts.tables import (
    ASSET_META_PAYLOAD,
    NFT_TRANSFER_PAYLOAD,
    TOKEN_TRANSFER_PAYLOAD,
)

NOT_A_BRIDGE, TOKEN_BRIDGE, NFT_BRIDGE = range(3)
TRANSFER, ASSET_META, TRANSFER_WITH_PAYLOAD = 1, 2, 3
NFT_TRANSFER = 1

_WORD = ("u1", 32)
_TRANSFER = np.dtype(
    [
        ("payload_id", "u1"),
        ("amount", *_WORD),
        ("origin_address", *_WORD),
        ("origin_chain", ">u2"),
        ("target_address", *_WORD),
        ("target_chain", ">u2"),
        ("fee_or_sender", *_WORD),
    ]
)
_META = np.dtype(
    [
        ("payload_id", "u1"),
        ("token_address", *_WORD),
        ("token_chain", ">u2"),
        ("decimals", "u1"),
        ("symbol", *_WORD),
        ("name", *_WORD),
    ]
)
_NFT = np.dtype(
    [
        ("payload_id", "u1"),
        ("origin_address", *_WORD),
        ("origin_chain", ">u2"),
        ("symbol", *_WORD),
        ("name", *_WORD),
        ("token_id", *_WORD),
        ("uri_length", "u1"),
    ]
)
_NFT_TARGET = np.dtype([("target_address", *_WORD), ("target_chain", ">u2")])


class KnownBridges(Protocol):
    """Emitters (chain, 32-byte address) of the two kinds of bridge."""

    @property
    def token(self) -> Iterable[tuple[int, bytes]]:
        """Emitters of token bridges."""
        ...

    @property
    def nft(self) -> Iterable[tuple[int, bytes]]:
        """Emitters of NFT bridges."""
        ...


@dataclass(frozen=True)
class Payloads:
    """One batch per payload table.

    Each has ``row`` (int64, index of the VAA) and the columns of the table's contract without ``row_key`` and
    ``date``.
    """

    transfers: pa.RecordBatch
    metas: pa.RecordBatch
    nfts: pa.RecordBatch

    def structs(self, rows: int) -> dict[str, pa.StructArray]:
        """Return struct columns parallel to the VAAs, null where a VAA has no such payload."""
        batches = {"transfer": self.transfers, "meta": self.metas, "nft": self.nfts}
        return {name: scatter(batch, rows) for name, batch in batches.items()}


def chain_keys(chains: NDArray[np.uint16], addresses: U8) -> pa.FixedSizeBinaryArray:
    """Join chain ids, u16[n], and 32-byte addresses, u8[n, 32], to keys of 34 bytes."""
    keys = np.zeros((len(chains), 34), np.uint8)
    keys[:, :2] = chains.astype(">u2").view(np.uint8).reshape(-1, 2)
    keys[:, 2:] = addresses
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(34), len(chains), [None, pa.py_buffer(keys)])


def bridge_kinds(vaas: Vaas, bridges: KnownBridges) -> U8:
    """Return which kind of bridge emitted each VAA, u8[n]."""
    whole = chain_keys(vaas.emitter_chain, vaas.emitter_address)
    kinds = np.full(len(vaas), NOT_A_BRIDGE, np.uint8)
    for kind, contracts in ((NFT_BRIDGE, bridges.nft), (TOKEN_BRIDGE, bridges.token)):
        listed = pa.array([chain.to_bytes(2, "big") + address for chain, address in contracts], pa.binary(34))
        kinds[pc.is_in(whole, listed).to_numpy(zero_copy_only=False)] = kind
    kinds[~vaas.has_body] = NOT_A_BRIDGE
    return kinds


def decode_payloads(vaas: Vaas, kinds: U8, select: Bool | None = None) -> Payloads:
    """Decode the bridges' payloads in the rows ``select`` (all by default).

    A payload that is unknown or cut short makes no row.
    """
    start, length = vaas.payload_start, vaas.payload_length
    is_selected = length > 0 if select is None else select & (length > 0)
    payload_id = gather(vaas.data, np.where(is_selected, start, 0), 1)[:, 0]

    def rows(kind: int, ids: tuple[int, ...], size: int) -> I64:
        return np.flatnonzero(is_selected & (kinds == kind) & np.isin(payload_id, ids) & (length >= size))

    transfers = rows(TOKEN_BRIDGE, (TRANSFER, TRANSFER_WITH_PAYLOAD), _TRANSFER.itemsize)
    metas = rows(TOKEN_BRIDGE, (ASSET_META,), _META.itemsize)
    nfts = rows(NFT_BRIDGE, (NFT_TRANSFER,), _NFT.itemsize + _NFT_TARGET.itemsize)
    nfts = nfts[_nft_size(vaas.data, start[nfts]) <= length[nfts]]
    return Payloads(
        transfers=_transfers(vaas, transfers),
        metas=_metas(vaas, metas),
        nfts=_nfts(vaas, nfts),
    )


def clean_texts(values: Iterable[bytes]) -> pa.StringArray:
    """Return texts without NUL padding, left or right, and with invalid UTF-8 replaced."""
    return pa.array([value.strip(b"\0").decode("utf-8", "replace") for value in values], pa.string())


def _transfers(vaas: Vaas, rows: I64) -> pa.RecordBatch:
    start = vaas.payload_start[rows]
    fields = _read(vaas.data, start, _TRANSFER)
    with_payload = pa.array(fields["payload_id"] == TRANSFER_WITH_PAYLOAD)
    app_length = np.where(with_payload, vaas.payload_length[rows] - _TRANSFER.itemsize, 0)
    app_payload = vaas.slices(start + _TRANSFER.itemsize, app_length)
    last = fields["fee_or_sender"]
    return _batch(
        TOKEN_TRANSFER_PAYLOAD,
        rows,
        payload_id=fields["payload_id"],
        amount=to_decimal_text(fields["amount"]),
        origin_address=to_hex(fields["origin_address"]),
        origin_chain=fields["origin_chain"],
        target_address=to_hex(fields["target_address"]),
        target_chain=fields["target_chain"],
        fee=pc.if_else(with_payload, None, to_decimal_text(last)),
        from_address=pc.if_else(with_payload, to_hex(last), None),
        app_payload=pc.if_else(with_payload, app_payload, None),
    )


def _metas(vaas: Vaas, rows: I64) -> pa.RecordBatch:
    fields = _read(vaas.data, vaas.payload_start[rows], _META)
    return _batch(
        ASSET_META_PAYLOAD,
        rows,
        payload_id=fields["payload_id"],
        token_address=to_hex(fields["token_address"]),
        token_chain=fields["token_chain"],
        decimals=fields["decimals"],
        symbol=clean_texts(map(bytes, fields["symbol"])),
        name=clean_texts(map(bytes, fields["name"])),
    )


def _nfts(vaas: Vaas, rows: I64) -> pa.RecordBatch:
    start = vaas.payload_start[rows]
    fields = _read(vaas.data, start, _NFT)
    uri_length = fields["uri_length"].astype(np.int64)
    uri_start = start + _NFT.itemsize
    target = _read(vaas.data, uri_start + uri_length, _NFT_TARGET)
    uris = vaas.slices(uri_start, uri_length).to_pylist()
    return _batch(
        NFT_TRANSFER_PAYLOAD,
        rows,
        payload_id=fields["payload_id"],
        origin_address=to_hex(fields["origin_address"]),
        origin_chain=fields["origin_chain"],
        symbol=clean_texts(map(bytes, fields["symbol"])),
        name=clean_texts(map(bytes, fields["name"])),
        token_id=to_decimal_text(fields["token_id"]),
        uri=clean_texts(uris),
        target_address=to_hex(target["target_address"]),
        target_chain=target["target_chain"],
    )


def _nft_size(data: U8, start: I64) -> I64:
    uri_length = gather(data, start + _NFT.itemsize - 1, 1)[:, 0].astype(np.int64)
    return _NFT.itemsize + uri_length + _NFT_TARGET.itemsize


def _read(data: U8, start: I64, layout: np.dtype[Any]) -> NDArray[Any]:
    return gather(data, start, layout.itemsize).view(layout)[:, 0]


def _fields(table: Table) -> list[pa.Field]:
    return [field for field in table.arrow if field.name not in {"row_key", "date"}]


def _batch(table: Table, rows: I64, **columns: NDArray[Any] | pa.Array) -> pa.RecordBatch:
    fields = _fields(table)
    arrays = [_column(columns[field.name], field.type) for field in fields]
    row = pa.field("row", pa.int64(), nullable=False)
    return pa.RecordBatch.from_arrays([pa.array(rows), *arrays], schema=pa.schema([row, *fields]))


def _column(values: NDArray[Any] | pa.Array, kind: pa.DataType) -> pa.Array:
    native = values if isinstance(values, pa.Array) else pa.array(values.astype(np.int32))
    return native.cast(kind)


def scatter(batch: pa.RecordBatch, rows: int) -> pa.StructArray:
    """Return a batch with ``row`` as a struct column of ``rows`` rows, null where the batch has none."""
    position = np.zeros(rows, np.int64)
    scattered = np.zeros(rows, bool)
    position[batch["row"]] = np.arange(batch.num_rows)
    scattered[batch["row"]] = True
    fields = [batch.schema.field(name) for name in batch.schema.names[1:]]
    packed = pa.StructArray.from_arrays(batch.columns[1:], fields=fields)
    return packed.take(pa.array(position, mask=~scattered))
