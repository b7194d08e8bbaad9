"""Views that have in SQL what the permanode's tables in Cassandra add to the lake's tables.

Names and columns are those of Cassandra (``docs/stores.md``). All are computed from published days when they
are read.
"""

from __future__ import annotations

from permalake.contracts.schema import DATE, Column
from permalake.contracts.views import LakeView
from permalake.iota.contracts import ledger, outputs
from permalake.iota.contracts.columns import milestone, milestone_time, range_id

OUTPUT_KINDS = {
    "basic_outputs": "extended",
    "alias_outputs": "alias",
    "foundry_outputs": "foundry",
    "nft_outputs": "nft",
    "legacy_outputs": "legacy",
}
"""Lake table -> kind of output in ``addresses_hints``."""
TAG_KINDS = {"tags": "tag", "basic_outputs": "ext_output", "nft_outputs": "nft_output"}
"""Lake table -> kind of table in ``tag_hints``."""
ADDRESS_COLUMNS = ("address", "sender", "issuer", "state_controller", "governor", "dust_return_address")
"""Columns that hold an address: each is a variant in ``addresses_hints``."""
HINT_COLUMNS = {
    "address": ("legacy_outputs", "address"),
    "index": ("tags", "tag"),
    "parent": ("parents", "parent_id"),
}
"""Variant in ``hints`` -> lake table, and its column that is looked up."""
SYNC_KEY = "permanode"
"""The one value of ``sync.key``."""
CHRONICLE = 0
"""Number of this permanode in ``synced_by`` and ``logged_by``."""

_TABLES = {table.name: table for table in ledger.TABLES}
_FIRST_DATE = Column("date", "date", "UTC date of the first such row.")
_UP_TO = "date <= CAST(as_of AS DATE)"


def _tag_hints() -> str:
    return " UNION ALL ".join(
        f"SELECT tag, '{kind}' AS table_kind, ms_range_id, min(date) AS date FROM {{network}}.{table} "  # noqa: S608
        f"WHERE tag IS NOT NULL AND {_UP_TO} GROUP BY ALL"
        for table, kind in TAG_KINDS.items()
    )


def _addresses_hints() -> str:
    return " UNION ALL ".join(
        f"SELECT {column} AS address, '{kind}' AS output_kind, '{column}' AS variant, ms_range_id, "  # noqa: S608
        f"min(date) AS date FROM {{network}}.{table} WHERE {column} IS NOT NULL AND {_UP_TO} GROUP BY ALL"
        for table, kind in OUTPUT_KINDS.items()
        for column in ADDRESS_COLUMNS
        if column in _TABLES[table].names
    )


def _hints() -> str:
    return " UNION ALL ".join(
        f"SELECT {column} AS hint, '{variant}' AS variant, max(milestone_index) AS milestone_index, "  # noqa: S608
        f"max(date) AS date FROM {{network}}.{table} WHERE {_UP_TO} GROUP BY ALL"
        for variant, (table, column) in HINT_COLUMNS.items()
    )


PARENTS_BY_MS = LakeView(
    "parents_by_ms",
    "iota",
    "Children of a message, with the time of the milestone that references them.",
    (
        *(column for column in ledger.PARENTS.columns if column.name != "date"),
        milestone_time(),
        DATE,
    ),
    ("parents", "milestones"),
    "SELECT parents.* EXCLUDE (date), to_timestamp(milestones.timestamp) AS ms_timestamp, parents.date "
    "FROM {network}.parents AS parents JOIN {network}.milestones AS milestones "
    "USING (milestone_index, date) WHERE parents.date <= CAST(as_of AS DATE)",
    note="The rows of `parents`, a column more.",
    key=("parent_id", "message_id"),
)
LEGACY_OUTPUTS_BY_ADDRESS = LakeView(
    "legacy_outputs_by_address",
    "iota",
    "Chrysalis outputs and whether they are spent at the end of a day: legacy_outputs_by_address(DATE '…'), "
    "or legacy_outputs_by_address for the last one.",
    (
        *(column for column in outputs.LEGACY_OUTPUTS.columns if column.name != "date"),
        Column("is_used", "boolean", "Whether a published day up to that day consumed the output."),
        DATE,
    ),
    ("legacy_outputs", "consumed_outputs"),
    "SELECT created.* EXCLUDE (date), output_id IN (SELECT output_id FROM {network}.consumed_outputs "  # noqa: S608
    f"WHERE kind = 'legacy' AND {_UP_TO}) AS is_used, date "
    f"FROM {{network}}.legacy_outputs AS created WHERE {_UP_TO}",
    note="The rows of `legacy_outputs`, a column more. Filter by address or date where that will do.",
    key=("output_id",),
    runs_on=True,
)
TAG_HINTS = LakeView(
    "tag_hints",
    "iota",
    "Where a tag has rows: kinds of table, and milestone ranges.",
    (
        Column("tag", "string", "Hex of the tag's bytes."),
        Column("table_kind", "string", "Messages, basic outputs or NFTs.", values=tuple(TAG_KINDS.values())),
        range_id(),
        _FIRST_DATE,
    ),
    tuple(TAG_KINDS),
    _tag_hints(),
    note="A row per tag, kind and range.",
    key=("tag", "table_kind", "ms_range_id"),
    runs_on=True,
)
ADDRESSES_HINTS = LakeView(
    "addresses_hints",
    "iota",
    "Where an address has outputs: kind of output, part that it plays, and milestone ranges.",
    (
        Column("address", "string", "The address (bech32)."),
        Column("output_kind", "string", "Kind of the output.", values=tuple(OUTPUT_KINDS.values())),
        Column("variant", "string", "Column of the output that holds the address.", values=ADDRESS_COLUMNS),
        range_id(),
        _FIRST_DATE,
    ),
    tuple(OUTPUT_KINDS),
    _addresses_hints(),
    note="A row per address, kind, variant and range.",
    key=("address", "output_kind", "variant", "ms_range_id"),
    runs_on=True,
)
HINTS = LakeView(
    "hints",
    "iota",
    "What can be looked up by address, indexation key or parent, and the newest milestone of each.",
    (
        Column("hint", "string", "Address (bech32), hex of an indexation key, or message id."),
        Column("variant", "string", "What the hint is.", values=tuple(HINT_COLUMNS)),
        milestone("Newest milestone that has a row of it."),
        Column("date", "date", "UTC date of that milestone."),
    ),
    tuple(table for table, _ in HINT_COLUMNS.values()),
    _hints(),
    note="A row per hint and variant. `partition_id` is missing: partitions belong to the tables in "
    "Cassandra, and the lake has none.",
    key=("variant", "hint"),
    runs_on=True,
)
SYNC = LakeView(
    "sync",
    "iota",
    "Milestones that are published.",
    (
        Column("key", "string", "Always the same.", values=(SYNC_KEY,)),
        range_id(),
        milestone("The milestone."),
        Column("synced_by", "int", "Number of this permanode.", values=(CHRONICLE,)),
        Column("logged_by", "int", "Number of this permanode.", values=(CHRONICLE,)),
        DATE,
    ),
    ("ms_analytics",),
    f"SELECT '{SYNC_KEY}' AS key, ms_range_id, milestone_index, {CHRONICLE} AS synced_by, "  # noqa: S608
    f"{CHRONICLE} AS logged_by, date FROM {{network}}.ms_analytics WHERE {_UP_TO}",
    note="The lake publishes whole days, so each milestone here is complete; Cassandra's table follows.",
    key=("milestone_index",),
)
VIEWS = (PARENTS_BY_MS, LEGACY_OUTPUTS_BY_ADDRESS, TAG_HINTS, ADDRESSES_HINTS, HINTS, SYNC)
