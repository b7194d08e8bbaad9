"""Signed Wormhole messages (VAA version 1), decoded as whole batches.

Wire format (wormhole-foundation/wormhole, ``whitepapers/0001_generic_message_passing.md``), big-endian::

    header     version u8 | guardian set index u32 | signature count u8 | signatures
    signature  guardian index u8 | r 32 | s 32 | recovery id u8
    body       timestamp u32 | nonce u32 | emitter chain u16 | emitter address 32 | sequence u64
               | consistency level u8 | payload

Guardians sign the *double* Keccak-256 of the body; what Wormholescan and the SDKs call "hash" is the single
one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sha3 import keccak_256

from permalake.arrays.cursor import I64, PADDING, U8
from permalake.arrays.hexa import to_hex
from permalake.arrays.slices import slices

Bool = NDArray[np.bool_]

ERRORS = (
    "",
    "empty",
    "version is not 1",
    "shorter than its header",
    "shorter than its signatures and body",
    "guardian indices out of order",
)
EMPTY, BAD_VERSION, SHORT_HEADER, SHORT_BODY, UNORDERED = range(1, 6)

VERSION = 1
GENESIS_TIME = datetime(2020, 8, 1, tzinfo=UTC)
"""The beginning of Wormhole: a body with an earlier time stands at another date."""
GENESIS = GENESIS_TIME.date()
SEQUENCE_WIDTH = 16
_HEADER = np.dtype([("version", "u1"), ("guardian_set_index", ">u4"), ("signature_count", "u1")])
_BODY = np.dtype(
    [
        ("timestamp", ">u4"),
        ("nonce", ">u4"),
        ("emitter_chain", ">u2"),
        ("emitter_address", "u1", 32),
        ("sequence", ">u8"),
        ("consistency_level", "u1"),
    ]
)
SIGNATURE_SIZE = 65
_SIGNATURE_STRIDE = 1 + SIGNATURE_SIZE


@dataclass(frozen=True, eq=False)
class Vaas:
    """``n`` decoded VAAs with ``s`` signatures. Every ``start`` and ``length`` is in bytes of ``data``.

    Rows with an error have no signatures. Where ``has_body`` is false all fields of the body and the digest
    are zero. ``signature_start`` is where a signature's 65 bytes (r, s, v) lie, after its guardian index.
    """

    data: U8
    start: I64
    length: I64
    error: U8
    version: U8
    guardian_set_index: NDArray[np.uint32]
    signature_count: U8
    signature_offset: I64
    signature_start: I64
    guardian_index: U8
    body_start: I64
    body_length: I64
    has_body: Bool
    timestamp: NDArray[np.uint32]
    nonce: NDArray[np.uint32]
    emitter_chain: NDArray[np.uint16]
    emitter_address: U8
    sequence: NDArray[np.uint64]
    consistency_level: U8

    def __len__(self) -> int:
        return len(self.start)

    @property
    def payload_start(self) -> I64:
        """The start of each payload, i64[n]."""
        return self.body_start + np.where(self.has_body, _BODY.itemsize, 0)

    @property
    def payload_length(self) -> I64:
        """Length of each payload, i64[n]."""
        return np.where(self.has_body, self.body_length - _BODY.itemsize, 0)

    @property
    def signature_row(self) -> I64:
        """Row of each signature, i64[s]."""
        return np.repeat(np.arange(len(self)), np.diff(self.signature_offset))

    @cached_property
    def digest(self) -> U8:
        """Double Keccak-256 of each body, u8[n, 32]; zeros without one."""
        return _digests(self.data, self.body_start, self.body_length, self.has_body)

    @cached_property
    def signature(self) -> U8:
        """The signatures themselves, u8[s, 65]: r, s, recovery id."""
        return gather(self.data, self.signature_start, SIGNATURE_SIZE)

    @cached_property
    def _padded(self) -> U8:
        return np.concatenate([self.data, np.zeros(PADDING, np.uint8)])

    def slices(self, start: I64, length: I64) -> pa.BinaryArray:
        """Return byte ranges of ``data`` as an Arrow binary column."""
        return slices(self._padded, start, length)

    def row_key(self) -> pa.StringArray:
        """Return ``chain:address:sequence``, the sequence padded to 16 digits; null without a body."""
        chain = pc.if_else(pa.array(~self.has_body), None, pa.array(self.emitter_chain).cast(pa.string()))
        padded = pc.utf8_lpad(pa.array(self.sequence).cast(pa.string()), width=SEQUENCE_WIDTH, padding="0")
        return pc.binary_join_element_wise(chain, self.emitter_hex(), padded, ":")

    def digest_hex(self) -> pa.StringArray:
        """Return keccak256(keccak256(body)) in hex; null without a body."""
        return _hex_where(self.has_body, self.digest)

    def emitter_hex(self) -> pa.StringArray:
        """Return the emitter addresses, 64 hex digits; null without a body."""
        return _hex_where(self.has_body, self.emitter_address)

    def payload(self) -> pa.BinaryArray:
        """Return the payloads; null without a body."""
        payloads = self.slices(self.payload_start, self.payload_length)
        return payloads if self.has_body.all() else pc.if_else(pa.array(self.has_body), payloads, None)

    def publication(self) -> pa.RecordBatch:
        """Return the columns of ``message_publication`` that are in the VAA; null rows without a body."""
        absent = pa.array(~self.has_body)

        def column(values: NDArray[Any], kind: pa.DataType) -> pa.Array:
            return pc.if_else(absent, pa.scalar(None, kind), pa.array(values).cast(kind))

        time = pa.array(self.timestamp.astype(np.int64) * 1_000_000)
        return pa.RecordBatch.from_pydict(
            {
                "row_key": self.row_key(),
                "version": column(self.version, pa.int32()),
                "guardian_set_index": column(self.guardian_set_index, pa.int64()),
                "timestamp": column(time, pa.timestamp("us", tz="UTC")),
                "nonce": column(self.nonce, pa.int64()),
                "sequence": column(self.sequence, pa.decimal128(20, 0)),
                "emitter_chain": column(self.emitter_chain, pa.int32()),
                "emitter_address": self.emitter_hex(),
                "payload": self.payload(),
                "digest": self.digest_hex(),
            }
        )


def decode_vaas(raw: pa.Array | pa.ChunkedArray) -> Vaas:
    """Decode a column of raw VAAs (Arrow binary or large binary); nothing in it raises.

    A row that is malformed (``error``) never disturbs its neighbours; a null counts as empty.
    """
    data, start, length = buffer_of(raw)
    error = np.zeros(len(start), np.uint8)
    header = gather(data, np.where(length >= _HEADER.itemsize, start, 0), _HEADER.itemsize).view(_HEADER)[
        :, 0
    ]
    version = np.where(length > 0, gather(data, np.where(length > 0, start, 0), 1)[:, 0], 0).astype(np.uint8)
    count = header["signature_count"].astype(np.int64)
    body_offset = _HEADER.itemsize + count * _SIGNATURE_STRIDE
    body_length = length - body_offset
    _note(error, body_length < _BODY.itemsize, SHORT_BODY)
    _note(error, length < _HEADER.itemsize, SHORT_HEADER)
    _note(error, version != VERSION, BAD_VERSION)
    _note(error, length == 0, EMPTY)
    has_body = error == 0
    body_start = np.where(has_body, start + body_offset, 0)
    body_length = np.where(has_body, body_length, 0)

    offset, signature_start, guardian_index = _signatures(data, start, np.where(has_body, count, 0))
    unordered = _unordered(offset, guardian_index)
    if unordered.any():
        error[unordered] = UNORDERED
        offset, signature_start, guardian_index = _signatures(data, start, np.where(error == 0, count, 0))

    body = gather(data, body_start, _BODY.itemsize)
    body[~has_body] = 0
    fields = body.view(_BODY)[:, 0]
    readable = length >= _HEADER.itemsize
    return Vaas(
        data=data,
        start=start,
        length=length,
        error=error,
        version=version,
        guardian_set_index=np.where(readable, header["guardian_set_index"], 0).astype(np.uint32),
        signature_count=np.where(readable, count, 0).astype(np.uint8),
        signature_offset=offset,
        signature_start=signature_start,
        guardian_index=guardian_index,
        body_start=body_start,
        body_length=body_length,
        has_body=has_body,
        timestamp=fields["timestamp"].astype(np.uint32),
        nonce=fields["nonce"].astype(np.uint32),
        emitter_chain=fields["emitter_chain"].astype(np.uint16),
        emitter_address=np.ascontiguousarray(fields["emitter_address"]),
        sequence=fields["sequence"].astype(np.uint64),
        consistency_level=np.ascontiguousarray(fields["consistency_level"]),
    )


def buffer_of(raw: pa.Array | pa.ChunkedArray) -> tuple[U8, I64, I64]:
    """Return ``(data, start, length)`` of a binary column without copying; nulls have length 0."""
    if isinstance(raw, pa.ChunkedArray):
        raw = raw.combine_chunks() if raw.num_chunks != 1 else raw.chunk(0)
    _, offsets, values = raw.buffers()
    kind = np.int64 if pa.types.is_large_binary(raw.type) else np.int32
    if offsets is None or len(raw) == 0:
        return np.zeros(0, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int64)
    bounds = np.frombuffer(offsets, kind)[raw.offset : raw.offset + len(raw) + 1].astype(np.int64)
    data = np.frombuffer(values, np.uint8) if values is not None else np.zeros(0, np.uint8)
    length = np.diff(bounds)
    if raw.null_count:
        length = np.where(pc.is_null(raw).to_numpy(zero_copy_only=False), 0, length)
    return data, bounds[:-1], length


def gather(data: U8, start: I64, width: int) -> U8:
    """``width`` bytes from each ``start``, u8[k, width]; zeros behind the end of ``data``."""
    if len(start) == 0:
        return np.zeros((0, width), np.uint8)
    if int(start.max()) + width <= len(data):
        return np.lib.stride_tricks.sliding_window_view(data, width)[start]
    padded = np.concatenate([data, np.zeros(width, np.uint8)])
    return np.lib.stride_tricks.sliding_window_view(padded, width)[np.minimum(start, len(data))]


def _note(error: U8, where: Bool, code: int) -> None:
    error[where] = code


def _signatures(data: U8, start: I64, count: I64) -> tuple[I64, I64, U8]:
    """Offsets per row, and of every signature where its 65 bytes start and whose it is."""
    offset = np.zeros(len(count) + 1, np.int64)
    np.cumsum(count, out=offset[1:])
    first = start + _HEADER.itemsize - offset[:-1] * _SIGNATURE_STRIDE
    index_at = np.repeat(first, count) + np.arange(offset[-1]) * _SIGNATURE_STRIDE
    return offset, index_at + 1, data[index_at]


def _unordered(offset: I64, guardian_index: U8) -> Bool:
    """Rows with a guardian index below its predecessor (equal ones are duplicates, and judged later)."""
    falls = np.zeros(len(guardian_index), bool)
    falls[1:] = guardian_index[1:] < guardian_index[:-1]
    falls[offset[:-1][offset[:-1] < len(falls)]] = False
    rows = np.searchsorted(offset, np.flatnonzero(falls), side="right") - 1
    result = np.zeros(len(offset) - 1, bool)
    result[rows] = True
    return result


def _digests(data: U8, start: I64, length: I64, has_body: Bool) -> U8:
    digest = np.zeros((len(start), 32), np.uint8)
    rows = np.flatnonzero(has_body)
    if len(rows) == 0:
        return digest
    view = data.data
    begin = start[rows]
    bounds = zip(begin.tolist(), (begin + length[rows]).tolist(), strict=True)
    hashed = b"".join([keccak_256(keccak_256(view[a:b]).digest()).digest() for a, b in bounds])
    digest[rows] = np.frombuffer(hashed, np.uint8).reshape(-1, 32)
    return digest


def _hex_where(valid: Bool, values: U8) -> pa.StringArray:
    text = to_hex(values)
    return text if valid.all() else pc.if_else(pa.array(valid), text, None)
