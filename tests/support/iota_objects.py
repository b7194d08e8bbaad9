"""All IOTA objects of the test data, real and of the synthetic tangles; and objects written again."""

from __future__ import annotations

import gzip
import json
from functools import cache

import numpy as np
import pyarrow as pa

from permalake.arrays.slices import slices
from permalake.iota.codec.blocks import decode_blocks
from permalake.iota.codec.encode import (
    MilestoneDraft,
    TaggedData,
    pack_block,
    pack_milestone,
    pack_milestone_essence,
    pack_tagged_data,
    pack_transaction,
)
from permalake.iota.codec.milestones import Milestone
from permalake.iota.codec.signatures import valid_signatures
from permalake.iota.codec.to_records import block_record
from permalake.iota.codec.transactions import SIGNATURE
from support.places import DATA

BLOCKS = {
    "chrysalis": (
        "iota/chrysalis_messages.jsonl",
        "iota/synthetic/chrysalis/messages.jsonl",
        "synthetic/chrysalis/archive/messages.jsonl.gz",
    ),
    "stardust": (
        "iota/stardust_blocks.jsonl",
        "iota/shimmer/blocks.jsonl",
        "iota/shimmer_cone_2418187.jsonl",
        "iota/synthetic/stardust/blocks.jsonl",
        "synthetic/stardust/archive/blocks.jsonl.gz",
    ),
}
OUTPUTS = {
    "chrysalis": (
        "iota/synthetic/chrysalis/created_outputs.jsonl",
        "iota/synthetic/chrysalis/consumed_outputs.jsonl",
        "synthetic/chrysalis/archive/consumed_outputs.jsonl.gz",
    ),
    "stardust": (
        "iota/shimmer/created_outputs.jsonl",
        "iota/shimmer/consumed_outputs.jsonl",
        "iota/synthetic/stardust/created_outputs.jsonl",
        "iota/synthetic/stardust/consumed_outputs.jsonl",
        "synthetic/stardust/archive/consumed_outputs.jsonl.gz",
    ),
}
MILESTONES = {
    "chrysalis": (
        "iota/synthetic/chrysalis/milestones.jsonl",
        "synthetic/chrysalis/archive/milestones.jsonl.gz",
    ),
    "stardust": (
        "iota/shimmer/milestones.jsonl",
        "iota/synthetic/stardust/milestones.jsonl",
        "synthetic/stardust/archive/milestones.jsonl.gz",
    ),
}


def rows(name):
    """The JSON lines of a file of the test data."""
    raw = (DATA / name).read_bytes()
    text = gzip.decompress(raw) if name.endswith(".gz") else raw
    return [json.loads(line) for line in text.splitlines()]


def bodies(names, raw, body):
    """Pairs of raw bytes and node JSON, where the data has both."""
    found = (row for name in names for row in rows(name) if raw in row and body in row)
    return [(bytes.fromhex(row[raw].removeprefix("0x")), row[body]) for row in found]


def _raw(names, *fields):
    found = (next(row[one] for one in fields if one in row) for name in names for row in rows(name))
    return sorted({bytes.fromhex(text.removeprefix("0x")) for text in found})


@cache
def blocks(protocol):
    """Raw blocks or messages, each once."""
    return _raw(BLOCKS[protocol], "raw")


@cache
def outputs(protocol):
    """Raw outputs, each once: those of the ledgers, and those inside the blocks."""
    columns = decode_blocks(pa.array(blocks(protocol), pa.binary()), protocol)
    parts = columns.transactions.outputs
    inside = slices(columns.data, parts.start, parts.length).to_pylist()
    return sorted({*inside, *_raw(OUTPUTS[protocol], "rawOutput")})


@cache
def milestones(protocol):
    """Raw milestone payloads with their type, each once."""
    return _raw(MILESTONES[protocol], "rawPayload", "raw")


def milestone_draft(milestone):
    """A decoded milestone without its ids, hashes and signatures."""
    return MilestoneDraft(
        index=milestone.index,
        timestamp=milestone.timestamp,
        parents=milestone.parents,
        applied_root=milestone.applied_root,
        inclusion_root=milestone.inclusion_root or bytes(32),
        previous_milestone_id=milestone.previous_milestone_id or bytes(32),
        metadata=milestone.metadata,
        receipt=milestone.receipt,
        protocol_parameters=milestone.protocol_parameters,
        public_keys=tuple(key for key, _ in milestone.signatures) if not milestone.inclusion_root else (),
        next_pow_score=milestone.next_pow_score,
        next_pow_score_index=milestone.next_pow_score_index,
    )


def repack(decoded, row, protocol):
    """The raw bytes of a well-formed row of decoded blocks, written again from its columns."""
    record = block_record(decoded, row, protocol)
    payload = _pack_payload(record.payload, protocol) if record.payload else b""
    return pack_block(record.parents, payload, protocol, nonce=record.nonce, network_id=record.network_id)


def _pack_payload(payload, protocol):
    if isinstance(payload, TaggedData):
        return pack_tagged_data(payload, protocol)
    if isinstance(payload, Milestone):
        essence = pack_milestone_essence(milestone_draft(payload), protocol)
        return pack_milestone(essence, payload.signatures, protocol)
    return pack_transaction(payload, protocol)


def invalidly_signed(decoded):
    """Which of the decoded blocks' transactions (bool[t]) hold an invalid signature."""
    unlocks = decoded.transactions.unlocks
    wrong = np.zeros(len(decoded.transactions), bool)
    signed = np.flatnonzero(unlocks.kind == SIGNATURE)
    wrong[unlocks.transaction[signed[~valid_signatures(decoded, signed)]]] = True
    return wrong
