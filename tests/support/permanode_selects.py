"""The select statements of both permanode proposals, mended as docs/stores.md says.

Each with the table that holds the facts, its bound comparisons in order, and its literal conditions.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Select:
    """``bound`` are (column, comparison) of the ``?`` in order; ``literal`` column -> accepted values."""

    text: str
    facts: str
    bound: tuple[tuple[str, str], ...] = ()
    literal: dict[str, tuple[str, ...]] = field(default_factory=dict)


_EQ = "="
_RANGE = (("ms_timestamp", ">="), ("ms_timestamp", "<"))
_MILESTONES = (("milestone_index", ">="), ("milestone_index", "<"))


def _eq(*columns):
    return tuple((column, _EQ) for column in columns)


def _by(view, column):
    facts, _, _ = view.partition("_by_")
    text = f"SELECT * FROM {{ks}}.{view} WHERE {column} = ? AND ms_range_id = ?"
    keyed = _eq(column, "ms_range_id")
    return [
        Select(text, facts, keyed),
        Select(f"{text} AND ms_timestamp >= ? AND ms_timestamp < ?", facts, (*keyed, *_RANGE)),
    ]


_OUTPUT_VIEWS = {
    "basic_outputs": ("address", "tag", "sender"),
    "alias_outputs": ("sender", "issuer", "state_controller", "governor"),
    "foundry_outputs": ("address",),
    "nft_outputs": ("address", "dust_return_address", "sender", "issuer", "tag"),
}

STARDUST = [
    Select("SELECT message FROM {ks}.messages WHERE message_id = ?", "messages", _eq("message_id")),
    Select(
        "SELECT message_id, milestone_index, inclusion_state FROM {ks}.messages WHERE message_id = ?",
        "messages",
        _eq("message_id"),
    ),
    Select("SELECT * FROM {ks}.messages WHERE message_id = ?", "messages", _eq("message_id")),
    Select("SELECT * FROM {ks}.messages WHERE milestone_index = ?", "messages", _eq("milestone_index")),
    Select(
        "SELECT message_id, data, inclusion_state FROM {ks}.transactions "
        "WHERE transaction_id = ? AND idx = ? AND variant IN ('output', 'unlock')",
        "transactions",
        _eq("transaction_id", "idx"),
        {"variant": ("output", "unlock")},
    ),
    Select(
        "SELECT message_id, data, idx, inclusion_state, milestone_index FROM {ks}.transactions "
        "WHERE transaction_id = ?",
        "transactions",
        _eq("transaction_id"),
    ),
    Select(
        "SELECT message_id, timestamp FROM {ks}.milestones WHERE milestone_index = ?",
        "milestones",
        _eq("milestone_index"),
    ),
    Select("SELECT ms_range_id FROM {ks}.tag_hints WHERE tag = ?", "tag_hints", _eq("tag")),
    Select(
        "SELECT ms_range_id FROM {ks}.tag_hints WHERE tag = ? AND table_kind = 'ext_output'",
        "tag_hints",
        _eq("tag"),
        {"table_kind": ("ext_output",)},
    ),
    Select(
        "SELECT ms_range_id FROM {ks}.addresses_hints WHERE address = ? AND output_kind IN "
        "('extended', 'legacy', 'nft', 'foundry', 'alias') AND variant IN ('address', 'sender', 'issuer', "
        "'state_controller', 'governor', 'dust_return_address')",
        "addresses_hints",
        _eq("address"),
    ),
    *(
        select
        for table, columns in _OUTPUT_VIEWS.items()
        for column in columns
        for select in _by(f"{table}_by_{column}", column)
    ),
    Select(
        "SELECT * FROM {ks}.legacy_outputs_by_address WHERE address = ? AND ms_range_id = ?",
        "legacy_outputs",
        _eq("address", "ms_range_id"),
    ),
    Select(
        "SELECT milestone_index, message_id, inclusion_state FROM {ks}.tags "
        "WHERE tag = ? AND ms_range_id = ?",
        "tags",
        _eq("tag", "ms_range_id"),
    ),
    Select(
        "SELECT milestone_index, message_id, inclusion_state FROM {ks}.tags "
        "WHERE tag = ? AND ms_range_id = ? AND ms_timestamp >= ? AND ms_timestamp < ?",
        "tags",
        (*_eq("tag", "ms_range_id"), *_RANGE),
    ),
    Select(
        "SELECT milestone_index, message_id, inclusion_state FROM {ks}.parents_by_ms WHERE parent_id = ?",
        "parents",
        _eq("parent_id"),
    ),
    Select(
        "SELECT milestone_index, message_id, inclusion_state FROM {ks}.parents_by_ms WHERE parent_id = ? "
        "AND ms_timestamp >= ? AND ms_timestamp < ?",
        "parents",
        (*_eq("parent_id"), *_RANGE),
    ),
    Select("SELECT milestone_index, synced_by, logged_by FROM {ks}.sync", "sync"),
    Select(
        "SELECT milestone_index, synced_by, logged_by FROM {ks}.sync WHERE ms_range_id = ? "
        "AND milestone_index >= ? AND milestone_index < ?",
        "sync",
        (*_eq("ms_range_id"), *_MILESTONES),
    ),
    Select(
        "SELECT milestone_index, message_count, transaction_count, transferred_tokens FROM {ks}.ms_analytics "
        "WHERE ms_range_id = ? AND milestone_index >= ? AND milestone_index < ?",
        "ms_analytics",
        (*_eq("ms_range_id"), *_MILESTONES),
    ),
    Select(
        "SELECT date, total_addresses, send_addresses, recv_addresses FROM {ks}.daily_analytics "
        "WHERE year = ? AND date >= ? AND date <= ?",
        "daily_analytics",
        (*_eq("year"), ("date", ">="), ("date", "<=")),
    ),
    Select(
        "SELECT milestone_index, sent_tokens, recv_tokens FROM {ks}.address_analytics WHERE address = ? "
        "AND milestone_index >= ? AND milestone_index < ?",
        "address_analytics",
        (*_eq("address"), *_MILESTONES),
    ),
    Select("SELECT start_ms, end_ms FROM {ks}.date_cache WHERE date = ?", "date_cache", _eq("date")),
]

COUNTS = [("address", "sent"), ("address", "received"), ("address", "sent_or_received"), ("index", "used")]
"""``SELECT count(1) FROM metrics_cache WHERE date = ? AND variant = … AND metric = …``."""

CHRYSALIS = [
    Select("SELECT message FROM {v1}.messages WHERE message_id = ?", "v1.messages", _eq("message_id")),
    Select("SELECT metadata FROM {v1}.messages WHERE message_id = ?", "v1.messages", _eq("message_id")),
    Select(
        "SELECT message, metadata FROM {v1}.messages WHERE message_id = ?", "v1.messages", _eq("message_id")
    ),
    Select(
        "SELECT data FROM {v1}.transactions WHERE transaction_id = ? AND idx = ? AND variant = 'output'",
        "v1.transactions",
        _eq("transaction_id", "idx"),
        {"variant": ("output",)},
    ),
    Select(
        "SELECT payload FROM {v1}.milestones WHERE milestone_index = ?",
        "v1.milestones",
        _eq("milestone_index"),
    ),
    Select(
        "SELECT message_id FROM {v1}.parents WHERE parent_id = ? AND partition_id = ?",
        "v1.parents",
        _eq("parent_id", "partition_id"),
    ),
    Select(
        "SELECT address, address_type, transaction_id, idx FROM {ks}.addresses WHERE address = ? "
        "AND partition_id = ?",
        "addresses",
        _eq("address", "partition_id"),
    ),
    Select(
        "SELECT indexation, message_id FROM {ks}.indexes WHERE indexation = ? AND partition_id = ?",
        "indexes",
        _eq("indexation", "partition_id"),
    ),
    Select(
        "SELECT milestone_index, synced_by, logged_by FROM {v1}.sync WHERE key = ? AND milestone_index >= ? "
        "AND milestone_index < ?",
        "v1.sync",
        (*_eq("key"), *_MILESTONES),
    ),
    Select(
        "SELECT milestone_index, partition_id FROM {ks}.hints WHERE hint = ? AND variant = ?",
        "hints",
        _eq("hint", "variant"),
    ),
]


WRITES = {
    "STARDUST": [
        "INSERT INTO {ks}.tag_hints (tag, table_kind, ms_range_id) VALUES ('spam', 'tag', ?)",
        "INSERT INTO {ks}.tag_hints (tag, table_kind, ms_range_id) VALUES ('not_a_spam', 'ext_output', ?)",
        "INSERT INTO {ks}.addresses_hints (address, output_kind, variant, ms_range_id) "
        "VALUES ('address_a', ?, ?, ?)",
        "INSERT INTO {ks}.basic_outputs (output_id, ms_range_id, ms_timestamp, milestone_index) "
        "VALUES (?, 2147483647, ?, ?) USING TTL 86400",
        "INSERT INTO {ks}.basic_outputs (output_id, ms_range_id, ms_timestamp, milestone_index, amount, "
        "inclusion_state, address, tag, sender) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        "INSERT INTO {ks}.parents (parent_id, message_id, milestone_index, ms_timestamp) VALUES (?, ?, ?, ?)",
        "INSERT INTO {ks}.parents (parent_id, message_id, milestone_index, ms_timestamp, inclusion_state) "
        "VALUES (?, ?, ?, ?, ?)",
        "DELETE FROM {ks}.parents WHERE parent_id = ?",
        *(
            "INSERT INTO {ks}.metrics_cache (date, variant, value, metric) "
            f"VALUES (?, '{variant}', ?, '{metric}')"
            for variant, metric in COUNTS
        ),
        "DELETE FROM {ks}.metrics_cache WHERE date = ?",
    ],
    "CHRYSALIS": [
        "INSERT INTO {v1}.messages (message_id, message, metadata) VALUES (?, ?, ?)",
        "INSERT INTO {ks}.addresses (address, partition_id, milestone_index, output_type, transaction_id, "
        "idx, amount, address_type) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        "INSERT INTO {ks}.indexes (indexation, partition_id, milestone_index, message_id) "
        "VALUES (?, ?, ?, ?)",
        "INSERT INTO {v1}.parents (parent_id, partition_id, milestone_index, message_id) VALUES (?, ?, ?, ?)",
        "INSERT INTO {v1}.transactions (transaction_id, idx, variant, message_id, data) "
        "VALUES (?, ?, ?, ?, ?)",
        "INSERT INTO {v1}.milestones (milestone_index, message_id, timestamp) VALUES (?, ?, ?)",
    ],
}
"""The statements of both proposals that write, mended as docs/stores.md says, by schema."""
