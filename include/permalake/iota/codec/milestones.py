"""Milestone payloads, one at a time (TIP-8 on Chrysalis, TIP-29 on Stardust).

A day has some 8,640 milestones, few enough to read row by row.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol as Interface

from permalake.iota.codec.byte_reader import ByteReader, ascending, demand
from permalake.iota.codec.ed25519 import is_valid
from permalake.iota.codec.faults import Fault
from permalake.iota.codec.outputs import Protocol
from permalake.iota.codec.receipts import ProtocolParameters, Receipt, read_options, read_receipt

MAX_PARENTS = 8
MAX_METADATA = 8192
# Type, public key, signature.
SIGNATURE_WIDTH = 1 + 32 + 64
CHRYSALIS_MILESTONE, CHRYSALIS_RECEIPT, STARDUST_MILESTONE = 1, 3, 7
_TIME_WIDTH = {CHRYSALIS_MILESTONE: 8, STARDUST_MILESTONE: 4}
# Columns of the lake hold signed numbers.
_LATEST = 2**63 - 1


@dataclass(frozen=True)
class Milestone:
    """A milestone. ``essence`` is hashed (BLAKE2b-256, ``essence_hash``) and signed.

    Chrysalis has one Merkle root, ``applied_root``, of the included transactions' messages, and no
    ``previous_milestone_id``. ``timestamp`` is in unix seconds. ``signatures`` are (public key, signature).
    """

    index: int
    timestamp: int
    protocol_version: int
    milestone_id: bytes
    previous_milestone_id: bytes | None
    parents: tuple[bytes, ...]
    inclusion_root: bytes | None
    applied_root: bytes
    metadata: bytes
    essence: bytes
    essence_hash: bytes
    signatures: tuple[tuple[bytes, bytes], ...]
    receipt: Receipt | None
    protocol_parameters: ProtocolParameters | None
    next_pow_score: int
    next_pow_score_index: int


def payload_time(payload: bytes) -> int | None:
    """Return the time (unix s) in a milestone's payload with its u32 type; None if it is of no known type."""
    width = _TIME_WIDTH.get(int.from_bytes(payload[:4], "little"))
    return None if width is None else min(int.from_bytes(payload[8 : 8 + width], "little"), _LATEST)


def decode_milestone(payload: bytes, protocol: Protocol) -> Milestone:
    """Return the milestone of a payload with its u32 type.

    Raises:
        DecodeError: If the payload is malformed.
    """
    reader = ByteReader(payload)
    kind = CHRYSALIS_MILESTONE if protocol == "chrysalis" else STARDUST_MILESTONE
    demand(reader.uint(4) == kind, Fault.MILESTONE_KIND)
    milestone = _chrysalis(reader) if protocol == "chrysalis" else _stardust(reader)
    reader.finish(Fault.PAYLOAD_LENGTH)
    return milestone


def milestone_id(payload: bytes) -> str:
    """Return the id (hex) of a milestone payload with its u32 type, of either protocol."""
    protocol: Protocol = "chrysalis" if payload[0] == CHRYSALIS_MILESTONE else "stardust"
    return decode_milestone(payload, protocol).milestone_id.hex()


def _parents(reader: ByteReader) -> tuple[bytes, ...]:
    count = reader.uint(1)
    demand(1 <= count <= MAX_PARENTS, Fault.PARENT_COUNT)
    parents = reader.pieces(count, 32)
    demand(ascending(parents), Fault.PARENT_ORDER)
    return parents


def _hash(data: bytes) -> bytes:
    return blake2b(data, digest_size=32).digest()


def _chrysalis(reader: ByteReader) -> Milestone:
    begin = reader.position
    index, timestamp = struct.unpack("<IQ", reader.take(12))
    parents = _parents(reader)
    root = reader.take(32)
    score, score_index = struct.unpack("<II", reader.take(8))
    demand(score_index > index if score else score_index == 0, Fault.POW_SCORE)
    keys = reader.pieces(reader.uint(1), 32)
    demand(bool(keys), Fault.KEY_COUNT)
    demand(ascending(keys), Fault.KEY_ORDER)
    inner = reader.take(reader.uint(4))
    receipt = None
    if inner:
        nested = ByteReader(inner)
        demand(nested.uint(4) == CHRYSALIS_RECEIPT, Fault.RECEIPT_KIND)
        receipt = read_receipt(nested)
        nested.finish(Fault.PAYLOAD_LENGTH)
    essence = reader.data[begin : reader.position]
    demand(reader.uint(1) == len(keys), Fault.SIGNATURE_COUNT)
    signatures = tuple(zip(keys, reader.pieces(len(keys), 64), strict=True))
    # A Chrysalis milestone id covers the whole payload, type and signatures included.
    return Milestone(
        index=index,
        timestamp=timestamp,
        protocol_version=1,
        milestone_id=_hash(reader.data[: reader.position]),
        previous_milestone_id=None,
        parents=parents,
        inclusion_root=None,
        applied_root=root,
        metadata=b"",
        essence=essence,
        essence_hash=_hash(essence),
        signatures=signatures,
        receipt=receipt,
        protocol_parameters=None,
        next_pow_score=score,
        next_pow_score_index=score_index,
    )


def _stardust(reader: ByteReader) -> Milestone:
    begin = reader.position
    index, timestamp, version = struct.unpack("<IIB", reader.take(9))
    demand(version == 2, Fault.VERSION)
    previous = reader.take(32)
    parents = _parents(reader)
    inclusion_root, applied_root = reader.take(32), reader.take(32)
    length = reader.uint(2)
    demand(length <= MAX_METADATA, Fault.METADATA_LENGTH)
    metadata = reader.take(length)
    receipt, parameters = read_options(reader, index)
    essence = reader.data[begin : reader.position]
    signed = reader.pieces(reader.uint(1), SIGNATURE_WIDTH)
    demand(bool(signed), Fault.SIGNATURE_COUNT)
    demand(not any(piece[0] for piece in signed), Fault.SIGNATURE_KIND)
    signatures = tuple((piece[1:33], piece[33:]) for piece in signed)
    demand(ascending([key for key, _ in signatures]), Fault.KEY_ORDER)
    essence_hash = _hash(essence)
    # A Stardust milestone id is the essence's hash, whoever signed it.
    return Milestone(
        index=index,
        timestamp=timestamp,
        protocol_version=version,
        milestone_id=essence_hash,
        previous_milestone_id=previous,
        parents=parents,
        inclusion_root=inclusion_root,
        applied_root=applied_root,
        metadata=metadata,
        essence=essence,
        essence_hash=essence_hash,
        signatures=signatures,
        receipt=receipt,
        protocol_parameters=parameters,
        next_pow_score=0,
        next_pow_score_index=0,
    )


class ApplicableKey(Interface):
    """A coordinator key and the milestones, both inclusive, that it may sign."""

    @property
    def key(self) -> str:
        """The public key (hex)."""

    @property
    def start(self) -> int:
        """The first milestone."""

    @property
    def end(self) -> int | None:
        """The last milestone; None or 0 if there is none."""


def verify_signatures(
    milestone: Milestone, keys: Sequence[ApplicableKey] = (), threshold: int | None = None
) -> list[str]:
    """Check every signature over the essence's hash and return the problems, one line each.

    Args:
        milestone: The milestone.
        keys: Coordinator keys. All signers must be among those applicable at the milestone's index. Without
            keys the milestone's own keys are trusted.
        threshold: The least number of signatures; 1 if None.
    """
    problems = []
    applicable = {
        key.key
        for key in keys
        if key.start <= milestone.index and (not key.end or milestone.index <= key.end)
    }
    if len(milestone.signatures) < (threshold or 1):
        problems.append(f"{len(milestone.signatures)} signatures, {threshold or 1} are needed")
    for public_key, signature in milestone.signatures:
        if keys and public_key.hex() not in applicable:
            problems.append(f"key {public_key.hex()} may not sign milestone {milestone.index}")
        if not is_valid(public_key, signature, milestone.essence_hash):
            problems.append(f"signature of key {public_key.hex()} is not valid")
    return problems
