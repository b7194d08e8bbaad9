"""The decoded frame: what the cone lands, and what every IOTA table is a projection of.

One row per milestone, per referenced block (in white-flag order) and per problem. Raw bytes are kept once, in
``raw``; inputs, outputs and unlocks are positions in it. Rows of kind PENDING belong to
:mod:`~permalake.iota.cone.conflict_reasons`, which lands them once more as blocks. Ids are binary, addresses
and tags text.
"""

from __future__ import annotations

from enum import IntEnum

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema


class Row(IntEnum):
    """Kinds of decoded rows."""

    MILESTONE = 0  # raw is the payload, milestone_id its id, message_id its message (Chrysalis)
    BLOCK = 1  # milestone_id is the id of the milestone that the block carries, if it does
    PROBLEM = 2
    PENDING = 3  # a block whose transaction conflicts; becomes BLOCK when its reason is recomputed


SLICE = pa.struct([("start", pa.int32()), ("length", pa.int32())])
# Times are unix seconds; 0 where the output has no such unlock condition.
_CONDITIONS = (
    ("timelock_time", pa.int64()),
    ("expiration_time", pa.int64()),
    ("storage_return_amount", pa.int64()),
)
# Integers of 256 bits are decimal text. ``newly_…``: what the transaction itself minted and melted.
SCHEME = pa.struct(
    [(name, pa.string()) for name in ("minted", "melted", "maximum", "newly_minted", "newly_melted")]
)
NFT_METADATA = pa.struct([(name, pa.string()) for name in ("collection", "name", "uri")])
TOKEN_METADATA = pa.struct([("name", pa.string()), ("symbol", pa.string()), ("decimals", pa.int32())])
OUTPUT = pa.struct(
    [
        ("start", pa.int32()),
        ("length", pa.int32()),
        ("kind", pa.int8()),
        ("amount", pa.int64()),
        ("address", pa.string()),
        ("sender", pa.string()),
        ("issuer", pa.string()),
        ("state_controller", pa.string()),
        ("governor", pa.string()),
        ("return_address", pa.string()),
        ("chain_id", pa.string()),
        ("tag", pa.string()),
        ("state_index", pa.int64()),
        ("foundry_counter", pa.int64()),
        ("serial_number", pa.int64()),
        ("expiration_return_address", pa.string()),
        ("native_token_count", pa.int32()),
        ("metadata_at", SLICE),
        ("immutable_metadata_at", SLICE),
        ("state_metadata_at", SLICE),
        ("scheme", SCHEME),
        ("nft", NFT_METADATA),
        ("token", TOKEN_METADATA),
        *_CONDITIONS,
    ]
)
# ``address`` unlocked the output; ``owner`` is its address unlock condition where that is another one, as an
# expiration had passed.
CONSUMED = pa.struct(
    [
        ("output_id", pa.binary()),
        ("data", pa.binary()),
        ("length", pa.int32()),
        ("kind", pa.int8()),
        ("amount", pa.int64()),
        ("address", pa.string()),
        ("owner", pa.string()),
        ("governor", pa.string()),
        ("chain_id", pa.string()),
        ("state_index", pa.int64()),
        *_CONDITIONS,
    ]
)
# ``address`` holds the tokens of a created output, and unlocked a consumed one.
TOKEN = pa.struct(
    [
        ("is_spent", pa.bool_()),
        ("output_id", pa.binary()),
        ("address", pa.string()),
        ("token_id", pa.string()),
        ("amount", pa.string()),
    ]
)
FUND = pa.struct(
    [
        ("data", pa.binary()),
        ("kind", pa.int8()),
        ("amount", pa.int64()),
        ("address", pa.string()),
        ("tail_transaction_hash", pa.binary()),
    ]
)
RECEIPT = pa.struct(
    [
        ("migrated_at", pa.int64()),
        ("final", pa.bool_()),
        ("funds", pa.list_(FUND)),
        ("treasury_input", pa.binary()),
        ("treasury_output", pa.int64()),
    ]
)
PARAMETERS = pa.struct([("target_index", pa.int64()), ("version", pa.int32()), ("parameters", pa.binary())])

ARROW = pa.schema(
    [
        ("kind", pa.int8()),
        ("date", pa.date32()),
        ("milestone_index", pa.int32()),
        ("timestamp", pa.int64()),
        ("message_id", pa.binary()),
        ("version", pa.int32()),
        ("raw", pa.binary()),
        ("white_flag_index", pa.int32()),
        ("inclusion_state", pa.int32()),
        ("conflict_reason", pa.int32()),
        ("payload_kind", pa.int32()),
        ("parents", pa.list_(pa.binary())),
        ("tag", pa.string()),
        ("milestone_id", pa.binary()),
        ("transaction_id", pa.binary()),
        ("inputs", pa.list_(SLICE)),
        ("unlocks", pa.list_(SLICE)),
        ("outputs", pa.list_(OUTPUT)),
        ("consumed", pa.list_(CONSUMED)),
        ("native_tokens", pa.list_(TOKEN)),
        ("signers", pa.list_(pa.string())),
        ("receipt", RECEIPT),
        ("parameters", PARAMETERS),
        ("reason", pa.string()),
        ("detail", pa.string()),
        ("origin", pa.string()),
        ("breaks", pa.bool_()),
    ]
)
DECODED = from_arrow_schema(ARROW)


def of_kind(decoded: DataFrame, kind: Row) -> DataFrame:
    """Return the decoded rows of one kind."""
    return decoded.where(F.col("kind") == int(kind))
