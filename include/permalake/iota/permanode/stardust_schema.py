"""Contracts of the Cassandra tables: the permanode schemas of Chrysalis and of Stardust.

``docs/stores.md`` lists what was mended in the schemas as they were proposed, and why.
"""

from __future__ import annotations

from permalake.contracts.cql import MaterializedView, Order, StoreTable

_RANGE = {
    "ms_range_id": "int",
    "milestone_index": "int",
    "ms_timestamp": "timestamp",
    "inclusion_state": "tinyint",
}
_NEWEST: tuple[Order, ...] = (("ms_timestamp", "DESC"), ("milestone_index", "DESC"))
_BY_RANGE: tuple[Order, ...] = (
    ("ms_range_id", "DESC"),
    ("milestone_index", "DESC"),
    ("ms_timestamp", "DESC"),
)


def _outputs(name: str, doc: str, key: str, views: tuple[str, ...], **kind_columns: str) -> StoreTable:
    """Return an output table: a row per ``key`` and milestone, with a view per queried column."""
    ids = {key: "text"} if key == "output_id" else {key: "text", "output_id": "text"}
    return StoreTable(
        name,
        doc,
        {**ids, **_RANGE, "amount": "bigint", **kind_columns, "data": "blob"},
        (key,),
        _BY_RANGE,
        tuple(
            MaterializedView(f"{name}_by_{column}", (column, "ms_range_id"), (*_NEWEST, (key, "ASC")))
            for column in views
        ),
    )


MESSAGES = StoreTable(
    "messages",
    "Referenced messages, with their place in the ledger.",
    {
        "message_id": "text",
        "version": "tinyint",
        "message": "blob",
        "est_milestone_index": "int",
        "milestone_index": "int",
        "inclusion_state": "tinyint",
        "conflict_reason": "tinyint",
        "proof": "blob",
    },
    ("message_id",),
    (("version", "ASC"), ("message", "ASC")),
    indexes={"messages_by_milestone": "milestone_index"},
)
_TRANSACTION_ORDER: tuple[Order, ...] = (
    ("idx", "ASC"),
    ("variant", "ASC"),
    ("message_id", "ASC"),
    ("data", "ASC"),
)
TRANSACTIONS = StoreTable(
    "transactions",
    "Inputs, outputs and unlocks, one row each.",
    {
        "transaction_id": "text",
        "idx": "smallint",
        "variant": "text",
        "message_id": "text",
        "data": "blob",
        "est_milestone_index": "int",
        "milestone_index": "int",
        "inclusion_state": "tinyint",
    },
    ("transaction_id",),
    _TRANSACTION_ORDER,
    (
        MaterializedView(
            "transactions_by_state",
            ("transaction_id",),
            (("inclusion_state", "ASC"), *_TRANSACTION_ORDER),
        ),
    ),
)
_MILESTONE = {"milestone_index": "int", "message_id": "text", "timestamp": "bigint", "payload": "blob"}
MILESTONES = StoreTable(
    "milestones", "Milestones.", _MILESTONE, ("milestone_index",), (("message_id", "ASC"),)
)
TAG_HINTS = StoreTable(
    "tag_hints",
    "Where a tag has rows: kind of table, and milestone ranges.",
    {"tag": "text", "table_kind": "text", "ms_range_id": "int"},
    ("tag",),
    (("table_kind", "ASC"), ("ms_range_id", "DESC")),
)
ADDRESSES_HINTS = StoreTable(
    "addresses_hints",
    "Where an address has outputs: kind of output, part that it plays, and milestone ranges.",
    {"address": "text", "output_kind": "text", "variant": "text", "ms_range_id": "int"},
    ("address",),
    (("output_kind", "ASC"), ("variant", "ASC"), ("ms_range_id", "DESC")),
)
BASIC_OUTPUTS = _outputs(
    "basic_outputs",
    "Basic outputs.",
    "output_id",
    ("address", "tag", "sender"),
    address="text",
    sender="text",
    tag="text",
)
ALIAS_OUTPUTS = _outputs(
    "alias_outputs",
    "States of aliases; of several in one milestone the last.",
    "alias_id",
    ("sender", "issuer", "state_controller", "governor"),
    sender="text",
    issuer="text",
    state_controller="text",
    governor="text",
)
FOUNDRY_OUTPUTS = _outputs(
    "foundry_outputs",
    "States of foundries; of several in one milestone the last.",
    "foundry_id",
    ("address",),
    address="text",
)
NFT_OUTPUTS = _outputs(
    "nft_outputs",
    "States of NFTs; of several in one milestone the last.",
    "nft_id",
    ("address", "dust_return_address", "sender", "issuer", "tag"),
    address="text",
    dust_return_address="text",
    sender="text",
    issuer="text",
    tag="text",
)
LEGACY_OUTPUTS = StoreTable(
    "legacy_outputs",
    "Chrysalis outputs, spent or not.",
    {
        "output_id": "text",
        "output_type": "tinyint",
        "is_used": "boolean",
        **_RANGE,
        "message_id": "text",
        "amount": "bigint",
        "address": "text",
        "data": "blob",
    },
    ("output_id",),
    (("output_type", "ASC"), ("is_used", "ASC"), *_BY_RANGE),
    (
        MaterializedView(
            "legacy_outputs_by_address",
            ("address", "ms_range_id"),
            (("output_type", "ASC"), ("is_used", "ASC"), *_NEWEST, ("output_id", "ASC")),
        ),
    ),
)
TAGS = StoreTable(
    "tags",
    "Messages by tag.",
    {
        "tag": "text",
        "ms_range_id": "int",
        "milestone_index": "int",
        "ms_timestamp": "timestamp",
        "message_id": "text",
        "inclusion_state": "blob",
    },
    ("tag", "ms_range_id"),
    (*_NEWEST, ("message_id", "ASC")),
)
PARENTS = StoreTable(
    "parents",
    "Children of a message.",
    {
        "parent_id": "text",
        "message_id": "text",
        "est_milestone_index": "int",
        "milestone_index": "int",
        "ms_timestamp": "timestamp",
        "inclusion_state": "tinyint",
    },
    ("parent_id",),
    (("message_id", "ASC"),),
    # Without ``milestone_index IS NOT NULL``: ScyllaDB allows that for key columns of the view only, and
    # Cassandra ignores it (docs/stores.md).
    (MaterializedView("parents_by_ms", ("parent_id",), (("ms_timestamp", "DESC"), ("message_id", "ASC"))),),
)
SYNC = StoreTable(
    "sync",
    "Milestones that are complete here; written last.",
    {"ms_range_id": "int", "milestone_index": "int", "synced_by": "tinyint", "logged_by": "tinyint"},
    ("ms_range_id",),
    (("milestone_index", "DESC"),),
)
MS_ANALYTICS = StoreTable(
    "ms_analytics",
    "Activity per milestone.",
    {
        "ms_range_id": "int",
        "milestone_index": "int",
        "message_count": "int",
        "transaction_count": "int",
        "transferred_tokens": "bigint",
    },
    ("ms_range_id",),
    (("milestone_index", "DESC"),),
)
DAILY_ANALYTICS = StoreTable(
    "daily_analytics",
    "Active addresses per day.",
    {
        "year": "int",
        "date": "date",
        "total_addresses": "int",
        "send_addresses": "int",
        "recv_addresses": "int",
    },
    ("year",),
    (("date", "DESC"),),
)
ADDRESS_ANALYTICS = StoreTable(
    "address_analytics",
    "Tokens sent and received per address and milestone.",
    {"address": "text", "milestone_index": "int", "sent_tokens": "bigint", "recv_tokens": "bigint"},
    ("address",),
    (("milestone_index", "DESC"),),
)
DATE_CACHE = StoreTable(
    "date_cache",
    "First and last milestone of a date, both inclusive.",
    {"date": "date", "start_ms": "int", "end_ms": "int"},
    ("date",),
)
METRICS_CACHE = StoreTable(
    "metrics_cache",
    "Distinct values behind the daily counts.",
    {"date": "date", "variant": "text", "metric": "text", "value": "text", "metric_value": "blob"},
    ("date",),
    (("variant", "ASC"), ("metric", "ASC"), ("value", "ASC")),
)

STARDUST_TABLES = (
    MESSAGES,
    TRANSACTIONS,
    MILESTONES,
    TAG_HINTS,
    ADDRESSES_HINTS,
    BASIC_OUTPUTS,
    ALIAS_OUTPUTS,
    FOUNDRY_OUTPUTS,
    NFT_OUTPUTS,
    LEGACY_OUTPUTS,
    TAGS,
    PARENTS,
    MS_ANALYTICS,
    DAILY_ANALYTICS,
    ADDRESS_ANALYTICS,
    DATE_CACHE,
    METRICS_CACHE,
    SYNC,
)
"""The schema proposed for Stardust, served for every network; ``sync`` last, as it is written."""
