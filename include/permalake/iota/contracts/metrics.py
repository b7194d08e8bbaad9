"""Contracts of the metrics that inx-chronicle measures of a day alone; see docs/peers.md."""

from __future__ import annotations

from permalake.contracts.schema import DATE, Column, Table
from permalake.iota.contracts.columns import count, long, milestone

_BUCKETS = "1 to 7 one by one, 8-15, 16-31, 32-63, 64 and more"


def _chain_activity(name: str, doc: str) -> tuple[Column, ...]:
    return (
        count(f"{name}_created_count", f"{doc} created."),
        count(f"{name}_transferred_count", f"{doc} that were consumed and created again."),
        count(f"{name}_destroyed_count", f"{doc} destroyed."),
    )


_BLOCKS = (
    count("no_payload_count", "Messages without payload."),
    count("tagged_data_count", "Messages with tagged data (Chrysalis: indexation)."),
    count("transaction_payload_count", "Messages with a transaction."),
    count("milestone_payload_count", "Messages with a milestone (inx-chronicle's milestone_count)."),
    count("treasury_transaction_count", "Messages with a treasury transaction."),
    count("confirmed_count", "Messages with an included transaction."),
    count("conflicting_count", "Messages with a conflicting transaction."),
    count("no_transaction_count", "Messages without a transaction."),
    long("tagged_data_bytes", "Bytes of messages with tagged data."),
    long("transaction_bytes", "Bytes of messages with a transaction."),
    long("milestone_bytes", "Bytes of messages with a milestone."),
    long("treasury_transaction_bytes", "Bytes of messages with a treasury transaction."),
    long("message_bytes", "Bytes of all messages."),
)
_MOVED = long(
    "moved_tokens",
    "Sum, over transactions and addresses, of what was received beyond what was sent (base tokens). An "
    "output that is created expired counts for its return address. inx-chronicle's transferred_amount.",
)
_TRANSACTIONS = (
    Column("input_buckets", "list<int>", f"Included transactions by inputs: {_BUCKETS}."),
    Column("output_buckets", "list<int>", f"Included transactions by outputs: {_BUCKETS}."),
    *_chain_activity("nft", "NFTs"),
    count("alias_created_count", "Aliases created."),
    count("alias_governor_changed_count", "Aliases that went on with another governor."),
    count("alias_state_changed_count", "Aliases that went on with another state index."),
    count("alias_destroyed_count", "Aliases destroyed."),
    *_chain_activity("foundry", "Foundries"),
)

MS_ACTIVITY = Table(
    "ms_activity",
    "iota",
    "Activity per milestone beyond the permanode schema, as inx-chronicle measures it (docs/peers.md).",
    (
        milestone("Index of the milestone."),
        *_BLOCKS,
        count("active_addresses", "Distinct addresses that own a created output or unlocked a consumed one."),
        _MOVED,
        *_TRANSACTIONS,
    ),
    key=("milestone_index",),
    sort=("milestone_index",),
)

DAILY_ACTIVITY = Table(
    "daily_activity",
    "iota",
    "ms_activity per day: what its milestones' figures add up to.",
    (
        DATE,
        Column("milestones", "int", "Milestones of the day.", minimum=0),
        long("max_milestone_bytes", "Bytes of the messages of the day's largest milestone."),
        *_BLOCKS,
        long("booked_tokens", "Sum of all outputs of included transactions (base tokens)."),
        _MOVED,
        *_TRANSACTIONS,
    ),
    key=("date",),
)

TABLES = (MS_ACTIVITY, DAILY_ACTIVITY)
