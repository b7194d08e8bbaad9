"""inx-chronicle's measurements under its own names (its ``src/analytics/influx.rs``), as a view."""

from __future__ import annotations

from permalake.contracts.schema import Column
from permalake.contracts.views import LakeView

_BUCKETS = (*map(str, range(1, 8)), "small", "medium", "large", "huge")
_CHANGES = {
    "alias": ("created", "state_changed", "governor_changed", "destroyed"),
    "nft": ("created", "transferred", "destroyed"),
    "foundry": ("created", "transferred", "destroyed"),
}
_PAYLOADS = ("milestone", "tagged_data", "transaction", "treasury_transaction")
_COUNTS = ("tagged_data", "treasury_transaction", "no_payload", "confirmed", "conflicting", "no_transaction")

FIELDS: dict[str, dict[str, str]] = {
    "stardust_active_addresses": {"count": "active_addresses"},
    "stardust_base_token_activity": {
        "booked_amount": "transferred_tokens",
        "transferred_amount": "moved_tokens",
    },
    "stardust_block_activity": {
        "transaction_count": "transaction_payload_count",
        "milestone_count": "milestone_payload_count",
        **{f"{name}_count": f"{name}_count" for name in _COUNTS},
    },
    "stardust_milestone_size": {
        **{f"total_{name}_payload_bytes": f"{name}_bytes" for name in _PAYLOADS},
        "total_milestone_bytes": "message_bytes",
    },
    "stardust_output_activity": {
        f"{kind}_{change}_count": f"{kind}_{change}_count"
        for kind, changes in _CHANGES.items()
        for change in changes
    },
    "stardust_transaction_size_distribution": {
        f"{side}_{bucket}": f"{side}_buckets[{place}]"
        for side in ("input", "output")
        for place, bucket in enumerate(_BUCKETS, 1)
    },
}
"""By measurement and field of inx-chronicle: our column (``ms_activity``, ``ms_analytics``)."""

_POINTS = ", ".join(
    f"struct_pack(measurement := '{measurement}', field := '{field}', value := CAST({column} AS BIGINT))"
    for measurement, fields in FIELDS.items()
    for field, column in fields.items()
)
CHRONICLE_MEASUREMENTS = LakeView(
    "chronicle_measurements",
    "iota",
    "What inx-chronicle measures of each milestone, under its own names, as far as the day alone tells it.",
    (
        Column("date", "date", "UTC date of the milestone."),
        Column("milestone_index", "int", "Index of the milestone."),
        Column("measurement", "string", "Name of the measurement.", values=tuple(FIELDS)),
        Column("field", "string", "Field of the measurement."),
        Column("value", "long", "Its value."),
    ),
    ("ms_activity", "ms_analytics"),
    "SELECT date, milestone_index, point.measurement AS measurement, point.field AS field, "  # noqa: S608
    f"point.value AS value FROM (SELECT date, milestone_index, unnest([{_POINTS}]) AS point "
    "FROM {network}.ms_activity JOIN {network}.ms_analytics USING (date, milestone_index) "
    "WHERE date <= CAST(as_of AS DATE))",
    note="docs/peers.md says where else its measurements are: totals of the whole ledger follow from carried "
    "tables, at the ends of days.",
)
