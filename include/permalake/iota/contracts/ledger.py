"""Contracts of milestones, messages and what they carry, and the list of the ledger's tables."""

from __future__ import annotations

from permalake.contracts.schema import HEX, HEX32, OUTPUT_ID, Column, Table
from permalake.iota.contracts import analytics
from permalake.iota.contracts.columns import (
    MAX_U32,
    address,
    amount,
    count,
    inclusion,
    message,
    milestone,
    milestone_time,
    range_id,
    u32,
)
from permalake.iota.contracts.outputs import CONSUMED_OUTPUTS, OUTPUT_TABLES

MILESTONES = Table(
    "milestones",
    "iota",
    "Milestones: the coordinator's signed checkpoints.",
    (
        milestone("Index of the milestone."),
        message(
            required=False,
            doc="Id of the message that carries the milestone, where it is referenced within the same day.",
        ),
        Column("timestamp", "long", "Time of the milestone (unix seconds).", minimum=0, maximum=MAX_U32),
        Column("payload", "binary", "Raw milestone payload with its 4-byte type."),
        Column(
            "milestone_id",
            "string",
            "Id of the milestone: BLAKE2b-256 of the whole payload (Chrysalis, TIP-8) or of its essence "
            "(Stardust, TIP-29).",
            pattern=HEX32,
        ),
    ),
    key=("milestone_index",),
    sort=("milestone_index",),
    time_column="timestamp",
    lookups=("payload",),
    lookup_keys={"payload": "permalake.iota.codec.milestones:milestone_id"},
    copied=("milestone_index", "message_id", "timestamp", "payload"),
)

MESSAGES = Table(
    "messages",
    "iota",
    "Every message (block) that the milestone references, in white-flag order.",
    (
        message(),
        Column("version", "int", "1 on Chrysalis, the block's protocol version on Stardust.", values=(1, 2)),
        Column("message", "binary", "Raw bytes of the message."),
        milestone(),
        count("white_flag_index", "Position in the milestone's white-flag order (post-order DFS)."),
        inclusion(),
        Column("conflict_reason", "int", "The protocol's own code, 0 when none.", minimum=0, maximum=255),
        Column("proof", "binary", "Proof of inclusion, null until proofs are built.", required=False),
    ),
    key=("message_id",),
    sort=("milestone_index", "white_flag_index"),
    lookups=("message_id",),
    copied=(
        "message_id",
        "message",
        "milestone_index",
        "white_flag_index",
        "inclusion_state",
        "conflict_reason",
    ),
)

PARENTS = Table(
    "parents",
    "iota",
    "One row per distinct (parent, message).",
    (
        Column("parent_id", "string", "Id of the approved message.", pattern=HEX32),
        message(),
        milestone(),
        inclusion(),
    ),
    key=("parent_id", "message_id"),
    sort=("milestone_index", "parent_id"),
    lookups=("parent_id",),
)

TAGS = Table(
    "tags",
    "iota",
    "Indexation keys (Chrysalis) and tags (Stardust), at top level or inside a transaction.",
    (
        Column("tag", "string", "Hex of the tag's bytes; an empty tag makes no row.", pattern=HEX),
        range_id(),
        milestone(),
        milestone_time(),
        message(),
        inclusion(),
    ),
    key=("tag", "message_id"),
    sort=("milestone_index", "tag"),
    time_column="ms_timestamp",
    lookups=("tag",),
)

TRANSACTIONS = Table(
    "transactions",
    "iota",
    "Inputs, outputs and unlocks of every transaction, one row each, conflicting ones too.",
    (
        Column("transaction_id", "string", "BLAKE2b-256 of the transaction payload.", pattern=HEX32),
        Column("idx", "int", "Position within its own list.", minimum=0, maximum=65535),
        Column("variant", "string", "Which list.", values=("input", "output", "unlock")),
        message(),
        Column("data", "binary", "Raw bytes of that input, output or unlock."),
        inclusion("0 conflicting, 1 included.", values=(0, 1)),
        milestone(),
    ),
    key=("transaction_id", "variant", "idx", "message_id"),
    sort=("milestone_index", "transaction_id", "variant", "idx"),
    lookups=("transaction_id",),
)

RECEIPTS = Table(
    "receipts",
    "iota",
    "Funds that receipts migrated from the old network, one row each (TIP-17).",
    (
        milestone("Milestone that carries the receipt."),
        milestone_time(),
        count("idx", "Position among the receipt's funds."),
        Column("output_id", "string", "Output created: milestone id || u16 LE position.", pattern=OUTPUT_ID),
        u32("migrated_at", "Milestone of the old network from which the receipt migrates (TIP-17)."),
        Column(
            "final", "int", "1: the last receipt of that milestone; 0: more follow (TIP-17).", values=(0, 1)
        ),
        Column(
            "tail_transaction_hash",
            "string",
            "Hex of the tail transaction's hash (49 bytes) of the bundle that migrated the funds (TIP-17).",
            pattern=r"^[0-9a-f]{98}$",
        ),
        address("address", "Owner of the output", required=True),
        amount("amount", "Migrated funds"),
    ),
    key=("output_id",),
    sort=("milestone_index", "idx"),
    time_column="ms_timestamp",
    lookups=("output_id",),
)

PROTOCOL_PARAMETERS = Table(
    "protocol_parameters",
    "iota",
    "Protocol parameters that milestones announce (TIP-29).",
    (
        milestone("Milestone that announces them."),
        milestone_time(),
        u32("target_milestone_index", "Milestone from which they are in force (TIP-29)."),
        Column(
            "protocol_version", "int", "Protocol version to support from then on.", minimum=0, maximum=255
        ),
        Column("params", "binary", "Serialized parameters of that version (TIP-29)."),
    ),
    key=("milestone_index",),
    sort=("milestone_index",),
    time_column="ms_timestamp",
)

TABLES = (
    MILESTONES,
    MESSAGES,
    PARENTS,
    TAGS,
    TRANSACTIONS,
    *OUTPUT_TABLES,
    RECEIPTS,
    PROTOCOL_PARAMETERS,
    CONSUMED_OUTPUTS,
    *analytics.TABLES,
)
